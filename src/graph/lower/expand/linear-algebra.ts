/**
 * Cholesky factors, triangular systems and einsum as ops that kernels have. Both solvers are loops with a turn for each
 * row, over whole matrices of a batch, in f64 or complex<f64>, rounded at the end.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { isComplexElement } from "../../ops/elements.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import {
  binary,
  broadcastInDim,
  compare,
  convert,
  iota,
  like,
  reshape,
  select,
  splatOf,
  sum,
  transpose,
  typeOfValue,
  zerosOf,
} from "../../transform/arithmetic.ts";
import { cannotRun } from "../storage.ts";

const counter = tensorType("i32", []);

/** The value in the format that it is computed in. */
function widened(builder: GraphBuilder, value: GraphValue): GraphValue {
  const { element } = typeOfValue(value);
  return convert(builder, value, isComplexElement(element) ? "complex<f64>" : "f64");
}

/** The conjugate of complex numbers; real ones as they are. */
function conjugate(builder: GraphBuilder, value: GraphValue): GraphValue {
  return isComplexElement(typeOfValue(value).element)
    ? builder.one("chlo.conj", { operand: value }, {})
    : value;
}

function shapeOf(value: GraphValue): readonly number[] {
  return typeOfValue(value).shape;
}

function swapLast(builder: GraphBuilder, value: GraphValue): GraphValue {
  const axes = shapeOf(value).map((_, axis) => axis);
  return transpose(builder, value, [...axes.slice(0, -2), ...axes.slice(-2).reverse()]);
}

/** A vector along axis `at` of a batch, repeated to the shape of a matrix. */
function spread(
  builder: GraphBuilder,
  vector: GraphValue,
  matrix: GraphValue,
  at: -1 | -2,
): GraphValue {
  const rank = shapeOf(matrix).length;
  const batch = Array.from({ length: rank - 2 }, (_, axis) => axis);
  return broadcastInDim(builder, vector, shapeOf(matrix), [...batch, rank + at]);
}

/** Row `at` of every matrix of a batch, without its axis. */
function rowOf(builder: GraphBuilder, matrix: GraphValue, at: GraphValue): GraphValue {
  const shape = shapeOf(matrix);
  const zero = zerosOf(builder, counter);
  const row = shape.length - 2;
  const cut = builder.one(
    "stablehlo.dynamic_slice",
    { operand: matrix, start_indices: shape.map((_, axis) => (axis === row ? at : zero)) },
    { slice_sizes: shape.map((extent, axis) => (axis === row ? 1 : extent)) },
  );
  return reshape(
    builder,
    cut,
    shape.filter((_, axis) => axis !== row),
  );
}

/** Where the index along an axis of a matrix compares so with a scalar. */
function whereAxis(
  builder: GraphBuilder,
  matrix: GraphValue,
  axis: -1 | -2,
  direction: "EQ" | "GT" | "GE",
  at: GraphValue,
): GraphValue {
  const shape = shapeOf(matrix);
  const places = iota(builder, tensorType("i32", shape), shape.length + axis);
  return compare(builder, direction, places, broadcastInDim(builder, at, shape, []));
}

/** A loop of `count` turns over one value. */
function repeat(
  builder: GraphBuilder,
  count: number,
  start: GraphValue,
  turn: (inner: GraphBuilder, at: GraphValue, value: GraphValue) => GraphValue,
): GraphValue {
  const types = [counter, start.type];
  const cond = builder.region(types, (inner, [at]) => [
    compare(inner, "LT", at as GraphValue, splatOf(inner, counter, count)),
  ]);
  const body = builder.region(types, (inner, parameters) => {
    const [at, value] = parameters as readonly [GraphValue, GraphValue];
    const next = binary(inner, "stablehlo.add", at, splatOf(inner, counter, 1));
    return [next, turn(inner, at, value)];
  });
  const operand = [zerosOf(builder, counter), start];
  const [, result] = builder.add("stablehlo.while", { operand }, {}, { regions: { cond, body } });
  return result ?? start;
}

/** Column by column: what earlier columns explain is taken off, and the rest divided by the root of its diagonal. */
export function expandCholesky(
  op: GraphOp<"stablehlo.cholesky">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const { element, shape } = typeOfValue(op.operands.a);
  if (sizeOf(shape) === 0) return [op.operands.a];
  const given = widened(builder, op.operands.a);
  const matrix = op.attributes.lower ? swapLast(builder, given) : given;
  const extent = shape.at(-1) ?? 0;
  const factor = repeat(builder, extent, like(builder, matrix, 0), (inner, at, found) => {
    const row = spread(inner, conjugate(inner, rowOf(inner, found, at)), found, -1);
    const explained = sum(inner, binary(inner, "stablehlo.multiply", found, row), [
      shape.length - 1,
    ]);
    const rest = binary(inner, "stablehlo.subtract", rowOf(inner, matrix, at), explained);
    const column = spread(inner, rest, found, -2);
    const isRow = whereAxis(inner, found, -2, "EQ", at);
    const zero = like(inner, found, 0);
    const diagonal = sum(inner, select(inner, isRow, column, zero), [shape.length - 2]);
    const square = inner.one("stablehlo.real", { operand: diagonal }, {});
    const isPositive = compare(inner, "GT", square, like(inner, square, 0));
    const root = inner.one("stablehlo.sqrt", { operand: square }, {});
    const safe = select(inner, isPositive, root, like(inner, root, NaN));
    const divisor = convert(inner, safe, typeOfValue(diagonal).element);
    const value = binary(inner, "stablehlo.divide", column, spread(inner, divisor, found, -1));
    const isBelow = whereAxis(inner, found, -2, "GE", at);
    const isColumn = whereAxis(inner, found, -1, "EQ", at);
    return select(inner, binary(inner, "stablehlo.and", isBelow, isColumn), value, found);
  });
  const result = op.attributes.lower ? factor : swapLast(builder, factor);
  return [convert(builder, result, element)];
}

function reversed(builder: GraphBuilder, value: GraphValue, axes: readonly number[]): GraphValue {
  const rank = shapeOf(value).length;
  return builder.one(
    "stablehlo.reverse",
    { operand: value },
    { dimensions: axes.map((axis) => rank + axis) },
  );
}

/** Forward substitution; other systems are transposed and turned round until they are lower ones from the left. */
export function expandTriangularSolve(
  op: GraphOp<"stablehlo.triangular_solve">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const { left_side: isLeft, lower, unit_diagonal: isUnit, transpose_a: mode } = op.attributes;
  const { element, shape } = typeOfValue(op.operands.b);
  if (sizeOf(shape) === 0) return [op.operands.b];
  const isSwapped = (mode === "TRANSPOSE" || mode === "ADJOINT") === isLeft;
  const isLower = lower !== isSwapped;
  const stored = widened(builder, op.operands.a);
  const given = mode === "ADJOINT" ? conjugate(builder, stored) : stored;
  const wide = widened(builder, op.operands.b);
  const upright = isSwapped ? swapLast(builder, given) : given;
  const tall = isLeft ? wide : swapLast(builder, wide);
  const matrix = isLower ? upright : reversed(builder, upright, [-1, -2]);
  const right = isLower ? tall : reversed(builder, tall, [-2]);
  const rank = shapeOf(matrix).length;
  const solved = repeat(
    builder,
    shapeOf(matrix).at(-1) ?? 0,
    like(builder, right, 0),
    (inner, at, found) => {
      const row = rowOf(inner, matrix, at);
      const places = iota(inner, tensorType("i32", shapeOf(row)), rank - 2);
      const here = broadcastInDim(inner, at, shapeOf(row), []);
      const isBefore = compare(inner, "LT", places, here);
      // The other triangle is not looked at, whatever it holds.
      const before = select(inner, isBefore, row, like(inner, row, 0));
      const products = binary(inner, "stablehlo.multiply", found, spread(inner, before, found, -2));
      const known = sum(inner, products, [rank - 2]);
      const rest = binary(inner, "stablehlo.subtract", rowOf(inner, right, at), known);
      const isHere = compare(inner, "EQ", places, here);
      const diagonal = sum(inner, select(inner, isHere, row, like(inner, row, 0)), [rank - 2]);
      const batch = Array.from({ length: rank - 2 }, (_, axis) => axis);
      const divisor = broadcastInDim(inner, diagonal, shapeOf(rest), batch);
      const value = isUnit ? rest : binary(inner, "stablehlo.divide", rest, divisor);
      const isRow = whereAxis(inner, found, -2, "EQ", at);
      return select(inner, isRow, spread(inner, value, found, -1), found);
    },
  );
  const turned = isLower ? solved : reversed(builder, solved, [-2]);
  return [convert(builder, isLeft ? turned : swapLast(builder, turned), element)];
}

/** One axis a letter: operands repeated to all of them, multiplied, and summed over those that the result lacks. */
export function expandEinsum(
  op: GraphOp<"stablehlo.einsum"> | GraphOp<"stablehlo.unary_einsum">,
  builder: GraphBuilder,
): readonly GraphValue[] {
  const [result] = op.results;
  const operands =
    op.kind === "stablehlo.einsum" ? [op.operands.lhs, op.operands.rhs] : [op.operands.operand];
  const [inputs = "", output = ""] = op.attributes.einsum_config.replaceAll(/\s/g, "").split("->");
  const labels = inputs.split(",");
  const isPlain = labels.every((each) => new Set(each).size === each.length);
  if (
    result === undefined ||
    labels.length !== operands.length ||
    !isPlain ||
    !/^[a-zA-Z,]*$/.test(inputs)
  )
    throw cannotRun(op, `its formula is ${op.attributes.einsum_config}`);
  const extents = new Map<string, number>();
  for (const [i, letters] of labels.entries())
    for (const [axis, letter] of [...letters].entries())
      extents.set(letter, shapeOf(operands[i] as GraphValue)[axis] ?? 1);
  const letters = [...output, ...[...extents.keys()].filter((letter) => !output.includes(letter))];
  const shape = letters.map((letter) => extents.get(letter) ?? 1);
  const { element } = typeOfValue(result);
  const factors = operands.map((operand, i) =>
    broadcastInDim(
      builder,
      convert(builder, operand, element),
      shape,
      [...(labels[i] ?? "")].map((letter) => letters.indexOf(letter)),
    ),
  );
  const product = factors.reduce((left, right) =>
    binary(builder, "stablehlo.multiply", left, right),
  );
  const summed = letters.map((_, axis) => axis).slice(output.length);
  return [sum(builder, product, summed)];
}
