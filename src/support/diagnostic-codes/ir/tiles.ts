/** Codes of operations on whole tiles: TW202x and TW203x. */
import { registerCodes } from "../entry.ts";

export const tileCodes = registerCodes({
  TW2020: {
    title: "axis out of range",
    cause: "The value has fewer axes; they count from 0.",
    example: "x.sum({ axis: 2 })  // x has shape [128, 64]",
    remedy: "name an axis that exists",
  },
  TW2021: {
    title: "axis named twice",
    cause: "An operation along several axes takes each of them once.",
    example: "%1 = reduce %0 {fn = sum, axes = [1, 1]}",
    remedy: "name each axis once",
  },
  TW2022: {
    title: "not a permutation",
    cause: "A transpose lists every axis of its source exactly once.",
    example: "x.transpose([0, 0])",
    remedy: "list each axis once",
  },
  TW2023: {
    title: "shape does not broadcast",
    cause:
      "Each source axis lands on one result axis, in order, and has extent 1 or the extent of that axis.",
    example: "row.broadcastTo([128, 64])  // row has shape [32]",
    remedy: "make the extents equal, or insert axes of extent 1 with reshape",
  },
  TW2024: {
    title: "reshape changes the number of elements",
    cause: "A reshape keeps all elements and their row-major order.",
    example: "x.reshape([64, 64])  // x has shape [128, 64]",
    remedy: "give a shape with as many elements",
  },
  TW2025: {
    title: "slice outside the tile",
    cause:
      "A slice of a tile has one static start and size for each axis and lies inside the tile.",
    example: "x.slice([64, 0], [128, 64])  // x has shape [128, 64]",
    remedy: "keep start plus size within each extent",
  },
  TW2026: {
    title: "nothing to concatenate",
    cause: "With no tiles there is no shape and no dtype.",
    example: "concatenate([], { axis: 0 })",
    remedy: "give at least one tile",
  },
  TW2027: {
    title: "concatenated tiles differ",
    cause: "Tiles joined along an axis agree in rank and in every other extent.",
    example: "concatenate([a, b], { axis: 0 })  // [4, 64] and [4, 32]",
    remedy: "make the other extents equal, or join along another axis",
  },
  TW2029: {
    title: "operand of a matrix product is not a matrix",
    cause: "dot multiplies tiles with exactly two axes, [m, k] by [k, n].",
    example: "dot(a, b)  // a has shape [4, 64, 64]",
    remedy: "reshape the operand to two axes",
  },
  TW2030: {
    title: "inner extents of a matrix product differ",
    cause: "The columns of the left operand are summed against the rows of the right one.",
    example: "dot(a, b)  // [128, 64] and [128, 64]",
    remedy: "transpose one of the operands",
  },
  TW2031: {
    title: "dtypes do not multiply",
    cause:
      "Products take two operands of f64, f32, tf32, f16, bf16 or f4e2m1fn, two 8-bit floats, two 8-bit integers or two 4-bit integers.",
    example: "dot(a, b)  // f16 and bf16",
    remedy: "cast both operands to one format that multiplies, such as bf16",
  },
  TW2032: {
    title: "f32 product without a precision",
    cause:
      "Tensor cores have no f32 multiplication: it is either computed exactly on the ordinary cores or rounded to tf32, and neither is chosen silently.",
    example: "dot(a, b)  // both f32",
    remedy: 'say precision: "ieee" for exact f32, or "tf32" for the tensor cores',
  },
  TW2033: {
    title: "precision for operands that have none",
    cause: "Only products of f32 have a choice of precision; other formats multiply exactly.",
    example: 'dot(a, b, { precision: "tf32" })  // both bf16',
    remedy: "leave the precision out",
  },
  TW2034: {
    title: "accumulator of another type",
    cause: "The value a product is added to has the shape and the dtype of the product.",
    example: "dot(a, b, { accumulator })  // the accumulator is bf16, the product f32",
    remedy: "make the accumulator with the product's shape and dtype",
  },
  TW2035: {
    title: "result dtype of a matrix product",
    cause: "Each pair of operand formats accumulates in f32, f64, f16 or i32 only.",
    example: "dot(a, b, { dtype: bf16 })",
    remedy: "accumulate in an allowed dtype and cast the result",
  },
  TW2105: {
    title: "sort that keeps more than there is",
    cause:
      "A sort that keeps the first elements along an axis keeps a power of two of them, and no more than the axis has. `topK` chooses that number; only text of the IR can get it wrong.",
    example: "sort %x {axis = 0, descending = true, first = 3}",
    remedy: "keep the next power of two, and take a slice of it",
  },
});
