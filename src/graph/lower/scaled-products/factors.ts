/**
 * Operands of products that are dequantised: elements of a format with scales times the scales of their blocks, whoever wrote that, and in whatever order
 * both were converted and moved before.
 *
 *   %c = convert %codes : f8E4M3FN [64, 256] to bf16
 *   %b = broadcast_in_dim %scales : f8E8M0FNU [64, 8] to [64, 8, 32]        an axis along which scales lie by 0
 *   %s = convert (reshape %b to [64, 256]) to bf16
 *   %w = multiply %c, %s                                                   a factor in mxfp8e4m3: %codes, %scales
 *
 * Codes that are computed for the product alone, as by a conversion to FP8 just before, need no memory: the kernel that computes them writes bf16.
 */
import { scaledFormats } from "../../../formats/scaled/formats.ts";
import type { ScaledFormat } from "../../../formats/scaled/formats.ts";
import { isExactInBf16 } from "../../../kernels/matmul/scaled-errors.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { elements, isFloatElement } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import { splatValue } from "../../ops/small-floats.ts";
import type { AnyGraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf } from "../../ops/types.ts";
import {
  broadcastInDim,
  convert,
  reshape,
  transpose,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import type { DotAxes } from "../dot-axes.ts";
import { loweringOf } from "../record.ts";
import { joined, movedOperand, through, whole } from "../views/strided.ts";
import type { Mode, Strided } from "../views/strided.ts";

type Definition = (value: GraphValue) => AnyGraphOp | undefined;

/** An operand of a product. */
export interface ScaledFactor {
  /** The format with scales, or bf16. */
  readonly format: ScaledFormat | "bf16";
  /** [batch, rows, k] or [rows, k]. */
  readonly extents: readonly number[];
  readonly elements: (builder: GraphBuilder) => GraphValue;
  /** [batch, rows, blocks] or [rows, blocks]. */
  readonly scales: ((builder: GraphBuilder) => GraphValue) | undefined;
}

/** A value that was only moved and converted, from the last one in another format than those of arithmetic. */
interface Source {
  readonly base: GraphValue;
  /** What moved it, the last one first. */
  readonly moves: readonly AnyGraphOp[];
}

function isCoded(element: ElementType): boolean {
  return isFloatElement(element) && elements[element].bits <= 8;
}

/** The formats in which elements, scales and their products are exact. */
const exact: ReadonlySet<ElementType> = new Set<ElementType>(["bf16", "f32", "f64"]);

/** Back to the value that `isEnd` says, through moves and conversions of floats. */
function sourceOf(
  value: GraphValue,
  definition: Definition,
  isEnd: (value: GraphValue) => boolean,
): Source | undefined {
  const moves: AnyGraphOp[] = [];
  for (let base = value; ;) {
    const op = definition(base);
    const operand = op && movedOperand(op);
    const isPart = op?.kind === "stablehlo.slice";
    if (isEnd(base) && (operand === undefined || isPart)) return { base, moves };
    if (op === undefined) return undefined;
    if (operand !== undefined && !isPart) {
      moves.push(op);
      base = operand;
    } else if (op.kind === "stablehlo.convert" && !isEnd(base)) base = op.operands.operand;
    else return undefined;
    if (!isEnd(base) && !exact.has(typeOfValue(base).element)) return undefined;
  }
}

/** The source as a part of its base, each axis in modes; undefined where moves cut modes apart. */
function viewOf({ base, moves }: Source): Strided | undefined {
  let view: Strided | undefined = whole(base);
  for (const each of moves.toReversed()) view = view && through(each, view);
  return view;
}

/** Whether modes are those of a whole array by rows. */
function isByRows(modes: readonly Mode[], base: GraphValue): boolean {
  let inside = 1;
  for (const { extent, stride } of joined(modes).toReversed()) {
    if (stride !== inside) return false;
    inside *= extent;
  }
  return inside === sizeOf(typeOfValue(base).shape);
}

/** The base moved as the source was, in its own format. */
function replayed(builder: GraphBuilder, { base, moves }: Source): GraphValue {
  return moves.toReversed().reduce<GraphValue>((operand, op) => {
    const [result] = op.results;
    const shape = result === undefined ? [] : typeOfValue(result).shape;
    if (op.kind === "stablehlo.transpose")
      return transpose(builder, operand, op.attributes.permutation);
    if (op.kind === "stablehlo.broadcast_in_dim")
      return broadcastInDim(builder, operand, shape, op.attributes.broadcast_dimensions);
    return reshape(builder, operand, shape);
  }, base);
}

interface Shape {
  readonly order: readonly number[];
  /** Of the batch where there is one, rows and k. */
  readonly extents: readonly number[];
}

/** The axes of an operand by what they are to the product. */
function shapeOf(value: GraphValue, { batch, free, contracted }: DotAxes): Shape {
  const { shape } = typeOfValue(value);
  const extent = (axes: readonly number[]): number => sizeOf(axes.map((axis) => shape[axis] ?? 1));
  const lead = extent(batch) === 1 ? [] : [extent(batch)];
  return {
    order: [...batch, ...free, ...contracted],
    extents: [...lead, extent(free), extent(contracted)],
  };
}

/** Axes in another order; one that they have already is left out. */
function ordered(builder: GraphBuilder, value: GraphValue, order: readonly number[]): GraphValue {
  return order.every((axis, i) => axis === i) ? value : transpose(builder, value, order);
}

/** The numbers of a source as [batch, rows, k], or as it lies in memory where that is the same. */
function matrixOf(
  builder: GraphBuilder,
  source: Source,
  modes: readonly Mode[],
  { order, extents }: Shape,
): GraphValue {
  if (isByRows(modes, source.base)) return reshape(builder, source.base, extents);
  return reshape(builder, ordered(builder, replayed(builder, source), order), extents);
}

/** A format by its elements, scales and elements along k that share one; undefined where there is none. */
function formatOf(own: ElementType, scale: ElementType, block: number): ScaledFormat | undefined {
  return Object.values<ScaledFormat>(scaledFormats).find(
    (format) =>
      format.element === elements[own].dtype &&
      format.scale === elements[scale].dtype &&
      format.block[0] === 1 &&
      format.block[1] === block &&
      isExactInBf16(format),
  );
}

/** What scales are spread along: the elements along k that share one, and the modes of the scales themselves. */
function spreadOf(
  { axes }: Strided,
  { batch, free, contracted }: DotAxes,
): { readonly block: number; readonly modes: readonly Mode[] } | undefined {
  const pick = (list: readonly number[]): readonly Mode[] =>
    joined(list.flatMap((axis) => axes[axis] ?? []));
  const along = pick(contracted);
  const last = along.at(-1);
  if (last?.stride !== 0) return undefined;
  const modes = [...pick([...batch, ...free]), ...along.slice(0, -1)];
  return modes.some(({ stride }) => stride === 0) ? undefined : { block: last.extent, modes };
}

/** Whether a value is in memory: what nobody computes here, and what is no map. */
function isHeld(value: GraphValue, definition: Definition): boolean {
  const op = definition(value);
  return op === undefined || op.kind === "stablehlo.constant" || loweringOf(op).form !== "map";
}

/** The factor that a multiplication of elements and scales is. */
function dequantisedFactor(
  { base: product, moves }: Source,
  [left, right]: readonly [GraphValue, GraphValue],
  axes: DotAxes,
  shape: Shape,
  definition: Definition,
): ScaledFactor | "computed" | undefined {
  const { element, shape: all } = typeOfValue(product);
  if (!exact.has(element) || sizeOf(all) !== sizeOf(shape.extents)) return undefined;
  const coded = (value: GraphValue): Source | undefined => {
    const found = sourceOf(value, definition, (base) => isCoded(typeOfValue(base).element));
    return found && { base: found.base, moves: [...moves, ...found.moves] };
  };
  for (const [own, other] of [
    [left, right],
    [right, left],
  ] as const) {
    const [codes, scales] = [coded(own), coded(other)];
    if (codes === undefined || scales === undefined) continue;
    const [view, spread] = [viewOf(codes), viewOf(scales)];
    const found = spread && spreadOf(spread, axes);
    const modes = view && joined(shape.order.flatMap((axis) => view.axes[axis] ?? []));
    if (modes === undefined || found === undefined || modes.some(({ stride }) => stride === 0))
      continue;
    const format = formatOf(
      typeOfValue(codes.base).element,
      typeOfValue(scales.base).element,
      found.block,
    );
    if (format === undefined) continue;
    if (!isHeld(codes.base, definition)) return "computed";
    return {
      format,
      extents: shape.extents,
      elements: (builder) => matrixOf(builder, codes, modes, shape),
      scales: (builder) => scalesOf(builder, scales, found, shape),
    };
  }
  return undefined;
}

/** The scales, one for each block: those that lie so, or every so many of those that were spread. */
function scalesOf(
  builder: GraphBuilder,
  source: Source,
  { block, modes }: { readonly block: number; readonly modes: readonly Mode[] },
  { order, extents }: Shape,
): GraphValue {
  const [k = 1] = extents.slice(-1);
  const lead = extents.slice(0, -1);
  const shape = [...lead, k / block];
  if (isByRows(modes, source.base)) return reshape(builder, source.base, shape);
  const spread = reshape(builder, ordered(builder, replayed(builder, source), order), [
    ...shape,
    block,
  ]);
  const first = builder.one(
    "stablehlo.slice",
    { operand: spread },
    {
      start_indices: [...shape.map(() => 0), 0],
      limit_indices: [...shape, 1],
      strides: [...shape.map(() => 1), 1],
    },
  );
  return reshape(builder, first, shape);
}

/** Whether all elements are 1. */
function isOne(value: GraphValue, definition: Definition): boolean {
  const source = sourceOf(
    value,
    definition,
    (each) => definition(each)?.kind === "stablehlo.constant",
  );
  const op = source && definition(source.base);
  if (op?.kind !== "stablehlo.constant" || "kind" in op.attributes.value) return false;
  return splatValue(op.attributes.value) === 1;
}

/** An operand in a format with scales, or in bf16; undefined of others. */
export function factorOf(
  operand: GraphValue,
  axes: DotAxes,
  definition: Definition,
): ScaledFactor | undefined {
  const shape = shapeOf(operand, axes);
  if (!exact.has(typeOfValue(operand).element) || sizeOf(shape.extents) === 0) return undefined;
  const isProduct = (value: GraphValue): boolean =>
    definition(value)?.kind === "stablehlo.multiply";
  const product = sourceOf(operand, definition, isProduct);
  const op = product && definition(product.base);
  if (product !== undefined && op?.kind === "stablehlo.multiply") {
    const { lhs, rhs } = op.operands;
    // Scales of one stand for none.
    const other = isOne(lhs, definition) ? rhs : isOne(rhs, definition) ? lhs : undefined;
    if (other !== undefined && product.base === operand) return factorOf(other, axes, definition);
    const found = dequantisedFactor(product, [lhs, rhs], axes, shape, definition);
    if (found === "computed") return inHalf({ base: operand, moves: [] }, shape);
    if (found !== undefined) return found;
  }
  const isHalf = (value: GraphValue): boolean => typeOfValue(value).element === "bf16";
  const half = isHalf(operand)
    ? { base: operand, moves: [] }
    : sourceOf(operand, definition, isHalf);
  return half && inHalf(half, shape);
}

/** An operand that bf16 holds. */
function inHalf(source: Source, { order, extents }: Shape): ScaledFactor {
  return {
    ...{ format: "bf16", extents, scales: undefined },
    elements: (builder) => {
      const moved = ordered(builder, replayed(builder, source), order);
      return reshape(builder, convert(builder, moved, "bf16"), extents);
    },
  };
}
