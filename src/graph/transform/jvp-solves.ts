/**
 * Derivatives of factors and triangular systems, through ops that are linear in what has a tangent:
 *
 *   A = L Lᴴ      L' = L Φ(L⁻¹ A' L⁻ᴴ)       Φ: the lower triangle with half of the diagonal
 *   op(A) X = B   X' = op(A)⁻¹ (B' - op(A') X)
 *
 * Both ops look at one triangle of A alone; so do their derivatives.
 */
import type { GraphBuilder } from "../infer/builder.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import { tensorType } from "../ops/types.ts";
import {
  addValues,
  compare,
  iota,
  like,
  multiply,
  select,
  subtract,
  transpose,
  typeOfValue,
} from "./arithmetic.ts";
import type { JvpRule } from "./context.ts";
import { conjugate } from "./jvp-complex.ts";
import { required, single } from "./maps.ts";
import { range } from "./product-transpose-rules.ts";
import { heldConstant, through } from "./jvp-by-decomposition.ts";

function swapped(builder: GraphBuilder, value: GraphValue): GraphValue {
  const axes = range(0, typeOfValue(value).shape.length);
  return transpose(builder, value, [...axes.slice(0, -2), ...axes.slice(-2).reverse()]);
}

function adjoint(builder: GraphBuilder, value: GraphValue): GraphValue {
  return swapped(builder, conjugate(builder, value));
}

/** One triangle of matrices, the diagonal times a factor. */
function triangle(
  builder: GraphBuilder,
  value: GraphValue,
  lower: boolean,
  diagonal: number,
): GraphValue {
  const { shape } = typeOfValue(value);
  const places = tensorType("i32", shape);
  const row = iota(builder, places, shape.length - 2);
  const column = iota(builder, places, shape.length - 1);
  const inside = compare(builder, lower ? "GT" : "LT", row, column);
  const onDiagonal = compare(builder, "EQ", row, column);
  const at = (number: number): GraphValue => like(builder, value, number);
  const rest = select(builder, onDiagonal, at(diagonal), at(0));
  return multiply(builder, value, select(builder, inside, at(1), rest));
}

function matrixProduct(builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  const rank = typeOfValue(lhs).shape.length;
  const batch = range(0, rank - 2);
  return builder.one(
    "stablehlo.dot_general",
    { lhs, rhs },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: batch,
        rhs_batching_dimensions: batch,
        lhs_contracting_dimensions: [rank - 1],
        rhs_contracting_dimensions: [rank - 2],
      },
    },
  );
}

type Solve = GraphOp<"stablehlo.triangular_solve">;

function solved(
  builder: GraphBuilder,
  a: GraphValue,
  b: GraphValue,
  attributes: Solve["attributes"],
): GraphValue {
  return builder.one("stablehlo.triangular_solve", { a, b }, attributes);
}

export const choleskyRule: JvpRule<"stablehlo.cholesky"> = (op, context) =>
  through(op, context, (builder) => {
    const { lower } = op.attributes;
    const factor = required(op.results[0]);
    const own = lower ? factor : adjoint(builder, factor);
    const half = triangle(builder, op.operands.a, lower, 0.5);
    const whole = addValues(builder, half, adjoint(builder, half));
    const settings = { lower: true, unit_diagonal: false } as const;
    const left = { ...settings, left_side: true, transpose_a: "NO_TRANSPOSE" } as const;
    const right = { ...settings, left_side: false, transpose_a: "ADJOINT" } as const;
    const inner = solved(builder, own, solved(builder, own, whole, left), right);
    const change = matrixProduct(builder, own, triangle(builder, inner, true, 0.5));
    return [lower ? change : adjoint(builder, change)];
  });

/** A matrix and how to read it so that it is the transpose of what it was. */
function transposed(
  builder: GraphBuilder,
  a: GraphValue,
  attributes: Solve["attributes"],
): { readonly a: GraphValue; readonly transpose_a: Solve["attributes"]["transpose_a"] } {
  const { transpose_a: mode } = attributes;
  if (mode === "TRANSPOSE") return { a, transpose_a: "NO_TRANSPOSE" };
  if (mode === "ADJOINT") return { a: conjugate(builder, a), transpose_a: "NO_TRANSPOSE" };
  return { a, transpose_a: "TRANSPOSE" };
}

/** Linear in the right side; a change of the matrix is a change of the right side. */
export const solveRule: JvpRule<"stablehlo.triangular_solve"> = (op, context) => {
  const { a, b } = op.operands;
  const { attributes } = op;
  if (!context.hasTangent(a))
    return [
      context.map(context.tangent(b), () =>
        single(
          typeOfValue(b),
          (builder, tangent) => solved(builder, a, tangent, attributes),
          (builder, cotangent) => {
            const back = transposed(builder, a, attributes);
            const { transpose_a } = back;
            return solved(builder, back.a, cotangent, { ...attributes, transpose_a });
          },
        ),
      ),
    ];
  const held = heldConstant(context, a);
  return through(op, context, (builder) => {
    const { left_side: isLeft, lower, unit_diagonal: isUnit, transpose_a: mode } = attributes;
    const solution = required(op.results[0]);
    const part = triangle(builder, a, lower, isUnit ? 0 : 1);
    const read =
      mode === "TRANSPOSE"
        ? swapped(builder, part)
        : mode === "ADJOINT"
          ? adjoint(builder, part)
          : part;
    const moved = isLeft
      ? matrixProduct(builder, read, solution)
      : matrixProduct(builder, solution, read);
    return [solved(builder, held, subtract(builder, b, moved), attributes)];
  });
};
