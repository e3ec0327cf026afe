/**
 * Epilogues of random products: any of these, in this order, and further outputs of what they come to.
 *
 *   sums · factor [m]  + bias [n]  rectified  + residual [m, n]        before, and rows and columns combined
 */
import { bf16, f32, f64, i32, i8 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../../src/formats/hostarray.ts";
import type { HostArray } from "../../../src/formats/hostarray.ts";
import { tensor } from "../../../src/lang/index.ts";
import type { Tile } from "../../../src/lang/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { symbols } from "./operands.ts";
import type { Sizes } from "./operands.ts";

/** A number and what it may be wrong by. */
export interface Bounded {
  readonly value: number;
  readonly error: number;
}

/** The inputs as drawn, and what becomes of sums. */
export interface DrawnEpilogue {
  readonly arrays: { readonly [name: string]: HostArray };
  readonly apply: (sum: Bounded, layer: number, i: number, j: number) => Bounded;
}

type Combine = "sum" | "max" | "min";
const combines: readonly Combine[] = ["sum", "max", "min"];

export interface EpilogueOption {
  readonly text: string;
  /** What the specification says: inputs, outputs and the function; nothing where there is no epilogue. */
  readonly spec: object;
  readonly inputs: object;
  readonly draw: (random: Random, sizes: Sizes) => DrawnEpilogue;
  /** Outputs besides the result. */
  readonly before: boolean;
  readonly rows: Combine | undefined;
  readonly columns: Combine | undefined;
}

/** How much an operation of this format is rounded by. The reference is in float64 itself, and rounds its operations of that, too. */
export function roundingOf(dtype: DType): number {
  const known = new Map<DType, number>([
    [i32, 0],
    [f64, 2 ** -52],
    [f32, 2 ** -24],
  ]);
  return known.get(dtype) ?? NaN;
}

export function drawEpilogue(
  random: Random,
  { out, sums, batched }: { readonly out: DType; readonly sums: DType; readonly batched: boolean },
): EpilogueOption {
  const often = (): boolean => random.below(2) === 0;
  const has = { factor: often(), bias: often(), rectified: often(), residual: often() };
  const further = {
    before: random.below(3) === 0,
    rows: batched || often() ? undefined : random.pick(combines),
    columns: batched || often() ? undefined : random.pick(combines),
  };
  const small = sums === i32 ? i8 : sums === f64 ? f64 : bf16;
  const layered = batched && often();
  const hasOutputs = further.before || further.rows !== undefined || further.columns !== undefined;
  const epilogue = (tiles: Tiles): unknown => {
    const made = computed(tiles, sums, has.rectified);
    const done = made.cast(out);
    if (!hasOutputs) return done;
    return {
      out: done,
      ...(further.before && { before: tiles["sums"] }),
      ...(further.rows && { ofRows: made }),
      ...(further.columns && { ofColumns: made }),
    };
  };
  const isNone = !Object.values(has).includes(true) && !hasOutputs;
  const outputs = outputsOf(further, sums, batched);
  return {
    text: isNone ? "" : JSON.stringify({ ...has, ...further, layered }),
    spec: isNone ? {} : { ...(hasOutputs && { outputs }), epilogue },
    ...{ inputs: inputsOf(has, sums, small, layered), ...further },
    draw: (draws, sizes) => drawInputs(draws, { sums, small, has, layered }, sizes),
  };
}

type Tiles = { readonly [name: string]: Tile<"f32"> };

/** What is computed of sums with the inputs that there are. */
function computed(
  { sums: given, factor, bias, residual }: Tiles,
  dtype: DType,
  rectified: boolean,
): Tile<"f32"> {
  if (given === undefined) throw new Error("an epilogue is given sums");
  let made = given;
  if (factor !== undefined) made = made.mul(factor);
  if (bias !== undefined) made = made.add(bias);
  if (rectified) made = made.maximum(0);
  return residual === undefined ? made : made.add(residual.cast(dtype as DType<"f32">));
}

function inputsOf(has: Drawn["has"], sums: DType, small: DType, layered: boolean): object {
  const { m, n, batch } = symbols;
  return {
    ...(has.factor && { factor: tensor(sums, [m]) }),
    ...(has.bias && { bias: tensor(sums, [n]) }),
    ...(has.residual && { residual: tensor(small, layered ? [batch, m, n] : [m, n]) }),
  };
}

function outputsOf(
  { before, rows, columns }: Pick<EpilogueOption, "before" | "rows" | "columns">,
  sums: DType,
  batched: boolean,
): object {
  const { m, n, batch } = symbols;
  return {
    ...(before && { before: tensor(sums, batched ? [batch, m, n] : [m, n]) }),
    ...(rows && { ofRows: { array: tensor(sums, [m]), combine: rows } }),
    ...(columns && { ofColumns: { array: tensor(sums, [n]), combine: columns } }),
  };
}

interface Drawn {
  readonly sums: DType;
  /** The format of the residual. */
  readonly small: DType;
  readonly has: { readonly [N in "factor" | "bias" | "rectified" | "residual"]: boolean };
  readonly layered: boolean;
}

function drawInputs(
  random: Random,
  { sums, small, has, layered }: Drawn,
  { m, n, batch }: Sizes,
): DrawnEpilogue {
  const numbers = (dtype: DType, shape: readonly number[], factor: number): HostArray => {
    const count = shape.reduce((all, extent) => all * extent, 1);
    const draw = (): number =>
      dtype === i32 || dtype === i8 ? random.below(7) - 3 : (random.uniform() * 2 - 1) * factor;
    return fromNumbers(dtype, shape, Float64Array.from({ length: count }, draw));
  };
  const factor = numbers(sums, [m], 2);
  const bias = numbers(sums, [n], 5);
  const residual = numbers(small, layered ? [batch, m, n] : [m, n], 9);
  const [factors, biases, residuals] = [factor, bias, residual].map(toNumbers);
  const unit = roundingOf(sums);
  return {
    arrays: {
      ...(has.factor && { factor }),
      ...(has.bias && { bias }),
      ...(has.residual && { residual }),
    },
    apply: (sum, layer, i, j) => {
      let { value, error } = sum;
      const rounded = (): void => {
        error += (Math.abs(value) + error) * unit;
      };
      if (has.factor) {
        const by = factors?.[i] ?? NaN;
        [value, error] = [value * by, error * Math.abs(by)];
        rounded();
      }
      if (has.bias) {
        value += biases?.[j] ?? NaN;
        rounded();
      }
      if (has.rectified) value = Math.max(0, value);
      if (has.residual) {
        value += residuals?.[((layered ? layer : 0) * m + i) * n + j] ?? NaN;
        rounded();
      }
      return { value, error };
    },
  };
}

/** What numbers come to that are combined, in any order. */
export function combined(how: Combine, dtype: DType, numbers: readonly Bounded[]): Bounded {
  const values = numbers.map(({ value }) => value);
  const least = dtype === i32 ? -(2 ** 31) : -Infinity;
  const greatest = dtype === i32 ? 2 ** 31 - 1 : Infinity;
  const worst = numbers.reduce((most, { error }) => Math.max(most, error), 0);
  if (how === "max") return { value: values.reduce((a, b) => Math.max(a, b), least), error: worst };
  if (how === "min")
    return { value: values.reduce((a, b) => Math.min(a, b), greatest), error: worst };
  const magnitude = numbers.reduce((sum, { value, error }) => sum + Math.abs(value) + error, 0);
  const errors = numbers.reduce((sum, { error }) => sum + error, 0);
  const sum = values.reduce((before, value) => before + value, 0);
  return {
    // Sums of integers wrap around; in float64 these are exact.
    value: dtype === i32 ? sum | 0 : sum,
    error: errors + magnitude * numbers.length * roundingOf(dtype),
  };
}
