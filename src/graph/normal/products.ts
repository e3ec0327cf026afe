/**
 * One form for every large product: batches of matrices, each operand by rows or by columns, as the library takes them.
 *
 *   lhs [b, s, h, d]   batch b, h   free s   contracted d        [b·h, s, d]   transposed, reshaped
 *   rhs [t, e, c]      batch –      free t   contracted c, e     [t, e·c]      contracted axes go in the order in which they lie
 *
 * What can be said by the numbers of axes costs nothing: transposed operands, contracted axes in another order, results that are
 * transposed afterwards (the operands change sides). Axes that lie otherwise are moved; the innermost one stays where it is, so that
 * what moves are runs.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import { roundedFormat } from "../ops/dot-algorithms.ts";
import { elements } from "../ops/elements.ts";
import type { ElementType } from "../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import type { DotAlgorithm, DotNumbers } from "../ops/structures.ts";
import { shortSum } from "../ops/products.ts";
import { sizeOf } from "../ops/types.ts";
import { convert, reshape, transpose, typeOfValue } from "../transform/arithmetic.ts";

type Product = GraphOp<"stablehlo.dot_general">;

/** An operand, with its axes by what they are to the product, in the order in which the result or the other operand has them. */
interface Side {
  readonly value: GraphValue;
  readonly batch: readonly number[];
  readonly free: readonly number[];
  readonly contracted: readonly number[];
}

function sideOf(op: Product, side: "lhs" | "rhs"): Side {
  const value = op.operands[side];
  const numbers = op.attributes.dot_dimension_numbers;
  const batch = numbers[`${side}_batching_dimensions`];
  const contracted = numbers[`${side}_contracting_dimensions`];
  const taken = new Set([...batch, ...contracted]);
  const free = typeOfValue(value).shape.flatMap((_, axis) => (taken.has(axis) ? [] : [axis]));
  return { value, batch, free, contracted };
}

/** The side with the operand of a transpose, whose axes have other numbers. */
function beforeTranspose(
  side: Side,
  definition: (value: GraphValue) => AnyGraphOp | undefined,
): Side {
  const op = definition(side.value);
  if (op?.kind !== "stablehlo.transpose") return side;
  const { permutation } = op.attributes;
  const moved = (axes: readonly number[]): readonly number[] =>
    axes.map((axis) => permutation[axis] ?? 0);
  return {
    value: op.operands.operand,
    batch: moved(side.batch),
    free: moved(side.free),
    contracted: moved(side.contracted),
  };
}

function extentsOf({ value }: Side, axes: readonly number[]): readonly number[] {
  const { shape } = typeOfValue(value);
  return axes.map((axis) => shape[axis] ?? 1);
}

/** The axes as a matrix has them in memory: by rows, or by columns; those of extent 1 are nowhere. */
function orders({ batch, free, contracted }: Side): readonly (readonly number[])[] {
  return [
    [...batch, ...free, ...contracted],
    [...batch, ...contracted, ...free],
  ];
}

/** Whether the axes lie in this order. */
function liesSo(side: Side, order: readonly number[]): boolean {
  const { shape } = typeOfValue(side.value);
  const kept = order.filter((axis) => shape[axis] !== 1);
  return kept.every((axis, i) => i === 0 || axis > (kept[i - 1] ?? 0));
}

function isMatrix(side: Side): boolean {
  return orders(side).some((order) => liesSo(side, order));
}

/** The axes of pairs in the order that they have on one side. */
function sortedPairs(
  pairs: readonly (readonly [number, number])[],
  by: 0 | 1,
): readonly (readonly [number, number])[] {
  return pairs.toSorted((one, other) => one[by] - other[by]);
}

function elementCount(side: Side): number {
  return sizeOf(typeOfValue(side.value).shape);
}

/** Both sides with their contracted axes in the order for which least has to be moved. */
function withContractedOrder(lhs: Side, rhs: Side): readonly [Side, Side] {
  const pairs = lhs.contracted.map((axis, i) => [axis, rhs.contracted[i] ?? 0] as const);
  const candidates = [pairs, sortedPairs(pairs, 0), sortedPairs(pairs, 1)].map((each) => {
    const sides = [
      { ...lhs, contracted: each.map(([left]) => left) },
      { ...rhs, contracted: each.map(([, right]) => right) },
    ] as const;
    const moved = sides.reduce((sum, side) => sum + (isMatrix(side) ? 0 : elementCount(side)), 0);
    return { sides, moved };
  });
  const [first, ...others] = candidates;
  if (first === undefined) return [lhs, rhs];
  return others.reduce((best, each) => (each.moved < best.moved ? each : best), first).sides;
}

/** The order to move axes into: the innermost one of all stays so, where it is none of a batch. */
function movedOrder(side: Side): readonly number[] {
  const [byRows = [], byColumns = []] = orders(side);
  const { shape } = typeOfValue(side.value);
  const innermost = shape.findLastIndex((extent) => extent !== 1);
  return side.free.includes(innermost) ? byColumns : byRows;
}

interface Matrix {
  readonly value: GraphValue;
  readonly isByRows: boolean;
}

/** The operand as [batch, free, contracted] or [batch, contracted, free]. */
function matrixOf(builder: GraphBuilder, side: Side, isBatched: boolean): Matrix {
  const [byRows = []] = orders(side);
  const order = orders(side).find((each) => liesSo(side, each)) ?? movedOrder(side);
  const isByRows = order === byRows || order.join() === byRows.join();
  const extent = (axes: readonly number[]): number => sizeOf(extentsOf(side, axes));
  const [first, second] = isByRows ? [side.free, side.contracted] : [side.contracted, side.free];
  const shape = [...(isBatched ? [extent(side.batch)] : []), extent(first), extent(second)];
  const moved = liesSo(side, order) ? side.value : transpose(builder, side.value, order);
  return { value: reshaped(builder, moved, shape), isByRows };
}

function reshaped(builder: GraphBuilder, value: GraphValue, shape: readonly number[]): GraphValue {
  return typeOfValue(value).shape.join() === shape.join() ? value : reshape(builder, value, shape);
}

function matrixNumbers(lhs: Matrix, rhs: Matrix, isBatched: boolean): DotNumbers {
  const batch = isBatched ? [0] : [];
  const depth = ({ isByRows }: Matrix): readonly number[] => [batch.length + (isByRows ? 1 : 0)];
  return {
    lhs_batching_dimensions: batch,
    rhs_batching_dimensions: batch,
    lhs_contracting_dimensions: depth(lhs),
    rhs_contracting_dimensions: depth(rhs),
  };
}

/** The elements of products that kernels of matrices have; others are computed element by element, wherever their axes lie. */
function hasMatrices(lhs: ElementType, rhs: ElementType): boolean {
  const { kind, bits } = elements[lhs];
  return lhs === rhs && (kind === "float" || (kind === "signed" && bits === 8));
}

/** The format of 16 bits that an algorithm rounds an operand to, or the operand's own. */
function multipliedElement(op: Product, side: "lhs" | "rhs"): ElementType {
  const { element } = typeOfValue(op.operands[side]);
  const format = roundedFormat(op.attributes.algorithm, side, element);
  return format === "bf16" || format === "f16" ? format : element;
}

/** The attributes that stay when operands have the formats that the algorithm wants. */
function otherAttributes(
  { attributes }: Product,
  isRounded: boolean,
): Omit<Product["attributes"], "dot_dimension_numbers"> {
  const { precision_config: config, algorithm } = attributes;
  return {
    ...(config !== undefined && { precision_config: config }),
    ...(!isRounded && algorithm !== undefined && { algorithm }),
  };
}

/** The product in its normal form; undefined where it has it, or none. */
export function normalProduct(
  op: Product,
  builder: GraphBuilder,
  definition: (value: GraphValue) => AnyGraphOp | undefined,
): GraphValue | undefined {
  const [result] = op.results;
  const formats = [multipliedElement(op, "lhs"), multipliedElement(op, "rhs")] as const;
  if (result === undefined || !hasMatrices(...formats)) return undefined;
  const [lhs, rhs] = withContractedOrder(
    beforeTranspose(sideOf(op, "lhs"), definition),
    beforeTranspose(sideOf(op, "rhs"), definition),
  );
  const type = typeOfValue(result);
  const depth = sizeOf(extentsOf(lhs, lhs.contracted));
  if (depth <= shortSum || sizeOf(type.shape) === 0) return undefined;
  const isBatched = sizeOf(extentsOf(lhs, lhs.batch)) > 1;
  const isRounded =
    formats[0] !== typeOfValue(lhs.value).element || formats[1] !== typeOfValue(rhs.value).element;
  const left = matrixOf(
    builder,
    { ...lhs, value: convert(builder, lhs.value, formats[0]) },
    isBatched,
  );
  const right = matrixOf(
    builder,
    { ...rhs, value: convert(builder, rhs.value, formats[1]) },
    isBatched,
  );
  const shape = [
    ...(isBatched ? [sizeOf(extentsOf(lhs, lhs.batch))] : []),
    sizeOf(extentsOf(lhs, lhs.free)),
    sizeOf(extentsOf(rhs, rhs.free)),
  ];
  const product = builder.one(
    "stablehlo.dot_general",
    { lhs: left.value, rhs: right.value },
    {
      ...otherAttributes(op, isRounded),
      dot_dimension_numbers: matrixNumbers(left, right, isBatched),
    },
    { types: [{ ...type, shape }] },
  );
  return reshaped(builder, product, type.shape);
}

function turnedAlgorithm(algorithm: DotAlgorithm): DotAlgorithm {
  return {
    ...algorithm,
    lhs_precision_type: algorithm.rhs_precision_type,
    rhs_precision_type: algorithm.lhs_precision_type,
    lhs_component_count: algorithm.rhs_component_count,
    rhs_component_count: algorithm.lhs_component_count,
  };
}

/** The product of the operands the other way round, where what is done with the result is a transpose that makes columns rows. */
export function turnedProduct(
  op: GraphOp<"stablehlo.transpose">,
  product: Product,
  builder: GraphBuilder,
): GraphValue | undefined {
  const [lhs, rhs] = [sideOf(product, "lhs"), sideOf(product, "rhs")];
  const [batch, rows, columns] = [lhs.batch.length, lhs.free.length, rhs.free.length];
  const { permutation } = op.attributes;
  const [result] = op.results;
  if (result === undefined) return undefined;
  const innermost = permutation[typeOfValue(result).shape.findLastIndex((extent) => extent !== 1)];
  const isRow = innermost !== undefined && innermost >= batch && innermost < batch + rows;
  if (!isRow) return undefined;
  const place = (axis: number): number =>
    axis < batch ? axis : axis < batch + rows ? axis + columns : axis - rows;
  const {
    dot_dimension_numbers: numbers,
    algorithm,
    precision_config: config,
  } = product.attributes;
  const turned = builder.one(
    "stablehlo.dot_general",
    { lhs: rhs.value, rhs: lhs.value },
    {
      ...product.attributes,
      ...(config !== undefined && { precision_config: config.toReversed() }),
      ...(algorithm !== undefined && { algorithm: turnedAlgorithm(algorithm) }),
      dot_dimension_numbers: {
        lhs_batching_dimensions: numbers.rhs_batching_dimensions,
        rhs_batching_dimensions: numbers.lhs_batching_dimensions,
        lhs_contracting_dimensions: numbers.rhs_contracting_dimensions,
        rhs_contracting_dimensions: numbers.lhs_contracting_dimensions,
      },
    },
    {
      types: [
        {
          ...typeOfValue(result),
          shape: [
            ...extentsOf(lhs, lhs.batch),
            ...extentsOf(rhs, rhs.free),
            ...extentsOf(lhs, lhs.free),
          ],
        },
      ],
    },
  );
  return transpose(builder, turned, permutation.map(place));
}
