/**
 * Random products against sums in float64, within what their formats allow. Formats, how operands lie or are stored, batches,
 * prologues, epilogues, further outputs and configurations are drawn, then a few sizes for each. CI runs a few of them on
 * the emulator, the device suite more of them on a GPU.
 *
 * A configuration that was drawn may be impossible, which is TW9904, or leave no room for what the drawn functions exchange, which
 * is TW6103; everything else must give the right numbers.
 */
import {
  bf16,
  f16,
  f32,
  f64,
  f8e4m3fn,
  f8e5m2,
  i32,
  i8,
  isFloat,
  u8,
} from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { Device } from "../../src/device/device.ts";
import { matmul } from "../../src/kernels/index.ts";
import type {
  Accumulation,
  MatmulConfiguration,
  MatmulPrecision,
} from "../../src/kernels/index.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { Random } from "../../src/support/random.ts";
import { combined, drawEpilogue } from "./products/epilogues.ts";
import type { Bounded, EpilogueOption } from "./products/epilogues.ts";
import {
  computedOperand,
  denseOperand,
  quantizedOperand,
  sparseOperand,
} from "./products/operands.ts";
import type { DrawnOperand, OperandOption, Sizes } from "./products/operands.ts";

/** How many option sets are drawn, with how many sizes each, and how large these are. */
export interface RandomProducts {
  readonly seed: number;
  readonly options: number;
  readonly sizes: number;
  readonly most: { readonly m: number; readonly n: number; readonly k: number };
  /** Told of each product that was tried, and how many problems there are. */
  readonly onProgress?: (tried: number, problems: readonly string[]) => void;
}

/** Runs them, and gives what is wrong with each that is. */
export async function randomProducts(
  device: Device,
  plan: RandomProducts,
): Promise<readonly string[]> {
  const random = new Random(plan.seed);
  const problems: string[] = [];
  for (let drawn = 0; drawn < plan.options; drawn += 1) {
    const option = drawOptions(random, device.target.features.includes("wgmma"));
    for (let size = 0; size < plan.sizes; size += 1) {
      const sizes = drawSizes(random, option, plan.most);
      const problem = await problemOf(device, random, option, sizes);
      if (problem !== undefined)
        problems.push(`${problem}: ${option.text}, ${JSON.stringify(sizes)}`);
      plan.onProgress?.(drawn * plan.sizes + size + 1, problems);
    }
  }
  return problems;
}

/** Formats, and the error of a result in parts of the sum of its products' absolute values, of each `per` of k. */
interface Format {
  readonly a: DType;
  readonly b: DType;
  readonly out: readonly DType[];
  readonly sums: DType;
  readonly precision?: MatmulPrecision;
  readonly accumulation?: Accumulation;
  /** Of every product. */
  readonly product: number;
  /** Of every step of the sum, which takes in `per` of k. */
  readonly step: number;
  readonly per: number;
}

const half = { sums: f32, product: 0, step: 2 ** -22, per: 16 };
const single = (precision: MatmulPrecision, product: number): Format => ({
  ...{ a: f32, b: f32, out: [f32, bf16], sums: f32, precision, product, step: 2 ** -21, per: 16 },
});
const bytes = { sums: f32, out: [bf16, f32] };
const formats: readonly Format[] = [
  { a: bf16, b: bf16, out: [bf16, f32], ...half },
  { a: f16, b: f16, out: [f16, f32], ...half },
  { ...single("ieee", 0), step: 2 ** -23, per: 1 },
  single("tf32", 2 ** -10),
  single("tf32x3", 2 ** -19),
  single("bf16x3", 2 ** -14),
  single("bf16x6", 2 ** -20),
  single("bf16x9", 2 ** -22),
  { a: f64, b: f64, out: [f64], sums: f64, product: 0, step: 2 ** -51, per: 1 },
  ...[f8e4m3fn, f8e5m2].flatMap((a) =>
    [f8e4m3fn, f8e5m2].flatMap((b): Format[] => [
      { a, b, ...bytes, accumulation: "fast", product: 0, step: 2 ** -12, per: 32 },
      // Four steps at most are cut off together, which is an error of each product.
      { a, b, ...bytes, accumulation: "promoted", product: 2 ** -9, step: 2 ** -22, per: 64 },
    ]),
  ),
  ...[i8, u8].flatMap((a) =>
    [i8, u8].map((b) => ({ a, b, out: [i32], sums: i32, product: 0, step: 0, per: 1 })),
  ),
];

/** What rounding to the format of the result adds, in parts of it. */
const rounding = new Map<DType, number>([
  [bf16, 2 ** -8],
  [f16, 2 ** -11],
  [f32, 2 ** -23],
  [f64, 0],
  [i32, 0],
]);

type Kind = "dense" | "computed" | "quantised" | "sparse";

function drawKind(random: Random, { a, b }: Format, hasWgmma: boolean): Kind {
  const kinds: Kind[] = ["dense", "dense", "computed"];
  const isHalf = a === b && (a === bf16 || a === f16);
  if (isHalf) kinds.push("quantised", "quantised");
  if (hasWgmma && (isHalf || (a.bits === 8 && b.bits === 8))) kinds.push("sparse");
  return random.pick(kinds);
}

/** Rows, columns and slices of k of the skinny kernel, those of some formats alone among them. */
const skinnyForms = [
  { rows: 16, columns: 16, sliceK: 1 },
  { rows: 16, columns: 32, sliceK: 2 },
  { rows: 16, columns: 64, sliceK: 4 },
  { rows: 16, columns: 32, sliceK: 4 },
  { rows: 8, columns: 64, sliceK: 4 },
  { rows: 8, columns: 16, sliceK: 4 },
  { rows: 16, columns: 16, sliceK: 4 },
  { rows: 32, columns: 16, sliceK: 1 },
  { rows: 32, columns: 16, sliceK: 4 },
  { rows: 64, columns: 16, sliceK: 1 },
] as const;

function drawConfiguration(random: Random, kind: Kind): MatmulConfiguration | undefined {
  const kernel = random.pick([
    ...(["chosen", "chosen", "persistent", "persistent", "plain"] as const),
    ...(kind === "quantised" ? (["skinny", "skinny"] as const) : []),
  ]);
  if (kernel === "chosen") return undefined;
  const splitK = random.pick([1, 1, 2, 3, 7]);
  if (kernel === "plain")
    return {
      ...{ kernel, splitK, rows: random.pick([64, 128] as const) },
      ...{
        columns: random.pick([32, 64] as const),
        depth: random.pick([8, 16, 32, 64, 128] as const),
      },
    };
  if (kernel === "skinny") {
    const form = random.pick(skinnyForms);
    return { kernel, ...form, stages: form.sliceK * (2 + random.below(2)), splitK };
  }
  const swapAB = kind === "sparse" || random.below(2) === 0;
  return {
    kernel,
    consumers: random.pick([1, 2] as const),
    columns: random.pick([8, 16, 32, 64, 96, 128, 160, 192, 224, 256] as const),
    stages: 2 + random.below(3),
    schedule: random.pick(["tiles", "stream-k", "split-k"] as const),
    swapAB,
    cluster: swapAB && kind !== "sparse" ? 1 : random.pick([1, 2] as const),
  };
}

function drawOptions(random: Random, hasWgmma: boolean) {
  const format = random.pick(formats);
  const kind = drawKind(random, format, hasWgmma);
  const batches = random.pick([[], [], ["a"], ["b"], ["a", "b"]] as const) as readonly string[];
  const batched = (name: "a" | "b"): boolean => batches.includes(name);
  const computed = kind === "computed" ? random.pick(["a", "b", "ab"]) : "";
  const operandOf = (name: "a" | "b"): OperandOption =>
    (computed.includes(name) && isFloat(format[name]) ? computedOperand : denseOperand)(
      random,
      name,
      format[name],
      batched(name),
    );
  const a = operandOf("a");
  const b =
    kind === "quantised"
      ? quantizedOperand(random, format.b, batched("b"))
      : kind === "sparse"
        ? sparseOperand(format.b)
        : operandOf("b");
  const isBatched = a.batched || b.batched;
  const out = random.pick(format.out);
  const { sums, precision, accumulation } = format;
  const epilogue = drawEpilogue(random, { out, sums, batched: isBatched });
  const configuration = drawConfiguration(random, kind);
  const prologue = {
    ...(a.prologue !== undefined && { a: a.prologue }),
    ...(b.prologue !== undefined && { b: b.prologue }),
  };
  const spec = {
    ...{ a: a.operand, b: b.operand, out },
    inputs: { ...a.inputs, ...b.inputs, ...epilogue.inputs },
    ...epilogue.spec,
    ...(Object.keys(prologue).length > 0 && { prologue }),
    ...(precision && { precision }),
    ...(accumulation && { accumulation }),
    ...(configuration && { configuration }),
  };
  const op = matmul(spec as unknown as Parameters<typeof matmul>[0]);
  const said = [a.text, b.text, precision ?? accumulation ?? "", `out ${out.name}`, epilogue.text];
  const text = [...said, JSON.stringify(configuration)].join("; ");
  return { op, format, out, a, b, epilogue, configuration, text, batched: isBatched };
}

type Drawn = ReturnType<typeof drawOptions>;

const primes = [2, 3, 5, 7, 13, 17, 31, 61, 67, 127, 131, 257, 263, 509, 521];

/** Sizes of all kinds: none and one, primes, multiples of what copies take, and a few that are long along k. */
function drawSizes(random: Random, { batched }: Drawn, most: RandomProducts["most"]): Sizes {
  const aligned = random.pick([1, 8, 16]);
  const size = (limit: number): number => {
    const how = random.below(16);
    if (how === 0) return random.below(2);
    if (how < 4) return random.pick(primes.filter((prime) => prime <= limit));
    return Math.ceil((1 + random.below(limit)) / aligned) * aligned;
  };
  const isLong = random.below(8) === 0;
  return {
    ...{ m: size(isLong ? 9 : most.m), n: size(isLong ? 9 : most.n) },
    k: size(isLong ? 8 * most.k : most.k),
    batch: batched ? random.below(4) : 1,
  };
}

/** What is wrong with a product, in words. */
async function problemOf(
  device: Device,
  random: Random,
  drawn: Drawn,
  sizes: Sizes,
): Promise<string | undefined> {
  const { m, n, k, batch } = sizes;
  const operands = { a: drawn.a.draw(random, sizes), b: drawn.b.draw(random, sizes) };
  const ofEpilogue = drawn.epilogue.draw(random, sizes);
  const arrays = { ...operands.a.arrays, ...operands.b.arrays, ...ofEpilogue.arrays };
  const dimensions = { m, n, k, ...(drawn.batched && { batch }) };
  let result: { readonly [name: string]: HostArray };
  try {
    result = (await device.run(drawn.op, arrays as never, { dimensions })) as never;
  } catch (error) {
    const isRefused = error instanceof TilewrightError && ["TW9904", "TW6103"].includes(error.code);
    if (isRefused && drawn.configuration !== undefined) return undefined;
    return error instanceof Error ? error.message : String(error);
  }
  const { product, step, per, sums: ofSums } = drawn.format;
  const ofProduct = product + drawn.a.error + drawn.b.error;
  const ofSum = ofProduct + step * (Math.ceil(k / per) + 2);
  const sums = productSums(operands, sizes).map(({ value, magnitude }) => ({
    ...{ value, error: magnitude * ofSum },
  }));
  const done = sums.map((sum, index) =>
    ofEpilogue.apply(sum, Math.floor(index / (m * n)), Math.floor(index / n) % m, index % n),
  );
  const ofResult = rounding.get(drawn.out) ?? NaN;
  // The least numbers of f16 are rounded to multiples of 2^-24.
  const stored = done.map(({ value, error }) => ({
    value,
    error: error + (Math.abs(value) + error) * ofResult + (drawn.out === f16 ? 2 ** -25 : 0),
  }));
  return (
    difference("out", result["out"], stored) ??
    outputProblem(result, drawn.epilogue, { sums, done, ofSums, sizes })
  );
}

/**
 * Sums of products in float64 and of their absolute values, of all elements of the result. What operands stand for is taken
 * apart once for each layer, not once for each product.
 */
function productSums(
  { a, b }: { readonly a: DrawnOperand; readonly b: DrawnOperand },
  { m, n, k, batch }: Sizes,
): readonly { readonly value: number; readonly magnitude: number }[] {
  const sums: { readonly value: number; readonly magnitude: number }[] = [];
  for (let layer = 0; layer < batch; layer += 1) {
    const rows = lines(m, k, (i, l) => a.at(layer, i, l));
    const columns = lines(n, k, (j, l) => b.at(layer, l, j));
    for (const row of rows)
      for (const column of columns) {
        let [value, magnitude] = [0, 0];
        for (let l = 0; l < k; l += 1) {
          const term = (row[l] ?? NaN) * (column[l] ?? NaN);
          value += term;
          magnitude += Math.abs(term);
        }
        sums.push({ value, magnitude });
      }
  }
  return sums;
}

/** `count` lines of k numbers. */
function lines(
  count: number,
  k: number,
  at: (line: number, along: number) => number,
): readonly Float64Array[] {
  return Array.from({ length: count }, (_, line) =>
    Float64Array.from({ length: k }, (_, along) => at(line, along)),
  );
}

interface Expected {
  readonly sums: readonly Bounded[];
  readonly done: readonly Bounded[];
  /** Their format. */
  readonly ofSums: DType;
  readonly sizes: Sizes;
}

/** What is wrong with the outputs besides the result. */
function outputProblem(
  result: { readonly [name: string]: HostArray },
  { before, rows, columns }: EpilogueOption,
  { sums, done, ofSums, sizes: { m, n } }: Expected,
): string | undefined {
  const row = (i: number): readonly Bounded[] => done.slice(i * n, (i + 1) * n);
  const column = (j: number): readonly Bounded[] =>
    Array.from({ length: n === 0 ? 0 : done.length / n }, (_, i) => done[i * n + j]).flatMap(
      (each) => each ?? [],
    );
  const count = (extent: number): readonly number[] => Array.from({ length: extent }, (_, i) => i);
  const expected = {
    ...(before && { before: sums }),
    ...(rows && { ofRows: count(m).map((i) => combined(rows, ofSums, row(i))) }),
    ...(columns && { ofColumns: count(n).map((j) => combined(columns, ofSums, column(j))) }),
  };
  for (const [name, numbers] of Object.entries(expected)) {
    const problem = difference(name, result[name], numbers);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** The first element that is wrong. */
function difference(
  name: string,
  given: HostArray | undefined,
  expected: readonly Bounded[],
): string | undefined {
  const found = given === undefined ? [] : toNumbers(given);
  if (found.length !== expected.length)
    return `${name} has ${found.length} elements, not ${expected.length}`;
  for (const [index, { value, error }] of expected.entries()) {
    const number = found[index] ?? NaN;
    if (number !== value && !(Math.abs(number - value) <= error))
      return `${name}[${index}] is ${number}, not ${value} ± ${error}`;
  }
  return undefined;
}
