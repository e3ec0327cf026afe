/**
 * `scaledMatmul`: a · bᵀ of operands in formats with scales along k, a [m, k] and b [n, k], as programs and checkpoints have them.
 *
 *   both FP8 by blocks of f32 scales    ──▶ FP8, sums of 128 of k scaled as they are promoted (`block-scales.ts`)
 *   b in an MX format or nvfp4          ──▶ b as `packWeights` stores it ──▶ dequantised in the product's prologue, sums in f32
 *   otherwise                           ──▶ operands with scales become bf16 first ──▶ the product of bf16, sums in f32
 *
 * The first way is taken where it errs by no more than the others (`scaled-errors.ts`): in MX formats and nvfp4 elements times scales are numbers of bf16, where FP8
 * would cut sums off after 13 bits. Becoming bf16 writes and reads two bytes an element, beside few rows longer than the product takes; packed, 4 bits stay 4 bits. Of many
 * rows the product of bf16 is the faster one: the second way is taken where the model says so. a always becomes bf16 there. Weights that many products share are stored
 * once instead, by `packWeights`, and multiplied by `matmul`.
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import { scaledFormats } from "../../formats/scaled/formats.ts";
import type { ScaledFormat, ScaledFormatName } from "../../formats/scaled/formats.ts";
import { scaleLayouts } from "../../formats/scaled/layout.ts";
import type { ScaleLayout } from "../../formats/scaled/layout.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, Planned, PlannedArgument, PlannedLaunch } from "../../device/operation.ts";
import { ceilDivSize, multiplySizes } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { cdiv, dim, kernel, slice, tensor } from "../../lang/index.ts";
import type { Empty, KernelDefinition, Ref, Scalar, TensorSpec, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import { requireFields } from "../support/arguments.ts";
import type { Fields } from "../support/arguments.ts";
import { nameTaken, refused } from "./argument-errors.ts";
import { raggedProduct } from "../ragged/ragged-dot.ts";
import type { MatmulConfiguration, ProductSizes, TiledConfiguration } from "./configuration.ts";
import { problemOf } from "./matmul.ts";
import type { EpilogueInputs } from "./matmul.ts";
import { planOf } from "./plan.ts";
import { productSizes } from "./tuning.ts";
import {
  bf16ProductError,
  errorText,
  isExactInBf16,
  promotedProductError,
} from "./scaled-errors.ts";
import { choicesOf, wayFor, withPackedWeights } from "./scaled-ways.ts";
import type { Ways } from "./scaled-ways.ts";
import { expandGroups, packedUnit, quantized } from "./weights/quantized.ts";
import type { QuantizedSpec, ScaleFormat, WeightFormat } from "./weights/quantized.ts";
import { plainScales, tiledScales } from "./weights/pack-weights.ts";

/** An operand: the name of a format with scales, or bf16. */
export type ScaledOperandFormat = ScaledFormatName | DType<"bf16">;

/** What `scaledMatmul` is made for. */
export interface ScaledMatmulSpec<
  Out extends DTypeName,
  Inputs extends EpilogueInputs,
  A extends ScaledOperandFormat = ScaledOperandFormat,
  B extends ScaledOperandFormat = ScaledOperandFormat,
  G extends boolean = boolean,
  R extends boolean = boolean,
> {
  /** The format of a, [m, k] or [batch, m, k]; scales are the input aScale. */
  readonly a: A;
  /** The format of b, [n, k] or [batch, n, k]; scales are the input bScale. */
  readonly b: B;
  /** Whether operands have a batch in front. */
  readonly batched?: boolean;
  /**
   * Whether rows of a, [m, k], are in groups, one after the other, each for a matrix of b, [g, n, k], as of `raggedDot`: the input groupSizes, [g] of i32, says how many rows each has.
   */
  readonly grouped?: R;
  /** How scales lie, of each operand; plain by default. */
  readonly scaleLayout?: { readonly a?: ScaleLayout; readonly b?: ScaleLayout };
  /** Whether there is an input globalScale, [1] of f32, by which sums are multiplied before the epilogue. */
  readonly globalScale?: G;
  /** The format of the result; bf16 by default. */
  readonly out?: DType<Out>;
  /** Further arrays that the epilogue sees. */
  readonly inputs?: Inputs;
  /** What is done with the sums, which are scaled, before they are stored. */
  readonly epilogue?: (
    tiles: { readonly sums: Tile<"f32"> } & { readonly [N in keyof Inputs]: Tile },
  ) => Tile;
  /**
   * Where b is dequantised, in MX formats and nvfp4: in the product's prologue, or by a launch before that writes bf16. By default what the model says is
   * faster.
   */
  readonly dequantize?: "prologue" | "before";
  /** Instead of what the model would choose. */
  readonly configuration?: MatmulConfiguration;
}

const fields: Fields = {
  ...{
    a: "scaledFormat",
    b: "scaledFormat",
    batched: "flag",
    grouped: "flag",
    scaleLayout: "settings",
    globalScale: "flag",
  },
  ...{ out: "format", inputs: "named", epilogue: "function", configuration: "settings" },
  dequantize: "choice",
};

/** Scales are there for operands in formats with such. */
type ScaleInputs<A, B, G, R> = {
  readonly a: TensorSpec;
  readonly b: TensorSpec;
} & (A extends string ? { readonly aScale: TensorSpec } : Readonly<Record<never, never>>) &
  (B extends string ? { readonly bScale: TensorSpec } : Readonly<Record<never, never>>) &
  (G extends true ? { readonly globalScale: TensorSpec<"f32"> } : Readonly<Record<never, never>>) &
  (R extends true ? { readonly groupSizes: TensorSpec<"i32"> } : Readonly<Record<never, never>>);

/** An operand as it is given. */
interface GivenOperand {
  readonly name: "a" | "b";
  readonly format: ScaledFormat | undefined;
  readonly layout: ScaleLayout;
  readonly shape: readonly Size[];
}

/** One that has scales. */
interface MadeOperand extends GivenOperand {
  readonly format: ScaledFormat;
}

function isMade(operand: GivenOperand): operand is MadeOperand {
  return operand.format !== undefined;
}

const scaleNames = { a: "aScale", b: "bScale" } as const;

/** The product of operands in formats with scales. */
export function scaledMatmul<
  Out extends DTypeName = "bf16",
  const Inputs extends EpilogueInputs = Readonly<Record<never, never>>,
  A extends ScaledOperandFormat = ScaledOperandFormat,
  B extends ScaledOperandFormat = ScaledOperandFormat,
  const G extends boolean = false,
  const R extends boolean = false,
>(
  spec: ScaledMatmulSpec<Out, Inputs, A, B, G, R>,
): Operation<
  ScaleInputs<A, B, G, R> & Inputs,
  { readonly out: TensorSpec<Out> },
  Empty,
  MatmulConfiguration
>;
export function scaledMatmul(spec: GivenSpec): unknown {
  const location = captureLocation();
  requireFields("scaledMatmul", spec, fields, location);
  if (spec.grouped === true) return groupedMatmul(spec, location);
  const sizes = { m: dim("m"), n: dim("n"), k: dim("k"), batch: dim("batch") };
  const lead = spec.batched === true ? [sizes.batch] : [];
  const a = operandOf("a", spec, [...lead, sizes.m, sizes.k], location);
  const b = operandOf("b", spec, [...lead, sizes.n, sizes.k], location);
  const isPromoted = isByBlocks(a) && isByBlocks(b) && losesLess([a, b]);
  const asked = inner(spec, a, b, isPromoted, location);
  const problem = problemOf("scaledMatmul", asked, location);
  const weights = isPromoted ? undefined : packable(b);
  requireDequantize(spec.dequantize, weights, location);
  const packed = weights && {
    weights,
    problem: problemOf("scaledMatmul", { ...asked, b: weights }, location),
  };
  const inputs = {
    ...{ a: tensor(elementOf(a), a.shape), b: tensor(elementOf(b), b.shape) },
    ...scaleInput(a),
    ...scaleInput(b),
    ...problem.inputs,
  };
  const { configuration, dequantize } = spec;
  const made = isPromoted ? [] : [a, b].filter(isMade);
  const ways = { problem, packed, dequantize };
  return libraryOperation(
    {
      name: "scaled_matmul",
      inputs,
      outputs: { out: problem.out },
      ...(configuration === undefined && { choices: choicesOf(ways) }),
      plan: (dimensions, target, choice) => {
        const chosen = configuration ?? (choice as MatmulConfiguration | undefined);
        const way = wayFor(ways, dimensions, target);
        const product = planOf(way.problem, chosen, dimensions, target, location);
        const sizes = productSizes(problem, dimensions);
        const operands = made.filter(({ name }) => name === "a" || way.weights === undefined);
        const note = isPromoted ? promotedNote(sizes.k) : convertedNote(made, way.weights, sizes.k);
        const whole = withOperands(product, operands, sizes, dimensions);
        const noted = { ...whole, notes: [...(whole.notes ?? []), note] };
        return way.weights === undefined
          ? noted
          : withPackedWeights(noted, way.weights, b, sizes, dimensions, target);
      },
    },
    spec,
  );
}

/** The same of rows in groups: operands become what they do of batches whose rows are as many as those of groups on average, and the product is `raggedDot`. */
function groupedMatmul(spec: GivenSpec, location: Location): Operation {
  if (spec.batched === true)
    throw refused(
      "TW9905",
      "rows of scaledMatmul are in groups or in batches",
      "grouped: true or batched: true",
      "both",
      location,
    );
  const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const a = operandOf("a", spec, [m, k], location);
  const b = operandOf("b", spec, [g, n, k], location);
  // Groups begin at any row, within a block of several, too.
  const isOfRows = a.format?.block[0] === 1;
  const isPromoted = isOfRows && isByBlocks(a) && isByBlocks(b) && losesLess([a, b]);
  const asked = {
    ...inner(spec, a, b, isPromoted, location),
    ...tiledOf(spec.configuration, location),
  };
  const before = raggedProduct(asked, location);
  const weights = isPromoted ? undefined : packable(b);
  requireDequantize(spec.dequantize, weights, location);
  const fromPacked = weights && raggedProduct({ ...asked, b: weights }, location);
  const made = isPromoted ? [] : [a, b].filter(isMade);
  const alike = scaledWays(spec, location);
  const scales = { ...scaleInput(a), ...scaleInput(b) };
  const { a: _, b: __, ...others } = before.inputs;
  return libraryOperation(
    {
      name: "scaled_matmul",
      inputs: {
        ...{ a: tensor(elementOf(a), a.shape), b: tensor(elementOf(b), b.shape) },
        ...{ ...scales, ...others },
      },
      outputs: before.outputs,
      plan: (dimensions, target) => {
        const { m: rows = 0, n: columns = 0, k: depth = 0, g: groups = 0 } = dimensions;
        const sizes = { m: rows, n: columns, k: depth, batch: groups };
        const each = Math.ceil(rows / Math.max(1, groups));
        const way = alike && wayFor(alike, { ...sizes, m: each }, target);
        const own = way?.weights === undefined ? undefined : weights;
        const product = (own === undefined ? before : (fromPacked ?? before)).plan(
          dimensions,
          target,
        );
        const operands = made.filter(({ name }) => name === "a" || own === undefined);
        const note = isPromoted ? promotedNote(depth) : convertedNote(made, own, depth);
        const whole = withOperands(product, operands, sizes, dimensions);
        const noted = { ...whole, notes: [...(whole.notes ?? []), note] };
        return own === undefined
          ? noted
          : withPackedWeights(noted, own, b, sizes, dimensions, target);
      },
    },
    spec,
  );
}

/** A given configuration, of those that groups have. */
function tiledOf(
  configuration: MatmulConfiguration | undefined,
  location: Location,
): { readonly configuration?: TiledConfiguration } {
  if (configuration === undefined) return {};
  if (configuration.kernel === "persistent" || configuration.kernel === "plain")
    return { configuration };
  throw refused(
    "TW9904",
    "rows in groups have no such kernel",
    '"persistent" or "plain"',
    configuration.kernel,
    location,
  );
}

/** The ways of a batch, by whose times those of groups are chosen; undefined where b cannot be packed. */
function scaledWays(spec: GivenSpec, location: Location): Ways | undefined {
  const [m, n, k, batch] = [dim("m"), dim("n"), dim("k"), dim("batch")];
  const plain: GivenSpec = { a: spec.a, b: spec.b };
  const a = operandOf("a", plain, [batch, m, k], location);
  const b = operandOf("b", plain, [batch, n, k], location);
  const weights = packable(b);
  if (weights === undefined) return undefined;
  const asked = inner(plain, a, b, false, location);
  return {
    problem: problemOf("scaledMatmul", asked, location),
    packed: { weights, problem: problemOf("scaledMatmul", { ...asked, b: weights }, location) },
    dequantize: spec.dequantize,
  };
}

/** b as the product's prologue reads it; undefined where it has none for it. */
function packable({ format, shape }: GivenOperand): QuantizedSpec | undefined {
  if (format === undefined || !isExactInBf16(format)) return undefined;
  const [n = 0, k = 0] = shape.slice(-2);
  const [batch] = shape.slice(0, -2);
  return quantized(
    format.element as DType<WeightFormat>,
    batch === undefined ? [k, n] : [batch, k, n],
    { groupSize: format.block[1], scale: format.scale as DType<ScaleFormat>, as: dtypes.bf16 },
  );
}

/** Whether FP8 with promoted sums errs by no more than what bf16 makes of the operands, whatever k is: that adds errors of sums to the latter. */
function losesLess(operands: readonly GivenOperand[]): boolean {
  const rounded = operands.filter(({ format }) => format !== undefined && !isExactInBf16(format));
  return promotedProductError(packedUnit) <= bf16ProductError(rounded.length, 0);
}

function promotedNote(k: number): string {
  return `FP8 with promoted sums: an error of ${errorText(promotedProductError(k))}, of operands in bf16 ${errorText(bf16ProductError(2, k))}`;
}

function convertedNote(
  made: readonly MadeOperand[],
  weights: QuantizedSpec | undefined,
  k: number,
): string {
  const rounded = made.filter(({ format }) => !isExactInBf16(format)).length;
  const error = `an error of ${errorText(bf16ProductError(rounded, k))}`;
  const before = made.filter(({ name }) => name === "a" || weights === undefined);
  const names = before.map(({ name }) => name).join(" and ");
  const first =
    before.length === 0
      ? ""
      : `${names} ${before.length === 1 ? "becomes" : "become"} bf16 first; `;
  const packedText = weights === undefined ? "" : "b is dequantised in the prologue; ";
  return `${first}${packedText}${error}; weights that are used often are better stored once, by packWeights`;
}

function requireDequantize(
  given: unknown,
  weights: QuantizedSpec | undefined,
  location: Location,
): void {
  const isKnown = given === undefined || given === "before" || given === "prologue";
  if (isKnown && (given !== "prologue" || weights !== undefined)) return;
  throw refused(
    "TW9905",
    "b is dequantised nowhere like that",
    weights === undefined
      ? '"before": the prologue takes b in MX formats and nvfp4'
      : '"prologue" or "before"',
    optionText(given),
    location,
  );
}

/** What the specification gives, whatever its epilogue sees. */
type GivenSpec = Omit<ScaledMatmulSpec<DTypeName, EpilogueInputs>, "epilogue"> & {
  readonly epilogue?: unknown;
};

function operandOf(
  name: "a" | "b",
  spec: GivenSpec,
  shape: readonly Size[],
  location: Location,
): GivenOperand {
  const given: unknown = spec[name];
  const layout = spec.scaleLayout?.[name] ?? "plain";
  if (given === dtypes.bf16) return { name, format: undefined, layout, shape };
  const format =
    typeof given === "string" && Object.hasOwn(scaledFormats, given)
      ? scaledFormats[given as ScaledFormatName]
      : undefined;
  if (format === undefined)
    throw refused(
      "TW9901",
      `${name} of scaledMatmul has no such format`,
      `bf16, or one of ${Object.keys(scaledFormats).join(", ")}`,
      optionText(given),
      location,
    );
  const isTiled = format.block[0] === 1 && format.block[1] < packedUnit && shape.length === 2;
  if (!scaleLayouts.includes(layout) || (layout !== "plain" && !isTiled))
    throw refused(
      "TW9905",
      `scales of ${name} lie in no such order`,
      "one of plain, padded and tiled; plain for blocks of 128, and beside a batch",
      optionText(layout),
      location,
    );
  return { name, format, layout, shape };
}

function elementOf({ format }: GivenOperand): DType {
  return format?.element ?? dtypes.bf16;
}

/** FP8 by blocks of 128 along k with scales of f32. */
function isByBlocks({ format }: GivenOperand): boolean {
  return format !== undefined && format.scale === dtypes.f32 && format.block[1] === packedUnit;
}

/** The shape of an operand's scales; those that may be padded have sizes of their own. */
function scaleInput({ name, format, layout, shape }: GivenOperand): {
  readonly [name: string]: TensorSpec;
} {
  if (format === undefined) return {};
  const [across, along] = format.block;
  const [rows = 0, k = 0] = shape.slice(-2);
  const own = [dim(`${name}_scale_rows`), dim(`${name}_scale_blocks`)];
  const shapes: { readonly [L in ScaleLayout]: readonly Size[] } = {
    plain: [
      ...shape.slice(0, -2),
      across === 1 ? rows : ceilDivSize(rows, across),
      ceilDivSize(k, along),
    ],
    padded: own,
    tiled: [...own, 32, 4, 4],
  };
  return { [scaleNames[name]]: tensor(format.scale, shapes[layout]) };
}

/** The product that is made of the operands, as `matmul` is asked for it. */
function inner(
  spec: GivenSpec,
  a: GivenOperand,
  b: GivenOperand,
  isPromoted: boolean,
  location: Location,
) {
  const { inputs = {}, globalScale = false } = spec;
  const epilogue = spec.epilogue as ((tiles: object) => Tile) | undefined;
  const taken = ["aScale", "bScale", "globalScale"].find((name) => Object.hasOwn(inputs, name));
  if (taken !== undefined) throw nameTaken(taken, "scales of scaledMatmul", location);
  const out = spec.out ?? dtypes.bf16;
  const [n = 0, k = 0] = b.shape.slice(-2);
  const lead = b.shape.slice(0, -2);
  const strides = [...(lead.length === 0 ? [] : [multiplySizes(n, k)]), 1, k];
  const format = (of: GivenOperand): DType => (isPromoted ? elementOf(of) : dtypes.bf16);
  const finished = (tiles: { readonly [name: string]: Tile }): Tile => {
    const { sums, globalScale: factor } = tiles as { readonly [name: string]: Tile<"f32"> };
    if (sums === undefined) throw new Error("a product has sums");
    const scaled = factor === undefined ? sums : sums.mul(factor);
    const { globalScale: _, ...others } = tiles;
    return epilogue === undefined ? scaled.cast(out) : epilogue({ ...others, sums: scaled });
  };
  return {
    a: tensor(format(a), a.shape),
    b: tensor(format(b), [...lead, k, n], { strides }),
    out,
    inputs: { ...inputs, ...(globalScale && { globalScale: tensor(dtypes.f32, [1]) }) },
    ...((globalScale || epilogue !== undefined) && { epilogue: finished }),
    ...(isPromoted && {
      accumulation: "promoted" as const,
      blockScales: {
        a: [a.format?.block[0] ?? 1, 128] as const,
        b: [128, b.format?.block[0] ?? 1] as const,
      },
    }),
  };
}

/** The plan of a product, with launches before it that make operands of what is given. */
function withOperands(
  product: Planned<MatmulConfiguration>,
  made: readonly MadeOperand[],
  sizes: ProductSizes,
  given: { readonly [name: string]: number },
): Planned<MatmulConfiguration> {
  const { m, n, k, batch } = sizes;
  if (made.length === 0 || m * n * k * batch === 0) return product;
  const nameOf = (name: string): string => `${name} in bf16`;
  const isOwn = (name: string): boolean => made.some((each) => each.name === name);
  const renamed = (each: PlannedArgument): PlannedArgument =>
    typeof each === "object" && "argument" in each && isOwn(each.argument)
      ? { ...each, argument: nameOf(each.argument) }
      : each;
  const launches = (): readonly PlannedLaunch[] => [
    ...made.map((operand) => operandLaunch(operand, nameOf(operand.name), sizes, given)),
    ...(typeof product.launches === "function" ? product.launches() : product.launches).map(
      (launch) => ({
        ...launch,
        arguments: Object.fromEntries(
          Object.entries(launch.arguments).map(([name, given]) => [name, renamed(given)]),
        ),
      }),
    ),
  ];
  return {
    ...product,
    scratch: {
      ...product.scratch,
      ...Object.fromEntries(
        made.map(({ name, shape }) => [
          nameOf(name),
          { dtype: dtypes.bf16, shape: [name === "a" ? layersOf(shape, batch) * m : batch * n, k] },
        ]),
      ),
    },
    launches,
  };
}

/** Matrices of an operand: one where it has no axis in front. */
function layersOf(shape: readonly Size[], batch: number): number {
  return shape.length > 2 ? batch : 1;
}

/** Rows of a block. */
const rowsOfBlock = 64;

function operandLaunch(
  { name, format, layout, shape }: MadeOperand,
  target: string,
  { m, n, k, batch: layers }: ProductSizes,
  given: { readonly [name: string]: number },
): PlannedLaunch {
  const batch = layersOf(shape, layers);
  const rows = name === "a" ? m : n;
  const [across, along] = format.block;
  const plain = [Math.ceil(rows / across), Math.ceil(k / along)] as const;
  const own = layout === "plain";
  const [scaleRows, blocks] = [
    own ? plain[0] : (given[`${name}_scale_rows`] ?? 0),
    own ? plain[1] : (given[`${name}_scale_blocks`] ?? 0),
  ];
  const tiles = layout === "tiled" ? [32, 4, 4] : [];
  const lead = own ? [batch] : [];
  return {
    kernel: operandKernel(format, layout),
    arguments: {
      x: { argument: name, shape: [batch, rows, k] },
      scale: { argument: scaleNames[name], shape: [...lead, scaleRows, blocks, ...tiles] },
      y: { argument: target, shape: [batch, rows, k] },
    },
    dimensions: {
      ...(shape.length > 0 && { batch, rows, k }),
      scale_rows: scaleRows,
      scale_blocks: blocks,
    },
  };
}

/** Elements times scales, in parts of 64 rows and 128 elements along k. */
function operandKernel(format: ScaledFormat, layout: ScaleLayout): KernelDefinition {
  const [batch, rows, k] = [dim("batch"), dim("rows"), dim("k")];
  const [scaleRows, blocks] = [dim("scale_rows"), dim("scale_blocks")];
  const shapes: { readonly [L in ScaleLayout]: readonly Size[] } = {
    plain: [batch, scaleRows, blocks],
    padded: [scaleRows, blocks],
    tiled: [scaleRows, blocks, 32, 4, 4],
  };
  return kernel(
    {
      name: "with_scales",
      grid: { layer: batch, j: cdiv(rows, rowsOfBlock), i: cdiv(k, packedUnit) },
      inputs: {
        x: tensor(format.element, [batch, rows, k]),
        scale: tensor(format.scale, shapes[layout]),
      },
      outputs: { y: tensor(dtypes.bf16, [batch, rows, k]) },
    },
    (argument) => {
      const { layer, i, j, x, y } = argument as unknown as OperandArguments;
      const { scale } = argument as unknown as { readonly scale: Ref };
      const [down, along] = [
        slice(j.mul(rowsOfBlock), rowsOfBlock),
        slice(i.mul(packedUnit), packedUnit),
      ];
      const own = layout === "plain" ? scale.at(layer) : scale;
      const scales = scalesOfPart(format, layout, own, i, j);
      const numbers = x.at(layer, down, along).load();
      const isExact = format.scale !== dtypes.f32;
      const wide = isExact ? dtypes.bf16 : dtypes.f32;
      const factors = expandGroups(scales.cast(wide).transpose(), packedUnit).transpose();
      const made = (numbers.cast(wide) as Tile).mul(factors as Tile);
      y.at(layer, down, along).store(isExact ? made : made.cast(dtypes.bf16));
    },
  ) as unknown as KernelDefinition;
}

interface OperandArguments {
  readonly layer: Scalar<"i32">;
  readonly i: Scalar<"i32">;
  readonly j: Scalar<"i32">;
  readonly x: Ref;
  readonly y: Ref;
}

/** The scales of a part, [rows, groups], or one for all of it. */
function scalesOfPart(
  { block: [across, along] }: ScaledFormat,
  layout: ScaleLayout,
  scale: Ref,
  i: Scalar<"i32">,
  j: Scalar<"i32">,
): Tile {
  if (across > 1) return scale.at(slice(j.mul(rowsOfBlock).div(across), 1), slice(i, 1)).load();
  const each = packedUnit / along;
  return layout === "tiled" ? tiledScales(scale, i, j, each) : plainScales(scale, i, j, each);
}
