/**
 * Random products against sums in float64, within what their formats allow. Formats, majors, batches, epilogues and
 * configurations are drawn, then a few sizes for each. CI runs a few of them on the emulator, the device suite more of
 * them on a GPU.
 */
import { bf16, f16, f32, f64, f8e4m3fn, f8e5m2, i32, i8, u8 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { Device } from "../../src/device/device.ts";
import { matmul } from "../../src/kernels/index.ts";
import type {
  Accumulation,
  MatmulConfiguration,
  MatmulPrecision,
} from "../../src/kernels/index.ts";
import { array, dim } from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";

/** How many option sets are drawn, with how many sizes each, and how large these are. */
export interface RandomProducts {
  readonly seed: number;
  readonly options: number;
  readonly sizes: number;
  readonly most: { readonly m: number; readonly n: number; readonly k: number };
}

/** Runs them, and gives what is wrong with each that is. */
export async function randomProducts(
  device: Device,
  plan: RandomProducts,
): Promise<readonly string[]> {
  const random = new Random(plan.seed);
  const problems: string[] = [];
  for (let drawn = 0; drawn < plan.options; drawn += 1) {
    const option = drawOptions(random);
    for (let size = 0; size < plan.sizes; size += 1) {
      const problem = await problemOf(device, random, option, plan.most);
      if (problem !== undefined) problems.push(problem);
    }
  }
  return problems;
}

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
    cluster: turned ? 1 : random.pick([1, 2] as const),
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

/** The first element that is wrong, in words. */
async function problemOf(
  device: Device,
  random: Random,
  drawn: Drawn,
  most: RandomProducts["most"],
): Promise<string | undefined> {
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
      return `out[${layer}, ${i}, ${j}] is ${found}, not ${value} ± ${bound}: ${describe(drawn)}, ${JSON.stringify(sizes)}`;
  }
  return undefined;
}

function describe({ format, configuration, hasBias, batches, aTurned, bTurned }: Drawn): string {
  const names = { a: format.a.name, b: format.b.name, precision: format.precision };
  return JSON.stringify({ ...names, configuration, hasBias, batches, aTurned, bTurned });
}
