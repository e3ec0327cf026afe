/**
 * `matmul`: the matrix product as an operation, for any sizes.
 *
 *   specification ──▶ problem (formats, majors, batches, epilogue)
 *   sizes, target ──▶ configuration ──▶ launches: the product, and the sum of its parts where k is split
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation } from "../../device/operation.ts";
import { withWarmUp } from "../../device/warm-up-operations.ts";
import { shapeText } from "../../ir/size.ts";
import { dim } from "../../lang/index.ts";
import type { TensorSpec, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { givenArray, requireFields, requireRows, requiredArray } from "../support/arguments.ts";
import type { Fields } from "../support/arguments.ts";
import { splitPrecisions } from "../../lang/split-precision.ts";
import { blockScalesOf, blockScaleSpecs } from "./block-scales.ts";
import type { MatmulConfiguration } from "./configuration.ts";
import { inputShape } from "./epilogue/epilogue.ts";
import type { Epilogue, FurtherOutput } from "./epilogue/types.ts";
import { furtherOutputs } from "./epilogue/outputs.ts";
import type { EpilogueOutputs } from "./epilogue/outputs.ts";
import { planOf } from "./plan.ts";
import {
  accumulatorOf,
  multipliedFormat,
  operandOf,
  resultOf,
  sharedBatch,
  usualOutput,
  viewedBatch,
  viewsOf,
} from "./problem.ts";
import { equalSizes, nameTaken, refused } from "./argument-errors.ts";
import type { Accumulation, MatmulPrecision, MatmulProblem, Operand } from "./problem.ts";
import { prologuesOf, storedOperand, weightPrologue } from "./prologue/given-prologues.ts";
import { isQuantized } from "./weights/quantized.ts";
import type { QuantizedSpec, WeightFormat } from "./weights/quantized.ts";
import {
  isSparse24,
  metadataName,
  metadataSpec,
  requireAlone,
  sparseOperand,
} from "./weights/sparse-weights.ts";
import type { Sparse24Spec, SparseFormat } from "./weights/sparse-weights.ts";
import { matmulChoices } from "./tuning.ts";

/** A format, for an array of ordinary dimensions by rows; or an array with sizes and strides of its own. */
export type MatmulOperand<D extends DTypeName = DTypeName> = DType<D> | TensorSpec<D>;

/** Further inputs that an epilogue reads, by name. */
export interface EpilogueInputs {
  readonly [name: string]: TensorSpec;
}

type InputTiles<I extends EpilogueInputs> = {
  readonly [N in keyof I]: I[N] extends TensorSpec<infer D> ? Tile<D> : never;
};

/** No further outputs. */
export type NoOutputs = Readonly<Record<never, never>>;

/** A tile of the result, or of it and of all further outputs. */
type EpilogueResult<Out extends DTypeName, Outputs extends EpilogueOutputs> = [
  keyof Outputs,
] extends [never]
  ? Tile<Out>
  : { readonly out: Tile<Out> } & { readonly [N in keyof Outputs]: Tile };

/** The arrays of further outputs; none where their names are not known. */
type OutputArrays<Outputs extends EpilogueOutputs> = string extends keyof Outputs
  ? NoOutputs
  : {
      readonly [N in keyof Outputs]: Outputs[N] extends TensorSpec
        ? Outputs[N]
        : Outputs[N] extends { readonly array: infer A extends TensorSpec }
          ? A
          : never;
    };

/** What is computed of an operand before it is multiplied. */
export interface MatmulPrologue<
  Name extends "a" | "b",
  D extends DTypeName,
  Inputs extends EpilogueInputs,
> {
  /**
   * Those of the further inputs that it sees, and the epilogue does not: [m] of a or [n] of b, or one of these for each
   * group along k, [cdiv(k, group), m or n].
   */
  readonly inputs?: readonly (keyof Inputs & string)[];
  /** The format that it gives, in which the operand is multiplied. */
  readonly as: DType;
  /** A part of the operand, of [rows, k] or [k, columns], as it is to be multiplied. */
  readonly compute: (tiles: { readonly [N in Name]: Tile<D> } & InputTiles<Inputs>) => Tile;
}

/** Of each operand, the block of its elements that shares a scale, in the order of its axes. */
export interface ScaledBlocks {
  readonly a: readonly [rows: number, k: 128];
  readonly b: readonly [k: 128, columns: number];
}

/** The scales that blocks have. */
export type ScaleArrays<Blocks> = Blocks extends ScaledBlocks
  ? { readonly aScale: TensorSpec<"f32">; readonly bScale: TensorSpec<"f32"> }
  : Readonly<Record<never, never>>;

/** What `matmul` is made for: its operands, the format of the result, and the epilogue. */
export interface MatmulSpec<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
  Outputs extends EpilogueOutputs = NoOutputs,
  Blocks extends ScaledBlocks | undefined = ScaledBlocks | undefined,
> {
  /**
   * [m, k], or [batch, m, k]. Where all sizes and strides are numbers it may be a part of a larger array, with neighbours along rows or columns, and have
   * a batch of two axes, [outer, inner, m, k], which are 1 where one matrix is for all.
   */
  readonly a: MatmulOperand<A>;
  /** [k, n], or [batch, k, n]; strides [1, k] say that it lies by columns. */
  readonly b: MatmulOperand<B>;
  /**
   * The format of the result; that of the operands by default, bf16 of FP8, i32 of integers. Or its array, which may be a part of a larger one as operands may, with
   * neighbours along rows.
   */
  readonly out?: MatmulOperand<Out>;
  /** Further arrays that the epilogue sees: [m], [n] or [m, n]. */
  readonly inputs?: Inputs;
  /** Further arrays that the epilogue gives: of [m, n], or rows or columns combined into [m] or [n]. */
  readonly outputs?: Outputs;
  /** What is done with the sums of a piece of the result before it is stored; with outputs it gives a record. */
  readonly epilogue?: (
    tiles: { readonly sums: Tile<"f32"> } & InputTiles<Inputs>,
  ) => EpilogueResult<Out, NoInfer<Outputs>>;
  /** What is computed of an operand before it is multiplied. */
  readonly prologue?: {
    readonly a?: MatmulPrologue<"a", A, Inputs>;
    readonly b?: MatmulPrologue<"b", B, Inputs>;
  };
  /** How f32 is multiplied; for f32 alone, and always said. */
  readonly precision?: MatmulPrecision;
  /** How FP8 is summed; for FP8 alone, and always said. */
  readonly accumulation?: Accumulation;
  /**
   * The blocks of FP8 that share a scale of f32, of a [1, 128] or [rows, 128] and of b [128, columns]; sums are promoted. The scales are inputs: aScale
   * [cdiv(m, rows), cdiv(k, 128)] and bScale [cdiv(n, columns), cdiv(k, 128)].
   */
  readonly blockScales?: Blocks;
  /** Instead of what the model would choose. */
  readonly configuration?: MatmulConfiguration;
}

const fields: Fields = {
  a: "array",
  b: "operand",
  out: "array",
  inputs: "named",
  outputs: "settings",
  epilogue: "function",
  prologue: "settings",
  precision: "choice",
  accumulation: "choice",
  blockScales: "settings",
  configuration: "settings",
};

/** The operation that `matmul` makes. */
export type Matmul<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
  Outputs extends EpilogueOutputs = NoOutputs,
> = Operation<
  { readonly a: TensorSpec<A>; readonly b: TensorSpec<B> } & Inputs,
  { readonly out: TensorSpec<Out> } & OutputArrays<Outputs>,
  Readonly<Record<never, never>>,
  MatmulConfiguration
>;

/** A specification whose b are weights in few bits. */
export type QuantizedMatmulSpec<
  A extends DTypeName,
  D extends WeightFormat,
  S extends DTypeName,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
  Z extends boolean = boolean,
  Outputs extends EpilogueOutputs = NoOutputs,
> = Omit<MatmulSpec<A, D, Out, Inputs, Outputs>, "b" | "prologue"> & {
  /** The quantized weights, as `quantized` describes them. */
  readonly b: QuantizedSpec<D, S, Z>;
};

/** Scales, and zero points where there are some. */
export type WeightScales<
  D extends DTypeName,
  S extends DTypeName,
  Z extends boolean,
> = Z extends true
  ? { readonly bScale: TensorSpec<S>; readonly bZero: TensorSpec<D> }
  : { readonly bScale: TensorSpec<S> };

/** A specification whose b are sparse weights. */
export type SparseMatmulSpec<
  A extends DTypeName,
  D extends SparseFormat,
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
> = Omit<MatmulSpec<A, D, Out, Inputs>, "b" | "prologue"> & { readonly b: Sparse24Spec<D> };

/** The product of two matrices, or of batches of them, for any sizes. */
export function matmul<
  A extends DTypeName,
  D extends SparseFormat,
  Out extends DTypeName = A,
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
>(
  spec: SparseMatmulSpec<A, D, Out, Inputs>,
): Matmul<A, D, Out, Inputs & { readonly bMetadata: TensorSpec<"u16"> }>;
export function matmul<
  A extends DTypeName,
  D extends WeightFormat,
  S extends DTypeName,
  Out extends DTypeName = A,
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
  Z extends boolean = false,
  const Outputs extends EpilogueOutputs = NoOutputs,
>(
  spec: QuantizedMatmulSpec<A, D, S, Out, Inputs, Z, Outputs>,
): Matmul<A, D, Out, Inputs & WeightScales<D, S, Z>, Outputs>;
export function matmul<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName = A,
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
  const Outputs extends EpilogueOutputs = NoOutputs,
  const Blocks extends ScaledBlocks | undefined = undefined,
>(
  spec: MatmulSpec<A, B, Out, Inputs, Outputs, Blocks>,
): Matmul<A, B, Out, Inputs & ScaleArrays<Blocks>, Outputs>;
export function matmul(spec: GivenSpec): unknown {
  const location = captureLocation();
  requireFields("matmul", spec, fields, location);
  const problem = problemOf("matmul", spec, location);
  const { configuration } = spec;
  return libraryOperation(
    {
      name: "matmul",
      inputs: { a: problem.a, b: problem.b, ...problem.inputs, ...problem.prologueInputs },
      outputs: {
        out: problem.out,
        ...Object.fromEntries(problem.outputs.map(({ name, spec: output }) => [name, output])),
      },
      ...(configuration === undefined && { choices: matmulChoices(problem) }),
      plan: (dimensions, target, choice) => {
        const chosen = configuration ?? (choice as MatmulConfiguration | undefined);
        return matmulPlan(problem, chosen, dimensions, target, location);
      },
    },
    spec,
  );
}

const matmulPlan = withWarmUp(planOf, {
  plan: () => matmul({ a: dtypes.bf16, b: dtypes.bf16 }).plan({ m: 2048, n: 2048, k: 2048 }),
});

/** What either form of specification gives. */
export type GivenSpec = Omit<
  MatmulSpec<DTypeName, DTypeName, DTypeName, EpilogueInputs>,
  "a" | "b" | "epilogue" | "prologue" | "outputs"
> & {
  readonly outputs?: unknown;
  readonly a: unknown;
  readonly b: unknown;
  readonly epilogue?: unknown;
  readonly prologue?: unknown;
};

/** What a specification asks for, checked. */
export function problemOf(of: string, spec: GivenSpec, location: Location): MatmulProblem {
  const [m, n, k] = [dim("m"), dim("n"), dim("k")];
  const a = operandOf("a", of, givenArray("a", of, spec.a, [m, k], location), location);
  const weights = isQuantized(spec.b) ? spec.b : undefined;
  const sparse = isSparse24(spec.b) ? spec.b : undefined;
  const stored = sparse !== undefined ? sparseOperand(sparse) : weights && storedOperand(weights);
  const b = stored ?? operandOf("b", of, givenArray("b", of, spec.b, [k, n], location), location);
  requireSharedK(of, a, b, location);
  const viewed = viewedBatch(of, a, b, location);
  const { batch, batched } = viewed ?? sharedBatch(of, a, b, location);
  const given = spec.inputs ?? {};
  requireInputs(of, given, location);
  if (sparse !== undefined) requireAlone(spec.prologue, given, location);
  const { prologues, prologueInputs: ofPrologues } =
    weights === undefined
      ? prologuesOf(spec.prologue, given, { a, b }, location)
      : weightPrologue(weights, spec.prologue, given, batched.b, location);
  const multiplied = multipliedFormat({ a: a.spec, b: b.spec, prologues }, "a");
  const accumulator = accumulatorOf(
    of,
    multiplied,
    multipliedFormat({ a: a.spec, b: b.spec, prologues }, "b"),
    location,
  );
  requireSaid(of, spec, multiplied, location);
  const sizes = { m: a.rows, n: b.columns, k: a.columns, batch };
  const result = resultOf(
    of,
    spec.out ?? usualOutput(multiplied, accumulator),
    sizes,
    viewed?.axes,
    location,
  );
  const out = result.spec;
  const blockScales = blockScalesOf(of, spec.blockScales, given, location);
  if (blockScales !== undefined) requireScalable(of, spec, multiplied, location);
  const batches = { a: batched.a ? batch : undefined, b: batched.b ? batch : undefined };
  const prologueInputs = {
    ...(sparse === undefined ? ofPrologues : { [metadataName]: metadataSpec(...sparse.shape) }),
    ...(blockScales && blockScaleSpecs(blockScales, sizes, batches)),
  };
  const inputs = Object.fromEntries(
    Object.entries(given).filter(([name]) => !Object.hasOwn(prologueInputs, name)),
  );
  requireShapes(inputs, { of, sizes }, location);
  const views = viewsOf({ a, b, out: result }, viewed?.axes);
  requireViewable(
    of,
    views,
    [weights, sparse, spec.blockScales, prologues.a, prologues.b],
    location,
  );
  const outputs = furtherOutputs(spec.outputs, { of, sizes }, location);
  requireEpilogue(spec, outputs, location);
  return {
    of,
    a: a.spec,
    b: b.spec,
    out,
    sizes,
    major: { a: a.byRows ? "k" : "m", b: b.byRows ? "n" : "k" },
    batched,
    views,
    accumulator,
    precision: spec.precision,
    accumulation: spec.accumulation,
    inputs,
    epilogue: spec.epilogue as Epilogue | undefined,
    ...{ outputs, prologues, prologueInputs, weights, blockScales, sparse: sparse !== undefined },
  };
}

function requireSharedK(of: string, a: Operand, b: Operand, location: Location): void {
  if (equalSizes(a.columns, b.rows)) return;
  throw refused(
    "TW9902",
    `the operands of ${of} do not share k`,
    "a of [m, k] and b of [k, n]",
    `a of ${shapeText([a.rows, a.columns])} and b of ${shapeText([b.rows, b.columns])}`,
    location,
  );
}

function requireShapes(
  inputs: EpilogueInputs,
  problem: Pick<MatmulProblem, "of" | "sizes">,
  location: Location,
): void {
  for (const [name, input] of Object.entries(inputs)) inputShape(name, input, problem, location);
}

/** Refuses parts of larger arrays where operands are computed on their way, and of other products than `matmul`. */
function requireViewable(
  of: string,
  views: unknown,
  computed: readonly unknown[],
  location: Location,
): void {
  const isWhole = computed.every((each) => each === undefined);
  if (views === undefined || (of === "matmul" && isWhole)) return;
  throw refused(
    "TW9902",
    `an operand or the result of ${of} is part of a larger array`,
    of === "matmul"
      ? "whole arrays where operands are computed, or have scales"
      : "whole arrays, by rows or by columns",
    "strides",
    location,
  );
}

/** What functions of users know operands, sums and the result by. */
const ownNames: readonly string[] = ["a", "b", "sums", "out"];

/** Refuses further inputs that are called as something else is, and those that kernels would read as if they lay by rows. */
function requireInputs(of: string, given: EpilogueInputs, location: Location): void {
  for (const [name, input] of Object.entries(given)) {
    if (ownNames.includes(name)) throw nameTaken(name, "something else", location);
    requireRows(name, of, requiredArray(name, of, input, location), location);
  }
}

/** Refuses outputs that nobody gives, or that are called as inputs are. */
function requireEpilogue(
  { epilogue, inputs = {} }: Pick<GivenSpec, "epilogue" | "inputs">,
  outputs: readonly FurtherOutput[],
  location: Location,
): void {
  const taken = outputs.find(({ name }) => Object.hasOwn(inputs, name) || ownNames.includes(name));
  if (taken !== undefined) throw nameTaken(taken.name, "something else", location);
  if (outputs.length === 0 || epilogue !== undefined) return;
  throw refused(
    "TW9905",
    "no epilogue gives the outputs of matmul",
    "epilogue: ({ sums }) => ({ out: …, … })",
    "none",
    location,
  );
}

/** Refuses blocks of what is not summed in parts of 128. */
function requireScalable(
  of: string,
  { accumulation, prologue }: Pick<GivenSpec, "accumulation" | "prologue">,
  dtype: DType,
  location: Location,
): void {
  const isFp8 = dtype === dtypes.f8e4m3fn || dtype === dtypes.f8e5m2;
  if (isFp8 && accumulation === "promoted" && prologue === undefined) return;
  throw refused(
    "TW9903",
    `${of} scales blocks of FP8 whose sums are promoted`,
    'FP8, accumulation: "promoted" and no prologue',
    isFp8 ? `accumulation ${optionText(accumulation)}` : dtype.name,
    location,
  );
}

/** What changes the numbers is never chosen silently. */
function requireSaid(
  of: string,
  { precision, accumulation }: Pick<GivenSpec, "precision" | "accumulation">,
  dtype: DType,
  location: Location,
): void {
  const said = (name: string, value: unknown, wanted: readonly string[], needed: boolean): void => {
    if (needed ? wanted.includes(value as string) : value === undefined) return;
    const expected = needed
      ? wanted.map((word) => `${name}: "${word}"`).join(", or ")
      : `no ${name}`;
    throw refused(
      "TW9903",
      `${of} of ${dtype.name} ${needed ? "needs" : "takes no"} ${name}`,
      expected,
      optionText(value),
      location,
    );
  };
  said("precision", precision, ["ieee", ...splitPrecisions], dtype === dtypes.f32);
  said(
    "accumulation",
    accumulation,
    ["fast", "promoted"],
    dtype === dtypes.f8e4m3fn || dtype === dtypes.f8e5m2,
  );
}
