/**
 * Products of sparse weights beside those of the same weights as they are, ours both, in interleaved rounds. What both give is
 * compared on rows before anything is timed.
 *
 *   node dist/cli/main.js run bench/gpu/sparse.ts -- 8192x8192x8192 4096x4096x4096 --rounds 15 --launches 50
 */
import { bf16, dim, open, toNumbers, u16 } from "tilewright";
import type { Device, DeviceArray } from "tilewright";
import { bench } from "tilewright/bench";
import { compress24, expand24, matmul, sparse24 } from "tilewright/kernels";
import { numberOption, scriptArguments } from "../../scripts/arguments.ts";
import { costOf, setsOf } from "./case.ts";
import { randomArray } from "./random.ts";

const { values, positionals } = scriptArguments(import.meta.url, {
  rounds: { type: "string", default: "15" },
  launches: { type: "string", default: "50" },
});
const shapes = positionals.length > 0 ? positionals : ["8192x8192x8192", "4096x4096x4096"];
const rounds = numberOption("rounds", values.rounds);
const launches = numberOption("launches", values.launches);

const weights = sparse24(bf16, [dim("k"), dim("n")]);
const sparse = matmul({ a: bf16, b: weights });
const dense = matmul({ a: bf16, b: bf16 });

type Matrix = DeviceArray<"bf16">;

/** One product: what sparse weights hold, and the same ones with their zeros. */
function arraysOf(device: Device, [m, n, k]: readonly [number, number, number], seed: number) {
  const x = randomArray(device, bf16, [k, n], seed + 50);
  const stored = {
    b: device.allocate(bf16, [n, 32 * Math.ceil(k / 64)]),
    bMetadata: device.allocate(u16, [Math.ceil(n / 64), Math.ceil(k / 64), 256]),
  };
  const dimensions = { k, n };
  device.launch(compress24(weights), { x, ...stored }, { dimensions });
  device.launch(expand24(weights), { ...stored, x }, { dimensions });
  const a = randomArray(device, bf16, [m, k], seed);
  return {
    a,
    x,
    ...stored,
    half: device.allocate(bf16, [m, n]),
    whole: device.allocate(bf16, [m, n]),
  };
}

async function rowOf(device: Device, matrix: Matrix, row: number): Promise<Float64Array> {
  return toNumbers(await device.download(matrix.slice(row, row + 1)));
}

/** Sums of the same products in another order differ by less than the last bits of bf16. */
async function requireAlike(device: Device, half: Matrix, whole: Matrix): Promise<void> {
  const [m = 1] = whole.shape;
  for (const row of [0, Math.floor(m / 2), m - 1]) {
    const [found, expected] = [await rowOf(device, half, row), await rowOf(device, whole, row)];
    const most = expected.reduce((greatest, each) => Math.max(greatest, Math.abs(each)), 0);
    const at = found.findIndex(
      (each, index) => !(Math.abs(each - (expected[index] ?? NaN)) <= most / 64),
    );
    if (at >= 0) throw new Error(`out[${row}, ${at}] is ${found[at]}, not ${expected[at]}`);
  }
}

async function measure(device: Device, text: string): Promise<void> {
  const [m = 0, n = 0, k = 0] = text.split("x").map(Number);
  const dimensions = { m, n, k };
  const sets = setsOf({ setBytes: 2 * (m * k + k * n + m * n) }, launches);
  const made = Array.from({ length: sets }, (_, seed) => arraysOf(device, [m, n, k], seed));
  const [first] = made;
  if (first === undefined) throw new Error("a product has one set at least");
  const of = (set: number) => made[set % sets] ?? first;
  const entries = {
    sparse: (set: number) => {
      const { a, b, bMetadata, half: out } = of(set);
      return device.bind(sparse, { a, b, bMetadata, out }, { dimensions });
    },
    dense: (set: number) => {
      const { a, x: b, whole: out } = of(set);
      return device.bind(dense, { a, b, out }, { dimensions });
    },
  };
  for (const name of ["sparse", "dense"] as const) {
    const once = entries[name](0);
    once.launch();
    await device.synchronize();
    once.dispose();
  }
  await requireAlike(device, first.half, first.whole);
  const work = { unit: "TFLOP/s", work: 2 * m * n * k } as const;
  const result = await bench(device, entries, {
    ...{ rounds, launches, sets, against: "dense" },
    cost: costOf(work),
  });
  process.stdout.write(`${text}\n${result.table()}\n`);
  for (const set of made) for (const each of Object.values(set)) each.dispose();
}

const device = await open("gpu");
try {
  for (const shape of shapes) await measure(device, shape);
} finally {
  device.dispose();
}
