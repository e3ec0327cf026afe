/** Elementwise ops: operands at the same points, a function of tiles (`../tiles`), settled to the result's element. */
import type { Tile } from "../../../lang/index.ts";
import { elements } from "../../ops/elements.ts";
import { floatOrders } from "../../ops/elementwise.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../../ops/node.ts";
import type { GraphOpKind } from "../../ops/table.ts";
import { operandsOf } from "../../ops/traverse.ts";
import type { PointContext } from "../context.ts";
import { map, refuse, view } from "../lowering.ts";
import type { Lowering, Lowerings } from "../lowering.ts";
import { scaleIndex, tileOfIndex } from "../points/indices.ts";
import { Points } from "../points/points.ts";
import { cannotRun, dtypeOf, hasOtherCodes, narrowBits, tensorTypeOf } from "../storage.ts";
import { codeBits, constantTile, ofCodeBits, select, unsignedOf } from "../tiles/bits.ts";
import { converted, lifted, settled, wrapped } from "../tiles/convert.ts";
import { binaryTiles, compareTiles, reducePrecision, unaryTiles } from "../tiles/elementwise.ts";

export function elementOf(value: GraphValue): ElementType {
  return tensorTypeOf(value).element;
}

function resultElement(op: AnyGraphOp): ElementType {
  const [result] = op.results;
  if (result === undefined) throw new Error(`${op.kind} has a result`);
  return elementOf(result);
}

type UnaryKind = keyof typeof unaryTiles;
type BinaryKind = keyof typeof binaryTiles;

/** Refuses what no rule means for elements of a kind, such as a sine of integers. */
const floatOnly: ReadonlySet<string> = new Set([
  "stablehlo.cbrt",
  "stablehlo.ceil",
  "stablehlo.floor",
  "stablehlo.is_finite",
]);

/** Refuses what works on codes, of elements whose codes are others than those of wider floats. */
function requireCodes(op: AnyGraphOp, element: ElementType): void {
  if (hasOtherCodes(element))
    throw cannotRun(op, `it works on codes, which ${element} has others; convert it to bf16`);
}

/** The rule of an elementwise op over the elements of its operands, which all have one type. */
function elementwise(
  kind: UnaryKind | BinaryKind,
  compute: (operands: readonly Tile[], element: ElementType) => Tile,
): Lowering<GraphOpKind> {
  return map((given, points, context) => {
    // A rule is given ops of its own kind.
    const op = given as unknown as AnyGraphOp;
    const operands = operandsOf(op);
    const [first] = operands;
    if (first === undefined) throw new Error(`${kind} has operands`);
    const element = elementOf(first);
    if (floatOnly.has(kind) && elements[element].kind !== "float")
      throw cannotRun(op, `it is not defined for ${element}`);
    if (kind === "chlo.next_after") requireCodes(op, element);
    const tiles = operands.map((value) => lifted(context.element(value, points), element));
    return [settled(compute(tiles, element), resultElement(op))];
  });
}

function unary(kind: UnaryKind): Lowering<GraphOpKind> {
  const compute: (x: Tile, element: ElementType) => Tile = unaryTiles[kind];
  return elementwise(kind, ([x], element) => compute(x as Tile, element));
}

function binary(kind: BinaryKind): Lowering<GraphOpKind> {
  const compute: (x: Tile, y: Tile, element: ElementType) => Tile = binaryTiles[kind];
  return elementwise(kind, ([x, y], element) => compute(x as Tile, y as Tile, element));
}

type Families = { readonly [K in UnaryKind]: Lowering<K> } & {
  readonly [K in BinaryKind]: Lowering<K>;
};

const families = Object.fromEntries([
  ...(Object.keys(unaryTiles) as readonly UnaryKind[]).map((kind) => [kind, unary(kind)]),
  ...(Object.keys(binaryTiles) as readonly BinaryKind[]).map((kind) => [kind, binary(kind)]),
]) as unknown as Families;

/** Elements as integers with their bits and no more. */
function codeOf(x: Tile, element: ElementType): Tile {
  const code = element === "i1" ? x.cast(unsignedOf(8)) : codeBits(x);
  const bits = narrowBits(element);
  return bits === undefined ? code : code.and(2 ** bits - 1);
}

function elementOfCode(code: Tile, value: GraphValue): Tile {
  const element = elementOf(value);
  const dtype = dtypeOf(value);
  if (element === "i1") return code.ne(constantTile(code.dtype, 0));
  return wrapped(ofCodeBits(code, dtype), element);
}

/** Bits as another element: one of several parts where that is narrower, several parts joined where it is wider. */
function bitcastAt(
  op: GraphOp<"stablehlo.bitcast_convert">,
  points: Points,
  context: PointContext,
): readonly Tile[] {
  const { operand } = op.operands;
  const [result] = op.results;
  if (result === undefined) throw new Error("a bitcast has a result");
  const [from, to] = [elements[elementOf(operand)].bits, elements[elementOf(result)].bits];
  const { shape } = tensorTypeOf(operand);
  if (from === to)
    return [elementOfCode(codeOf(context.element(operand, points), elementOf(operand)), result)];
  if (from > to) {
    const whole = points.axes.slice(0, -1);
    const code = codeOf(
      context.element(
        operand,
        shape.length === 0 ? points.scalar() : Points.at(shape, points.tile, whole),
      ),
      elementOf(operand),
    );
    const distance = scaleIndex(points.axis(points.axes.length - 1), to);
    const part = code.shr(tileOfIndex(distance).cast(code.dtype));
    const mask = constantTile(code.dtype, to >= 32 ? 2n ** BigInt(to) - 1n : 2 ** to - 1);
    return [elementOfCode(part.and(mask), result)];
  }
  const wide = unsignedOf(Math.max(8, to));
  const parts = Array.from({ length: to / from }, (_, part) => {
    const place = Points.at(shape, points.tile, [...points.axes, part]);
    const code = codeOf(context.element(operand, place), elementOf(operand)).cast(wide);
    return code.shl(constantTile(wide, part * from));
  });
  const joined = parts.reduce((all, part) => all.or(part));
  return [elementOfCode(joined, result)];
}

export const elementwiseLowerings = {
  ...families,
  "stablehlo.complex": { form: "pairs" },
  "stablehlo.uniform_quantize": refuse("devices have no quantised elements"),
  "stablehlo.uniform_dequantize": refuse("devices have no quantised elements"),
  "chlo.asin_acos_kernel": refuse("it is a part of the expansion of asin and acos"),
  "stablehlo.convert": view((op, points, context) => {
    const { operand } = op.operands;
    return [converted(context.element(operand, points), elementOf(operand), resultElement(op))];
  }),
  "stablehlo.bitcast_convert": view(bitcastAt),
  "stablehlo.compare": map((op, points, context) => {
    const { operands, attributes } = op;
    const element = elementOf(operands.lhs);
    const order = floatOrders[attributes.compare_type ?? "NOTYPE"];
    if (order === "total") requireCodes(op, element);
    return [
      compareTiles(
        attributes.comparison_direction,
        order,
        element,
        context.element(operands.lhs, points),
        context.element(operands.rhs, points),
      ),
    ];
  }),
  "stablehlo.select": map(({ operands }, points, context) => [
    select(
      context.broadcast(operands.pred, points),
      context.element(operands.on_true, points),
      context.element(operands.on_false, points),
    ),
  ]),
  "stablehlo.clamp": map(({ operands }, points, context) => {
    const element = elementOf(operands.operand);
    const [least, x, greatest] = [
      context.broadcast(operands.min, points),
      context.element(operands.operand, points),
      context.broadcast(operands.max, points),
    ].map((tile) => lifted(tile, element)) as [Tile, Tile, Tile];
    const larger = binaryTiles["stablehlo.maximum"](least, x, element);
    return [settled(binaryTiles["stablehlo.minimum"](larger, greatest, element), element)];
  }),
  "stablehlo.reduce_precision": map((op, points, context) => {
    const { operands, attributes } = op;
    requireCodes(op, elementOf(operands.operand));
    const { exponent_bits: exponent, mantissa_bits: mantissa } = attributes;
    return [reducePrecision(context.element(operands.operand, points), exponent, mantissa)];
  }),
  "stablehlo.map": map(({ operands, regions }, points, context) =>
    context.region(
      regions.computation,
      operands.inputs.map((value) => context.element(value, points)),
      points,
    ),
  ),
} satisfies Partial<Lowerings<GraphOpKind>>;
