/**
 * Associative scans as JAX unrolls them: a network of log₂ n levels of strided slices, the combining function, concatenations and pads, in
 * which the scan of a program is found again.
 *
 *   scan(x, n):  odd = scan(f(x[0::2], x[1::2]), n / 2)           each level has half the elements
 *                even = x[0], f(odd[:-1], x[2::2]) …              anchor: pad(even, interior 1) + pad(odd, low 1, interior 1)
 *
 * A level is known by its anchors, an addition (of truth values `or`) of two disjoint pads with holes. What lies between the slices and the
 * anchors is read as an expression of single elements, in which the length of the level does not stand; where that is the same at all places
 * of all levels, it is f. Values that nobody asks for are left out by JAX, so some inputs of f have no anchors: they are told by where they stand
 * in the expressions of others.
 */
import { attributesText } from "../passes/structure.ts";
import { elementwiseOps } from "../ops/elementwise.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import { operandsOf } from "../ops/traverse.ts";
import { isTensor } from "../ops/types.ts";
import { typeOfValue } from "../transform/arithmetic.ts";

export type Definitions = (value: GraphValue) => AnyGraphOp | undefined;

/** The end of a level: elements of even places, which begin with the first of `input`, beside those of odd ones. */
export interface Anchor {
  readonly value: GraphValue;
  readonly axis: number;
  readonly extent: number;
  readonly input: GraphValue;
  /** The even elements but the first; undefined where there are none. */
  readonly rest: GraphValue | undefined;
  readonly odd: GraphValue;
}

function extentOf(value: GraphValue, axis: number): number {
  return typeOfValue(value).shape[axis] ?? 0;
}

function isZero(value: GraphValue, definition: Definitions): boolean {
  const op = definition(value);
  if (op?.kind !== "stablehlo.constant" || !("data" in op.attributes.value)) return false;
  return op.attributes.value.data.every((lane) => Number(lane) === 0 && !Object.is(lane, -0));
}

/** A pad with zeros that moves elements apart along one axis, from a place on. */
function spreadOf(value: GraphValue, definition: Definitions) {
  const op = definition(value);
  if (op?.kind !== "stablehlo.pad" || !isZero(op.operands.padding_value, definition))
    return undefined;
  const {
    edge_padding_low: low,
    edge_padding_high: high,
    interior_padding: interior,
  } = op.attributes;
  const axis = interior.findIndex((each) => each !== 0);
  const isAlone = interior.every(
    (each, at) =>
      each === (at === axis ? 1 : 0) && (at === axis || (low[at] === 0 && high[at] === 0)),
  );
  return axis < 0 || !isAlone
    ? undefined
    : { axis, low: low[axis] ?? 0, operand: op.operands.operand };
}

/** Elements of a value along an axis, all of the others. */
export interface Stretch {
  readonly base: GraphValue;
  readonly start: number;
  readonly stride: number;
}

export function stretchOf(
  value: GraphValue,
  axis: number,
  definition: Definitions,
): Stretch | undefined {
  const op = definition(value);
  if (op?.kind !== "stablehlo.slice") return undefined;
  const { operand } = op.operands;
  const { start_indices: starts, limit_indices: limits, strides } = op.attributes;
  const { shape } = typeOfValue(operand);
  const isWhole = shape.every(
    (extent, at) => at === axis || (starts[at] === 0 && limits[at] === extent && strides[at] === 1),
  );
  return isWhole
    ? { base: operand, start: starts[axis] ?? 0, stride: strides[axis] ?? 1 }
    : undefined;
}

/** The first element of a value, and what follows it: a concatenation of both, or the element alone. */
function beginningOf(value: GraphValue, axis: number, definition: Definitions) {
  const joined = definition(value);
  const isJoined = joined?.kind === "stablehlo.concatenate" && joined.attributes.dimension === axis;
  const [first, rest, ...others] = isJoined ? joined.operands.inputs : [value];
  const stretch = first === undefined ? undefined : stretchOf(first, axis, definition);
  if (
    first === undefined ||
    stretch?.start !== 0 ||
    others.length > 0 ||
    extentOf(first, axis) !== 1
  )
    return undefined;
  const hasRest = rest !== undefined && extentOf(rest, axis) > 0;
  return { input: stretch.base, rest: hasRest ? rest : undefined };
}

/** The end of a level, where a value is one. */
export function anchorOf(op: AnyGraphOp, definition: Definitions): Anchor | undefined {
  if (op.kind !== "stablehlo.add" && op.kind !== "stablehlo.or") return undefined;
  const [value] = op.results;
  const sides = [spreadOf(op.operands.lhs, definition), spreadOf(op.operands.rhs, definition)];
  const even = sides.find((side) => side?.low === 0);
  const odd = sides.find((side) => side?.low === 1);
  if (value === undefined || even === undefined || odd?.axis !== even.axis) return undefined;
  const { axis } = even;
  const extent = extentOf(value, axis);
  const [evens, odds] = [extentOf(even.operand, axis), extentOf(odd.operand, axis)];
  const isHalved = odds > 0 && evens === Math.ceil(extent / 2) && odds === Math.floor(extent / 2);
  const beginning = isHalved ? beginningOf(even.operand, axis, definition) : undefined;
  if (beginning === undefined || evens > 1 !== (beginning.rest !== undefined)) return undefined;
  return { value, axis, extent, ...beginning, odd: odd.operand };
}

/** What an expression is of: elements met first or later, of a value that is told by `base`. */
export interface Leaf {
  readonly side: "before" | "after";
  readonly base: GraphValue;
}

/** An expression of single elements. */
export interface Expression {
  readonly root: GraphValue;
  /** Equal for equal expressions, whatever their leaves are. */
  readonly text: string;
  /** In the order in which the expression has them. */
  readonly leaves: readonly Leaf[];
  readonly leafOf: (value: GraphValue) => Leaf | undefined;
}

/** Longer expressions are no functions that anybody scans by. */
const mostNodes = 4096;

/** A value that is the same along the axis, and the axes that it has. */
export function capturedBy(
  value: GraphValue,
  axis: number,
  definition: Definitions,
): GraphOp<"stablehlo.broadcast_in_dim"> | undefined {
  const op = definition(value);
  return op?.kind === "stablehlo.broadcast_in_dim" &&
    !op.attributes.broadcast_dimensions.includes(axis)
    ? op
    : undefined;
}

export function constantText(value: GraphValue, definition: Definitions): string | undefined {
  const op = definition(value);
  if (op?.kind !== "stablehlo.constant" || !("data" in op.attributes.value)) return undefined;
  const { splat, data, type } = op.attributes.value;
  const lanes = Array.from<number | bigint, string>(data, (lane) =>
    Object.is(lane, -0) ? "-0" : String(lane),
  );
  return splat ? `${type.element}(${lanes.join()})` : undefined;
}

/** A value as an expression of the elements that `leafOf` knows; undefined where it is more than that. */
export function expressionOf(
  root: GraphValue,
  axis: number,
  definition: Definitions,
  leafOf: (value: GraphValue) => Leaf | undefined,
): Expression | undefined {
  const leaves: Leaf[] = [];
  let nodes = 0;
  const textOf = (value: GraphValue): string | undefined => {
    const leaf = leafOf(value);
    nodes += 1;
    if (leaf !== undefined) {
      leaves.push(leaf);
      return leaf.side;
    }
    const constant = constantText(value, definition);
    if (constant !== undefined) return constant;
    const captured = capturedBy(value, axis, definition);
    if (captured !== undefined) {
      const { operand } = captured.operands;
      const inner = constantText(operand, definition);
      const dimensions = captured.attributes.broadcast_dimensions.join();
      return inner ?? `%${operand.id}[${dimensions}]`;
    }
    const op = definition(value);
    if (op === undefined || nodes > mostNodes || !isPointwise(op)) return undefined;
    const operands = operandsOf(op).map(textOf);
    if (operands.includes(undefined)) return undefined;
    return `${op.kind}{${attributesText(op)}}${typeOfValue(value).element}(${operands.join()})`;
  };
  const text = textOf(root);
  return text === undefined ? undefined : { root, text, leaves, leafOf };
}

/** Whether an op computes each element from those at its own place alone. */
function isPointwise(op: AnyGraphOp): boolean {
  if (!Object.hasOwn(elementwiseOps, op.kind)) return false;
  const shapes = [...operandsOf(op), ...op.results].map(({ type }) =>
    isTensor(type) ? type.shape.join() : "",
  );
  return op.results.length === 1 && shapes.every((shape) => shape === shapes[0]);
}
