/** Inference for ops that rearrange tiles or combine their elements. */
import {
  acceptsArg,
  acceptsReduce,
  acceptsScan,
  acceptsSort,
} from "../../formats/arithmetic/functions.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import type { tileOps } from "../ops/tiles.ts";
import { singlePrecisions } from "../precisions.ts";
import { shapeText } from "../size.ts";
import { dataShape, dataType, tileType, typeText } from "../types.ts";
import type { TileType, Type } from "../types.ts";
import {
  dataOperand,
  elementCount,
  fail,
  permute,
  requireAxes,
  requireAxis,
  requireFunction,
  requirePermutation,
  requireTileShape,
  sameDTypes,
  sameShapes,
  tileOperand,
  listText,
} from "./checks.ts";
import type { Draft, InferRules } from "./inference-input.ts";
import { dotAccumulators, operandsText } from "./matrix.ts";
import { requireAccumulator, scaledDot } from "./scaled-dot.ts";
import { productInstruction } from "../../targets/product-instructions.ts";

function broadcast(draft: Draft<"broadcast">): readonly Type[] {
  const source = dataOperand(draft, "the operand", draft.operands.source);
  const { shape, axes } = draft.attributes;
  requireTileShape(draft, shape);
  requireAxes(draft, axes, shape.length);
  const from = dataShape(source);
  const fits =
    axes.length === from.length &&
    axes.every((axis, position) => position === 0 || axis > (axes[position - 1] ?? -1)) &&
    axes.every((axis, position) => from[position] === 1 || from[position] === shape[axis]);
  if (!fits)
    fail(draft, "TW2023", `${typeText(source)} does not broadcast to ${shapeText(shape)}`, {
      expected: `extents that are 1 or those of axes [${axes.join(", ")}] of ${shapeText(shape)}`,
      found: shapeText(from),
    });
  return [dataType(source.dtype, shape)];
}

function slice(draft: Draft<"slice">): readonly Type[] {
  const source = tileOperand(draft, "the operand", draft.operands.source);
  const { starts, sizes } = draft.attributes;
  requireTileShape(draft, sizes);
  const fits =
    starts.length === source.shape.length &&
    sizes.length === source.shape.length &&
    source.shape.every((extent, axis) => {
      const start = starts[axis] ?? -1;
      return Number.isInteger(start) && start >= 0 && start + (sizes[axis] ?? 0) <= extent;
    });
  if (!fits)
    fail(draft, "TW2025", `the slice reaches outside ${typeText(source)}`, {
      expected: `a window within ${shapeText(source.shape)}`,
      found: `${shapeText(sizes)} from ${shapeText(starts)}`,
    });
  return [tileType(source.dtype, sizes)];
}

function concatenate(draft: Draft<"concatenate">): readonly Type[] {
  const parts = draft.operands.parts.map((part) => tileOperand(draft, "a part", part));
  const [first, ...others] = parts;
  if (first === undefined)
    return fail(draft, "TW2026", "concatenate was given no tiles", {
      expected: "one tile at least",
      found: "none",
    });
  const { axis } = draft.attributes;
  requireAxis(draft, axis, first.shape.length);
  for (const part of others) {
    sameDTypes(draft, first.dtype, part.dtype);
    const fits =
      part.shape.length === first.shape.length &&
      part.shape.every((extent, other) => other === axis || extent === first.shape[other]);
    if (!fits)
      fail(draft, "TW2027", `tiles to concatenate differ outside axis ${axis}`, {
        expected: shapeText(first.shape),
        found: shapeText(part.shape),
      });
  }
  const extent = parts.reduce((total, part) => total + (part.shape[axis] ?? 0), 0);
  const shape = first.shape.with(axis, extent);
  requireTileShape(draft, shape);
  return [tileType(first.dtype, shape)];
}

function withoutAxes(source: TileType, axes: readonly number[]): number[] {
  return source.shape.filter((_, axis) => !axes.includes(axis));
}

/** A tile, or the window of shared memory that its instruction reads. */
function matrixOperand(draft: Draft<"dot">, name: "left" | "right"): MatrixType {
  const type = factorType(draft, name);
  if (type.shape.length !== 2)
    fail(draft, "TW2029", `the ${name} operand of dot must have two axes`, {
      expected: name === "left" ? "[m, k]" : "[k, n]",
      found: shapeText(type.shape),
    });
  return type;
}

type MatrixType = Pick<TileType, "dtype" | "shape">;

function factorType(draft: Draft<"dot">, name: "left" | "right"): MatrixType {
  const { type } = draft.operands[name];
  const places = productInstruction(draft.attributes.instruction)?.[name] ?? [];
  if (!places.includes("shared") || type.kind !== "ref" || type.space !== "smem")
    return tileOperand(draft, name, draft.operands[name]);
  return { dtype: type.dtype, shape: type.shape.map(Number) };
}

function checkDotFormats(draft: Draft<"dot">, left: MatrixType, right: MatrixType): void {
  const { dtype, precision } = draft.attributes;
  const accumulators = dotAccumulators(left.dtype, right.dtype);
  if (accumulators.length === 0)
    fail(draft, "TW2031", `dot does not multiply ${left.dtype.name} by ${right.dtype.name}`, {
      expected: operandsText(dotAccumulators),
      found: `${left.dtype.name} and ${right.dtype.name}`,
    });
  if (left.dtype === f32 && precision === "native")
    fail(draft, "TW2032", "dot of f32 must say with which precision it multiplies", {
      expected: `precision: ${listText(singlePrecisions.map((each) => `"${each}"`))}`,
      found: "no precision",
    });
  if (left.dtype !== f32 && precision !== "native")
    fail(
      draft,
      "TW2033",
      `precision "${precision}" is for f32, and the operands are ${left.dtype.name}`,
      {
        expected: "no precision",
        found: `precision: "${precision}"`,
      },
    );
  if (!accumulators.includes(dtype.name))
    fail(draft, "TW2035", `dot of ${left.dtype.name} does not accumulate in ${dtype.name}`, {
      expected: accumulators.join(" or "),
      found: dtype.name,
    });
}

function dot(draft: Draft<"dot">): readonly Type[] {
  const left = matrixOperand(draft, "left");
  const right = matrixOperand(draft, "right");
  checkDotFormats(draft, left, right);
  const [m = 0, inner] = left.shape;
  const [outer, n = 0] = right.shape;
  if (inner !== outer)
    fail(draft, "TW2030", "inner extents of dot differ", {
      expected: `[${inner}, n] on the right of ${shapeText(left.shape)}`,
      found: shapeText(right.shape),
    });
  requireTileShape(draft, [m, n]);
  const result = tileType(draft.attributes.dtype, [m, n]);
  if (draft.operands.accumulator !== undefined)
    requireAccumulator(
      draft,
      result,
      tileOperand(draft, "the accumulator", draft.operands.accumulator),
    );
  return [result];
}

export const tileRules: InferRules<keyof typeof tileOps> = {
  broadcast,

  reshape(draft) {
    const source = dataOperand(draft, "the operand", draft.operands.source);
    const { shape } = draft.attributes;
    requireTileShape(draft, shape);
    const [from, to] = [elementCount(dataShape(source)), elementCount(shape)];
    if (from !== to)
      fail(
        draft,
        "TW2024",
        `reshape of ${typeText(source)} to ${shapeText(shape)} changes the number of elements`,
        {
          expected: `${from} elements`,
          found: `${to} elements`,
        },
      );
    return [dataType(source.dtype, shape)];
  },

  transpose(draft) {
    const source = tileOperand(draft, "the operand", draft.operands.source);
    const { permutation } = draft.attributes;
    requirePermutation(draft, permutation, source.shape.length);
    return [tileType(source.dtype, permute(source.shape, permutation))];
  },

  layout_cast: (draft) => [tileOperand(draft, "the operand", draft.operands.source)],

  slice,
  concatenate,

  reduce(draft) {
    const source = tileOperand(draft, "the operand", draft.operands.source);
    const { fn, axes } = draft.attributes;
    requireAxes(draft, axes, source.shape.length);
    requireFunction(draft, source.dtype, (each) => acceptsReduce(fn, each));
    return [dataType(source.dtype, withoutAxes(source, axes))];
  },

  scan(draft) {
    const source = tileOperand(draft, "the operand", draft.operands.source);
    const { fn, axis } = draft.attributes;
    requireAxis(draft, axis, source.shape.length);
    requireFunction(draft, source.dtype, (each) => acceptsScan(fn, each));
    return [source];
  },

  arg_reduce(draft) {
    const source = tileOperand(draft, "the operand", draft.operands.source);
    const { fn, axis } = draft.attributes;
    requireAxis(draft, axis, source.shape.length);
    requireFunction(draft, source.dtype, (each) => acceptsArg(fn, each));
    return [dataType(i32, withoutAxes(source, [axis]))];
  },

  sort(draft) {
    const keys = tileOperand(draft, "the operand", draft.operands.keys);
    requireAxis(draft, draft.attributes.axis, keys.shape.length);
    requireFunction(draft, keys.dtype, acceptsSort);
    const payloads = draft.operands.payloads.map((payload) =>
      tileOperand(draft, "a payload", payload),
    );
    for (const payload of payloads) sameShapes(draft, keys.shape, payload.shape);
    const { axis, first = 1, positions } = draft.attributes;
    const extent = keys.shape[axis] ?? 1;
    if (!Number.isInteger(Math.log2(first)) || first < 1 || first > extent)
      fail(draft, "TW2105", `a sort keeps the first ${first} of ${extent}`, {
        expected: `a power of two from 1 to ${extent}`,
        found: String(first),
      });
    return [keys, ...payloads, ...(positions === true ? [dataType(i32, keys.shape)] : [])];
  },

  dot,
  scaled_dot: scaledDot,
};
