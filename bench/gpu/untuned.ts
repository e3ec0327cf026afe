/**
 * How far what the model chooses lies behind the fastest of what was measured: products of random shapes. Of each shape so many choices
 * take turns, those that the model thinks fastest and a few others. Kernels of all shapes are compiled together, and a shape
 * is reported as soon as it is timed, so that an interrupted run has reported those before.
 *
 *   node dist/cli/main.js run bench/gpu/untuned.ts -- [--sizes wide|few] [SHAPES] [SECONDS] [CHOICES] [SEED] [kn|nk] [bf16|f16] [FILE]
 *
 * Sizes of rows are from 1 to 8192 and others from 256 to 8192, most of them multiples of 64; with --sizes wide all are from 16 to 16384, a quarter of them such that
 * TMA cannot take rows as they are; with --sizes few rows are from 1 to 128, a third of them one, and others from 1024 to 32768. FILE takes a line for each shape (test/support/products/timed-products.ts), which is what the model's correction is fitted to.
 */
import { appendFileSync } from "node:fs";
import {
  tensor,
  bf16,
  cdiv,
  dim,
  f16,
  f32,
  iota,
  kernel,
  open,
  scalar,
  slice,
  u32,
} from "tilewright";
import type { BoundLaunch, DeviceArray } from "tilewright";
import { bench } from "tilewright/bench";
import { matmul } from "tilewright/kernels";
import { Random } from "../../src/support/random.ts";
import { recordText } from "../../src/device/tuning/line.ts";
import type { Choice } from "../../src/device/tuning/line.ts";
import type { MatmulConfiguration } from "../../src/kernels/matmul/configuration.ts";
import { namedOption, scriptArguments } from "../../scripts/arguments.ts";
import { timedLine, timedText } from "../../test/support/products/timed-products.ts";

const { values: options, positionals } = scriptArguments(import.meta.url, {
  sizes: { type: "string", default: "usual" },
});
const [shapes = "30", seconds = "60", most = "12", seed = "1", lies = "kn", name = "bf16", file] =
  positionals;
const format = name === "f16" ? f16 : bf16;
if (file !== undefined && name !== "bf16") throw new Error("FILE is for times of bf16");
const random = new Random(Number(seed));

type Sizes = { readonly m: number; readonly n: number; readonly k: number };

/** Sizes of all magnitudes alike. */
function drawn(least: number, greatest: number): number {
  return least * (greatest / least) ** random.uniform();
}

function rounded(value: number, unit: number): number {
  return value < unit ? Math.round(value) : Math.round(value / unit) * unit;
}

/** Most of them such that TMA takes rows as they are. */
function size(least: number, greatest: number): number {
  return rounded(drawn(least, greatest), random.uniform() < 0.8 ? 64 : 8);
}

const wideUnits = [1, 8, 64, 128];
/** Operations of a wide shape at most, which take a millisecond and a half, and elements of b where there are few rows. */
const [mostOperations, mostWeights] = [2 ** 40, 2 ** 28];

function wideSizes(): Sizes {
  const wide = (): number => rounded(drawn(16, 16384), wideUnits[random.below(4)] ?? 1);
  const sizes = { m: wide(), n: wide(), k: wide() };
  return 2 * sizes.m * sizes.n * sizes.k > mostOperations ? wideSizes() : sizes;
}

function fewRows(): Sizes {
  const m = random.uniform() < 0.33 ? 1 : Math.round(drawn(1, 128));
  const [across, along] = [size(1024, 32768), size(1024, 32768)];
  return across * along > mostWeights ? fewRows() : { m, n: across, k: along };
}

const draws: { readonly [kind: string]: () => Sizes } = {
  usual: () => ({ m: size(1, 8192), n: size(256, 8192), k: size(256, 8192) }),
  wide: wideSizes,
  few: fewRows,
};
const draw = draws[namedOption("sizes", options.sizes, Object.keys(draws))];
if (draw === undefined) throw new Error("kinds of sizes are named");
const cases = Array.from({ length: Number(shapes) }, draw);

/** What others have to be within, of the best estimate, and which part of all choices they are. */
const [chance, others] = [2, 0.25];
/** Microseconds of a sample, in so many launches at most, on arrays of so many bytes together. */
const [sampleMicroseconds, mostLaunches, allBytes] = [1000, 40, 150e6];
const rounds = 7;

const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
const product = matmul({
  a: tensor(format, [rows, depth]),
  b: tensor(format, [depth, columns], lies === "nk" ? { strides: [1, depth] } : {}),
});
const device = await open("gpu", { onNotes: () => undefined });
const start = performance.now();

interface Entry {
  readonly choice: Choice;
  /** Microseconds, by the model and what corrects it. */
  readonly estimate: number;
}

/** What is measured of a shape; what is chosen comes first, which need not be the least estimate: more is measured than is chosen among. */
function entriesOf(sizes: Sizes): readonly Entry[] {
  const { choices } = product;
  if (choices === undefined) throw new Error("matmul has choices");
  const chosen = recordText(product.plan(sizes, device.target).configuration as unknown as Choice);
  const all = choices
    .candidates(sizes, device.target)
    .map((choice) => ({
      choice,
      isChosen: recordText(choice) === chosen,
      estimate: 1e6 * (choices.estimate?.(choice, sizes, device.target) ?? Infinity),
    }))
    .toSorted(
      (left, right) =>
        Number(right.isChosen) - Number(left.isChosen) || left.estimate - right.estimate,
    );
  if (all[0]?.isChosen !== true) throw new Error(`${chosen} is not measured`);
  const likely = Math.ceil((1 - others) * Number(most));
  const possible = all
    .slice(likely)
    .filter(({ estimate }) => estimate < chance * (all[0]?.estimate ?? 0));
  const further: Entry[] = [];
  while (likely + further.length < Number(most) && possible.length > 0)
    further.push(...possible.splice(random.below(possible.length), 1));
  return [...all.slice(0, likely), ...further];
}

const span = 2048;
const count = dim("count");
/** Numbers between -2 and 2, of all sizes alike: what is multiplied decides the GPU's clock. */
const numbers = kernel(
  {
    name: "numbers",
    grid: { i: cdiv(count, span) },
    inputs: { seed: scalar(u32) },
    outputs: { out: tensor(format, [count]) },
  },
  ({ i, seed: from, out }) => {
    const begin = i.mul(span);
    let mixed = iota(u32, [span], { axis: 0 }).add(begin.cast(u32)).mul(0x9e3779b9).xor(from);
    mixed = mixed.xor(mixed.shr(16)).mul(0x85ebca6b);
    mixed = mixed.xor(mixed.shr(13)).mul(0xc2b2ae35);
    const value = mixed
      .shr(8)
      .cast(f32)
      .mul(2 ** -22)
      .sub(2);
    out.at(slice(begin, span)).store(value.cast(format));
  },
);

/** One set of arrays of a shape. */
function arraysOf({ m, n, k }: Sizes, set: number): { readonly [name: string]: DeviceArray } {
  const filled = (shape: readonly number[], from: number): DeviceArray => {
    const made = device.allocate(format, shape);
    device.launch(numbers, {
      seed: 3 * set + from,
      out: made.reshape([shape.reduce((a, b) => a * b, 1)]),
    });
    return made;
  };
  const b = filled(lies === "nk" ? [n, k] : [k, n], 2);
  return { a: filled([m, k], 1), b, out: device.allocate(format, [m, n]) };
}

/** Microseconds of each entry, all in turns. */
async function times(sizes: Sizes, entries: readonly Entry[]): Promise<readonly number[]> {
  const { m, n, k } = sizes;
  const bytes = 2 * (m * k + k * n + m * n);
  const longest = Math.max(...entries.map(({ estimate }) => estimate));
  const launches = Math.min(mostLaunches, Math.max(3, Math.ceil(sampleMicroseconds / longest)));
  const sets = Math.min(launches, Math.max(2, Math.ceil(allBytes / bytes)));
  const arrays = Array.from({ length: sets }, (_, set) => arraysOf(sizes, set));
  try {
    const named = Object.fromEntries(
      entries.map(({ choice }, index) => {
        // One operation for all sets: each is planned once.
        const operation = product.with(choice);
        const bound = (set: number): BoundLaunch =>
          device.bind(operation, (arrays[set % sets] ?? {}) as never, { dimensions: sizes });
        return [String(index), bound];
      }),
    );
    const result = await bench(device, named, { rounds, launches, sets, warmUp: 1 });
    return entries.map((_, index) => 1e3 * result.of(String(index)).milliseconds);
  } finally {
    for (const set of arrays) for (const each of Object.values(set)) each.dispose();
  }
}

const ratios: number[] = [];

/** Says how what the model chooses lies beside the fastest that was measured for a shape. */
function printTimes({ m, n, k }: Sizes, entries: readonly Entry[], found: readonly number[]): void {
  const best = Math.min(...found);
  const [chosen = NaN] = found;
  const ratio = best / chosen;
  ratios.push(ratio);
  const fastest = entries[found.indexOf(best)];
  const other = ratio < 1 && fastest !== undefined ? ` ${recordText(fastest.choice)}` : "";
  process.stdout.write(
    `${m}x${n}x${k}: tuned ${best.toFixed(1)} µs, untuned ${chosen.toFixed(1)} µs, ${ratio.toFixed(3)} of tuned${other}\n`,
  );
  if (file === undefined) return;
  const us = entries.flatMap(({ choice }, index) => {
    const time = found[index];
    const text = timedText(choice as unknown as MatmulConfiguration);
    return time === undefined ? [] : [[text, Number(time.toPrecision(4))] as const];
  });
  appendFileSync(
    file,
    timedLine({ sizes: [m, n, k], b: lies === "nk" ? "nk" : "kn", us: Object.fromEntries(us) }),
  );
}

try {
  const planned = cases.map((sizes) => ({ sizes, entries: entriesOf(sizes) }));
  await device.compileInBackground(
    planned.flatMap(({ sizes, entries }) =>
      entries.flatMap(({ choice }) =>
        product
          .with(choice)
          .kernels(sizes, device.target)
          .map((each) => each.kernel),
      ),
    ),
  );
  process.stdout.write(`compiled after ${((performance.now() - start) / 1e3).toFixed(1)} s\n`);
  for (const { sizes, entries } of planned) {
    if (performance.now() - start > 1e3 * Number(seconds)) break;
    printTimes(sizes, entries, await times(sizes, entries));
  }
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const near = ratios.filter((ratio) => ratio >= 0.95).length;
  process.stdout.write(
    `worst ${Math.min(...ratios).toFixed(3)}, geometric mean ${mean.toFixed(3)} of ${ratios.length}, ${near} at 0.95 or more\n`,
  );
} finally {
  device.dispose();
}
