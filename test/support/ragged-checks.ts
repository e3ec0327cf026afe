/**
 * Products of rows in groups on a device, against float64. Inputs are small whole numbers, whose sums every format holds
 * exactly, so results are compared as they are; but for matrices in few bits, which are any numbers, and results within what
 * rounding does to them.
 */
import type { Device } from "../../src/device/device.ts";
import { bf16, f16, f32, f8e4m3fn, i32, i8 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { MatmulConfiguration } from "../../src/kernels/matmul/configuration.ts";
import { raggedDot } from "../../src/kernels/ragged/ragged-dot.ts";
import { raggedOuter } from "../../src/kernels/ragged/ragged-outer.ts";
import { tensor, dim } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import { productOf } from "./exact-product.ts";
import { wholeNumbers } from "./library-checks.ts";
import { quantizedOperand, symbols } from "./products/operands.ts";

export interface DotCase {
  readonly name: string;
  readonly groups: readonly number[];
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly dtype?: DType<"bf16" | "f32" | "f8e4m3fn" | "i8">;
  /** Whether the matrices lie by columns. */
  readonly byColumns?: boolean;
  readonly epilogue?: boolean;
  readonly configuration?: MatmulConfiguration;
}

/** What a case multiplies: small whole numbers. */
export function raggedInputs({ groups, sizes: [m, n, k], dtype = bf16, byColumns }: DotCase) {
  const a = wholeNumbers(dtype, [m, k], 1);
  const b = wholeNumbers(dtype, [groups.length, k, n], 2);
  return {
    ...{ a, b },
    lying:
      byColumns === true
        ? fromNumbers(dtype, [groups.length, k, n], turned(b.values, k, n))
        : b.array,
    groupSizes: fromNumbers(i32, [groups.length], groups),
  };
}

/** Matrices by columns. */
function turned(values: readonly number[], k: number, n: number): Float64Array {
  const lying = new Float64Array(values.length);
  let place = 0;
  for (let matrix = 0; matrix < values.length; matrix += k * n)
    for (let column = 0; column < n; column += 1)
      for (let i = 0; i < k; i += 1) lying[place++] = values[matrix + i * n + column] ?? NaN;
  return lying;
}

/** Rows times the matrices of their groups. */
export async function checkDot(device: Device, one: DotCase): Promise<void> {
  const { groups, sizes, dtype = bf16, byColumns, epilogue, configuration } = one;
  const [m, n, k] = sizes;
  const { a, b, lying, groupSizes } = raggedInputs(one);
  const [rows, columns, depth, count] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const op = raggedDot({
    a: tensor(dtype, [rows, depth]),
    b: tensor(
      dtype,
      [count, depth, columns],
      byColumns === true ? { strides: [depth.mul(columns), 1, depth] } : {},
    ),
    out: dtype === i8 ? i32 : f32,
    ...(dtype === f32 && { precision: "ieee" as const }),
    ...(dtype === f8e4m3fn && { accumulation: "fast" as const }),
    ...(epilogue === true && {
      inputs: { bias: tensor(f32, [columns]) },
      epilogue: ({ sums, bias }: never) =>
        (sums as never as { add: (x: unknown) => never }).add(bias),
    }),
    ...(configuration !== undefined && { configuration }),
  } as never);
  const bias = wholeNumbers(f32, [n], 5);
  const results = await device.run(op, {
    ...{ a: a.array, b: lying, groupSizes },
    ...(epilogue === true && { bias: bias.array }),
  } as never);
  // Rows of nobody are 0.
  const expected = new Float64Array(m * n);
  const [left, right] = [new Float64Array(a.values), new Float64Array(b.values)];
  let start = 0;
  for (const [group, size] of groups.entries()) {
    const product = productOf(
      { values: left.subarray(start * k), down: k, along: 1 },
      { values: right.subarray(group * k * n, (group + 1) * k * n), down: n, along: 1 },
      [size, n, k],
    );
    for (let place = 0; place < product.length; place += 1)
      expected[start * n + place] =
        (product[place] ?? NaN) + (epilogue === true ? (bias.values[place % n] ?? NaN) : 0);
    start += size;
  }
  requireSame(toNumbers((results as never as { out: never }).out), expected);
}

export interface WeightsCase extends Pick<DotCase, "groups" | "sizes" | "epilogue"> {
  readonly configuration?: MatmulConfiguration;
  /** Whether a and the weights are multiplied in f16; in bf16 where not. */
  readonly half?: boolean;
  /** Of what is drawn: the weights, how they are stored, and a. */
  readonly seed: number;
}

/** Rows times matrices in few bits, in whichever of their formats and with whichever scales the seed says. */
export async function checkWeights(device: Device, one: WeightsCase): Promise<void> {
  const { groups, epilogue, configuration, half } = one;
  const [m, n, k] = one.sizes;
  const random = new Random(one.seed);
  const as = half === true ? f16 : bf16;
  const { operand, text, error, draw } = quantizedOperand(random, as, true);
  const { arrays, at } = draw(random, { m, n, k, batch: groups.length });
  const numbers = (dtype: DType, shape: readonly number[], count: number) =>
    fromNumbers(
      dtype,
      shape,
      Float64Array.from({ length: count }, () => random.uniform() * 2 - 1),
    );
  const [a, bias] = [numbers(as, [m, k], m * k), numbers(f32, [n], n)];
  const op = raggedDot({
    ...{ a: as, b: operand, out: f32 },
    ...(epilogue === true && {
      inputs: { bias: tensor(f32, [symbols.n]) },
      epilogue: ({ sums, bias: added }: never) =>
        (sums as never as { add: (x: unknown) => never }).add(added),
    }),
    ...(configuration !== undefined && { configuration }),
  } as never);
  const { out } = (await device.run(op, {
    ...{ a, ...arrays, groupSizes: fromNumbers(i32, [groups.length], groups) },
    ...(epilogue === true && { bias }),
  } as never)) as never as { readonly out: never };
  const [found, left, further] = [toNumbers(out), toNumbers(a), toNumbers(bias)];
  const owner = groups.flatMap((size, group) => Array.from({ length: size }, () => group));
  for (let row = 0; row < m; row += 1)
    for (let column = 0; column < n; column += 1) {
      const group = owner[row];
      let sum = group === undefined || epilogue !== true ? 0 : (further[column] ?? NaN);
      let magnitude = Math.abs(sum);
      let factors = 0;
      for (let i = 0; group !== undefined && i < k; i += 1) {
        const term = (left[row * k + i] ?? NaN) * at(group, i, column);
        sum += term;
        magnitude += Math.abs(term);
        factors += Math.abs(left[row * k + i] ?? NaN);
      }
      // Weights are rounded once, least ones of f16 to multiples of its least number; tensor cores cut sums off, by less than this in a step.
      const least = half === true ? 2 ** -25 : 0;
      const bound = magnitude * (error + k * 2 ** -22) + factors * least;
      const number = found[row * n + column] ?? NaN;
      if (!(Math.abs(number - sum) <= bound))
        throw new Error(`${text}: [${row}, ${column}] is ${number}, not ${sum} ± ${bound}`);
    }
}

/** The products of the rows of two arrays, by groups. */
export async function checkOuter(
  device: Device,
  { groups, sizes: [m, n, k], dtype = bf16 }: Pick<DotCase, "groups" | "sizes" | "dtype">,
): Promise<void> {
  const [a, b] = [wholeNumbers(dtype, [m, k], 1), wholeNumbers(dtype, [m, n], 2)];
  const op = raggedOuter({
    ...{ a: dtype, b: dtype, out: dtype === i8 ? i32 : f32 },
    ...(dtype === f32 && { precision: "ieee" as const }),
    ...(dtype === f8e4m3fn && { accumulation: "fast" as const }),
  } as never);
  const results = await device.run(op, {
    ...{ a: a.array, b: b.array },
    groupSizes: fromNumbers(i32, [groups.length], groups),
  } as never);
  const expected: number[] = [];
  let start = 0;
  for (const size of groups) {
    for (let i = 0; i < k; i += 1)
      for (let j = 0; j < n; j += 1) {
        let sum = 0;
        for (let row = start; row < start + size; row += 1)
          sum += (a.values[row * k + i] ?? NaN) * (b.values[row * n + j] ?? NaN);
        expected.push(sum);
      }
    start += size;
  }
  requireSame(toNumbers((results as never as { out: never }).out), expected);
}

function requireSame(found: ArrayLike<number>, wanted: readonly number[] | Float64Array): void {
  const wrong = wanted.findIndex((value, index) => found[index] !== value);
  if (found.length !== wanted.length || wrong !== -1)
    throw new Error(`[${wrong}] of ${wanted.length}: ${found[wrong]} for ${wanted[wrong]}`);
}

const formats = [bf16, bf16, f32, f8e4m3fn, i8] as const;

/** The case of weights of a seed: its groups and sizes are those of `randomRagged`. */
export function randomRaggedWeights(seed: number, mostRows = 200): WeightsCase {
  const { groups, sizes, epilogue } = randomRagged(seed, mostRows);
  return { groups, sizes, seed, half: seed % 3 === 0, ...(epilogue === true && { epilogue }) };
}

/** The case of a seed: groups of any size, none among them, and rows of nobody. */
export function randomRagged(seed: number, mostRows = 200): DotCase {
  const random = new Random(seed);
  const chance = (parts: number): boolean => random.below(parts) === 0;
  const most = Math.min(mostRows, random.pick([1, 10, 100, 200]));
  const groups = Array.from({ length: 1 + random.below(9) }, () =>
    chance(4) ? 0 : 1 + random.below(most),
  );
  const rows = groups.reduce((sum, size) => sum + size, 0);
  const dtype = random.pick(formats);
  const size = (): number => (chance(4) ? 1 + random.below(300) : 16 * (1 + random.below(20)));
  return {
    name: `seed ${seed}`,
    groups,
    sizes: [rows + (chance(2) ? 0 : 1 + random.below(20)), size(), size()],
    dtype,
    byColumns: chance(2),
    // The bias is of f32, which sums of integers are not.
    epilogue: chance(3) && dtype !== i8,
  };
}
