/**
 * Random products against sums in float64, within what their formats allow. Formats, majors, batches, epilogues and
 * configurations are drawn, then a few sizes for each.
 *
 *   MATMUL_OPTIONS=60 MATMUL_SIZES=5 MATMUL_DEVICE=gpu MATMUL_SEED=7 npx vitest run src/kernels/matmul/random.test.ts
 */
import { expect, test } from "vitest";
import { hasPtxas, describeAssembly } from "../../../test/ptxas.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f16, f32, f64, f8e4m3fn, f8e5m2, i32, i8, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array, dim } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";
import { lower } from "../../lower/pipeline.ts";
import { printPtx } from "../../ptx/printer.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { matmul } from "./matmul.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import type { Accumulation, MatmulPrecision } from "./problem.ts";

const options = Number(process.env["MATMUL_OPTIONS"] ?? 3);
const sizesEach = Number(process.env["MATMUL_SIZES"] ?? 1);
const seed = Number(process.env["MATMUL_SEED"] ?? 1);
const kind = (process.env["MATMUL_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";
const most = kind === "gpu" ? { m: 300, n: 400, k: 700 } : { m: 70, n: 80, k: 150 };

/** Formats, and the error of a result in parts of the sum of its products' absolute values, of each `per` of k. */
interface Format {
  readonly a: DType;
  readonly b: DType;
  readonly out: readonly DType[];
  readonly precision?: MatmulPrecision;
  readonly accumulation?: Accumulation;
  /** Of every product. */
  readonly product: number;
  /** Of every step of the sum, which takes in `per` of k. */
  readonly step: number;
  readonly per: number;
}

const half = { product: 0, step: 2 ** -22, per: 16 };
const single = (precision: MatmulPrecision, product: number): Format => ({
  ...{ a: f32, b: f32, out: [f32, bf16], precision, product, step: 2 ** -21, per: 16 },
});
const formats: readonly Format[] = [
  { a: bf16, b: bf16, out: [bf16, f32], ...half },
  { a: f16, b: f16, out: [f16, f32], ...half },
  { ...single("ieee", 0), step: 2 ** -23, per: 1 },
  single("tf32", 2 ** -10),
  single("tf32x3", 2 ** -19),
  single("bf16x3", 2 ** -14),
  single("bf16x6", 2 ** -20),
  single("bf16x9", 2 ** -22),
  { a: f64, b: f64, out: [f64], product: 0, step: 2 ** -51, per: 1 },
  ...([f8e4m3fn, f8e5m2] as const).flatMap((b): Format[] => [
    { a: f8e4m3fn, b, out: [bf16, f32], accumulation: "fast", product: 0, step: 2 ** -12, per: 32 },
    // Four steps at most are cut off together, which is an error of each product.
    {
      a: f8e4m3fn,
      b,
      out: [bf16],
      accumulation: "promoted",
      product: 2 ** -9,
      step: 2 ** -22,
      per: 64,
    },
  ]),
  { a: i8, b: u8, out: [i32], product: 0, step: 0, per: 1 },
];

/** What rounding to the format of the result adds, in parts of it. */
const rounding = new Map<DType, number>([
  [bf16, 2 ** -8],
  [f16, 2 ** -11],
  [f32, 2 ** -23],
  [f64, 0],
  [i32, 0],
]);

function drawConfiguration(random: Random, promoted: boolean): MatmulConfiguration | undefined {
  if (random.below(2) === 0) return undefined;
  const turned = random.below(3) === 0;
  return {
    kernel: "persistent",
    multipliers: random.pick([1, 2] as const),
    columns: turned
      ? random.pick([8, 16, 32, 64] as const)
      : random.pick(promoted ? ([64, 128] as const) : ([64, 128, 192, 256] as const)),
    stages: 2 + random.below(3),
    schedule: random.pick(["tiles", "split"] as const),
    turned,
  };
}

function drawOptions(random: Random) {
  const format = random.pick(formats);
  const isWgmma = format.precision !== "ieee" && format.a !== f64;
  const promoted = format.accumulation === "promoted" || (format.precision?.includes("x") ?? false);
  const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];
  const batches = random.pick([[], [], ["a"], ["a", "b"]] as const) as readonly string[];
  const turned = (): boolean => batches.length === 0 && random.below(2) === 0;
  const [aTurned, bTurned] = [turned(), turned()];
  const specOf = (name: "a" | "b", isTurned: boolean) => {
    const [rows, columns] = name === "a" ? [m, k] : [k, n];
    const shape = batches.includes(name) ? [batch, rows, columns] : [rows, columns];
    return array(format[name], shape, isTurned ? { strides: [1, rows] } : {});
  };
  const hasBias = format.a !== f64 && format.a !== i8 && random.below(2) === 0;
  const out = random.pick(format.out);
  const configuration = isWgmma ? drawConfiguration(random, promoted) : undefined;
  const spec = {
    a: specOf("a", aTurned),
    b: specOf("b", bTurned),
    out,
    ...(format.precision && { precision: format.precision }),
    ...(format.accumulation && { accumulation: format.accumulation }),
    ...(configuration && { configuration }),
    ...(hasBias && {
      inputs: { bias: array(f32, [n]) },
      epilogue: ({ sums, bias }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
        sums.add(bias).maximum(0).cast(out),
    }),
  };
  const op = matmul(spec as unknown as Parameters<typeof matmul>[0]);
  return { op, format, out, hasBias, batches, aTurned, bTurned, configuration };
}

type Drawn = ReturnType<typeof drawOptions>;

/** Numbers of an operand, and where its elements lie. */
function drawOperand(
  random: Random,
  { format, batches, aTurned, bTurned }: Drawn,
  name: "a" | "b",
  sizes: Sizes,
) {
  const [rows, columns] = name === "a" ? [sizes.m, sizes.k] : [sizes.k, sizes.n];
  const isTurned = name === "a" ? aTurned : bTurned;
  const own = batches.includes(name);
  const shape = [...(own ? [sizes.batch] : []), ...(isTurned ? [columns, rows] : [rows, columns])];
  const dtype = format[name];
  const count = shape.reduce((product, extent) => product * extent, 1);
  const whole = dtype === i8 || dtype === u8;
  const drawn = Array.from({ length: count }, () =>
    whole ? random.below(100) : random.uniform() * 2 - 1,
  );
  const given = fromNumbers(dtype, shape, drawn);
  const values = toNumbers(given);
  const at = (layer: number, i: number, j: number): number =>
    values[(own ? layer * rows * columns : 0) + (isTurned ? j * rows + i : i * columns + j)] ?? NaN;
  return { given, at };
}

interface Sizes {
  readonly m: number;
  readonly n: number;
  readonly k: number;
  readonly batch: number;
}

async function check(device: Device, random: Random, drawn: Drawn): Promise<void> {
  const aligned = random.below(2) === 0 ? 16 : 1;
  const size = (limit: number): number => Math.ceil((1 + random.below(limit)) / aligned) * aligned;
  const batch = drawn.batches.length === 0 ? 1 : 1 + random.below(3);
  const sizes = { m: size(most.m), n: size(most.n), k: size(most.k), batch };
  const [a, b] = [drawOperand(random, drawn, "a", sizes), drawOperand(random, drawn, "b", sizes)];
  const bias = Float32Array.from({ length: sizes.n }, () => random.uniform() - 0.5);
  const arrays = {
    ...{ a: a.given, b: b.given },
    ...(drawn.hasBias && { bias: fromNumbers(f32, [sizes.n], bias) }),
  };
  const { m, n, k } = sizes;
  const dimensions = { m, n, k, ...(drawn.batches.length > 0 && { batch }) };
  const result = await device.run(drawn.op, arrays as never, { dimensions });
  const { product, step, per } = drawn.format;
  const ofResult = rounding.get(drawn.out) ?? NaN;
  for (const [index, found] of toNumbers(result.out).entries()) {
    const [layer, i, j] = [Math.floor(index / (m * n)), Math.floor(index / n) % m, index % n];
    let [sum, magnitude] = [0, 0];
    for (let l = 0; l < k; l += 1) {
      const term = a.at(layer, i, l) * b.at(layer, l, j);
      sum += term;
      magnitude += Math.abs(term);
    }
    const error = magnitude * (product + step * (Math.ceil(k / per) + 2));
    const value = drawn.hasBias ? Math.max(0, sum + (bias[j] ?? NaN)) : sum;
    // The bias is at most a half; the least numbers of f16 are rounded to multiples of 2^-24.
    const bound =
      error + (Math.abs(value) + error + (drawn.hasBias ? 0.5 : 0)) * ofResult + 2 ** -25;
    if (!(Math.abs(found - value) <= bound))
      expect.fail(
        `out[${layer}, ${i}, ${j}] is ${found}, not ${value} ± ${bound}: ${describe(drawn)}, ${JSON.stringify(sizes)}`,
      );
  }
}

function describe({ format, configuration, hasBias, batches, aTurned, bTurned }: Drawn): string {
  const names = { a: format.a.name, b: format.b.name, precision: format.precision };
  return JSON.stringify({ ...names, configuration, hasBias, batches, aTurned, bTurned });
}

test(
  `random products are right on the ${kind}, from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const random = new Random(seed);
    const device = await open(kind);
    for (let drawn = 0; drawn < options; drawn += 1) {
      const option = drawOptions(random);
      for (let size = 0; size < sizesEach; size += 1) await check(device, random, option);
    }
    device.dispose();
  },
);

test.skipIf(!hasPtxas).each([
  ["bf16, split", { a: bf16, b: bf16 }, [1664, 2816, 16384]],
  ["bf16, turned", { a: bf16, b: bf16 }, [16, 8192, 28672]],
  ["FP8, promoted", { a: f8e4m3fn, b: f8e4m3fn, accumulation: "promoted" }, [8192, 8192, 8192]],
  ["f32 as bf16x6", { a: f32, b: f32, precision: "bf16x6" }, [4096, 4096, 4096]],
] as const)("%s: no registers are spilled, no products serialised", (_, spec, [m, n, k]) => {
  const op = matmul(spec as unknown as Parameters<typeof matmul>[0]);
  for (const { kernel } of op.kernels({ m, n, k })) {
    const text = printPtx(lower(kernel, targets.sm_90a).module);
    const said = describeAssembly(text, "sm_90a");
    expect(said).toContain("0 bytes spill stores, 0 bytes spill loads");
    // C7510 and its like: waits that the assembler put between products, registers that were not given.
    expect(said).not.toMatch(/C75\d\d|warning/);
  }
});
