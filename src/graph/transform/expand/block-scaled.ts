/**
 * XLA's calls of numbers with scales, as other ops. A scale belongs to a block of neighbours along the last axis:
 *
 *   __op$quantize(x)                       values, scales      scale = max |x| of a block / 2^emax of the format of the values
 *   __op$dequantize(values, scales)        values · scales
 *   __op$block_scaled_dot(lhs, rhs, lhs_scale[, rhs_scale[, global_scale]])      Σ lhs[…, m, k] · rhs[…, n, k]
 *
 *   lhs [b, m, k]   lhs_scale [b, m, k / block]     or with `block_size` in the settings [b, ≥ m, ≥ k / block]: what is more is padding
 *
 * Operands of a product become bf16 where bf16 holds every number times its scale: in MX and NV formats it does, down to bf16's smallest
 * number, 2^-133. Others become f32, or f64 where the result is. Sums are rounded to the result's format once, after the global scale.
 */
import { scaledFormats } from "../../../formats/scaled/formats.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import type { Attribute } from "../../ops/attribute.ts";
import { isFloatElement, isNarrowFloat } from "../../ops/elements.ts";
import type { FloatElement } from "../../ops/elements.ts";
import type { GraphValue } from "../../ops/node.ts";
import { greatestPower, significandBits } from "../../ops/small-floats.ts";
import { isTensor, tensorType } from "../../ops/types.ts";
import type { TensorType } from "../../ops/types.ts";
import {
  broadcastInDim,
  combiner,
  convert,
  divide,
  multiply,
  reshape,
  splatOf,
  typeOfValue,
  unary,
  zerosOf,
} from "../arithmetic.ts";
import type { Call, CallMeaning } from "./call-meaning.ts";

function isSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((extent, axis) => extent === b[axis]);
}

/** Numbers times the scales of their blocks, in a format; zeros follow them where the last block is a part of one. */
function dequantized(
  builder: GraphBuilder,
  values: GraphValue,
  scales: GraphValue,
  block: number,
  element: FloatElement,
): GraphValue {
  const count = typeOfValue(scales).shape.at(-1) ?? 1;
  const numbers = extended(builder, convert(builder, values, element), count * block);
  return multiply(builder, numbers, spread(builder, convert(builder, scales, element), block));
}

/** The values with zeros after them, so many along the last axis. */
function extended(builder: GraphBuilder, values: GraphValue, extent: number): GraphValue {
  const { element, shape } = typeOfValue(values);
  const rest = extent - (shape.at(-1) ?? 0);
  if (rest === 0) return values;
  const none = shape.map(() => 0);
  return builder.one(
    "stablehlo.pad",
    { operand: values, padding_value: zerosOf(builder, tensorType(element, [])) },
    { edge_padding_low: none, edge_padding_high: [...none.slice(1), rest], interior_padding: none },
  );
}

/** Each number of the last axis as many times as a block has elements. */
function spread(builder: GraphBuilder, scales: GraphValue, block: number): GraphValue {
  if (block === 1) return scales;
  const { shape } = typeOfValue(scales);
  const apart = broadcastInDim(
    builder,
    scales,
    [...shape, block],
    shape.map((_, axis) => axis),
  );
  return reshape(builder, apart, [...shape.slice(0, -1), (shape.at(-1) ?? 0) * block]);
}

/** Whether the last axis of scales divides that of values, and the other axes agree. */
function hasBlocks(values: TensorType, scales: TensorType): boolean {
  const [k, count] = [values.shape.at(-1) ?? 0, scales.shape.at(-1) ?? 0];
  return (
    isSame(values.shape.slice(0, -1), scales.shape.slice(0, -1)) && count > 0 && k % count === 0
  );
}

function blockOf(values: TensorType, scales: TensorType): number {
  return (values.shape.at(-1) ?? 0) / (scales.shape.at(-1) ?? 1);
}

function areFloats(...types: readonly TensorType[]): boolean {
  return types.every(({ element }) => isFloatElement(element));
}

export const dequantize: CallMeaning = ({ operands, results }, builder) => {
  const [values, scales] = operands.inputs;
  const [result] = results;
  if (values === undefined || scales === undefined || result === undefined) return undefined;
  const [own, ofScales, out] = [values, scales, result].map(typeOfValue) as [
    TensorType,
    TensorType,
    TensorType,
  ];
  if (operands.inputs.length !== 2 || results.length !== 1) return undefined;
  if (!isFloatElement(out.element) || !areFloats(own, ofScales)) return undefined;
  if (!isSame(own.shape, out.shape) || !hasBlocks(own, ofScales)) return undefined;
  return [dequantized(builder, values, scales, blockOf(own, ofScales), out.element)];
};

export const quantize: CallMeaning = ({ operands, results }, builder) => {
  const [x] = operands.inputs;
  const [values, scales] = results.map(typeOfValue);
  if (operands.inputs.length !== 1 || x === undefined || values === undefined) return undefined;
  const given = typeOfValue(x);
  if (scales === undefined || results.length !== 2 || !areFloats(given, values, scales))
    return undefined;
  if (!isSame(given.shape, values.shape) || !hasBlocks(values, scales)) return undefined;
  const emax = isFloatElement(values.element) ? greatestPower(values.element) : undefined;
  if (emax === undefined) return undefined;
  const block = blockOf(values, scales);
  const { element } = given;
  const rank = given.shape.length;
  const least = zerosOf(builder, tensorType(element, []));
  const magnitudes = unary(builder, "stablehlo.abs", x);
  const apart = reshape(builder, magnitudes, [...scales.shape, block]);
  const greatest = builder.one(
    "stablehlo.reduce",
    { inputs: [apart], init_values: [least] },
    { dimensions: [rank] },
    { regions: { body: combiner(builder, element, "stablehlo.maximum") } },
  );
  const divisor = splatOf(builder, tensorType(element, scales.shape), emax);
  const scale = convert(builder, divide(builder, greatest, divisor), scales.element);
  const factors = spread(builder, convert(builder, scale, element), block);
  return [convert(builder, divide(builder, x, factors), values.element), scale];
};

/** The number of elements that share a scale, where the settings say it; the settings are text of JSON, or a dictionary. */
function blockSize(op: Call): number | undefined {
  const given = op.extra.get("mhlo.backend_config") ?? op.attributes.backend_config;
  const found =
    given === undefined
      ? undefined
      : entry(plain(given), ["block_scaled_dot_backend_config", "block_size"]);
  const size = Number(found);
  return Number.isSafeInteger(size) && size > 0 ? size : undefined;
}

function entry(of: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, name)
        ? (inner as { readonly [name: string]: unknown })[name]
        : undefined,
    of,
  );
}

/** Settings as JSON has them. */
function plain(given: Attribute): unknown {
  if (given.kind === "dictionary")
    return Object.fromEntries([...given.entries].map(([name, value]) => [name, plain(value)]));
  if (given.kind === "integer") return Number(given.value);
  if (given.kind !== "string") return undefined;
  try {
    return JSON.parse(given.value) as unknown;
  } catch {
    return undefined;
  }
}

interface ScaledOperand {
  readonly values: GraphValue;
  readonly scales: GraphValue | undefined;
}

/** Scales without padding on rows, and on k where the size of blocks is given; undefined where they do not suffice. */
function withoutPadding(
  builder: GraphBuilder,
  { values, scales }: ScaledOperand,
  block: number | undefined,
): ScaledOperand | undefined {
  if (scales === undefined) return { values, scales };
  const [own, given] = [typeOfValue(values).shape, typeOfValue(scales).shape];
  if (own.length !== given.length) return undefined;
  const [rows, k] = [own.length - 2, own.length - 1];
  const limits = given.map((extent, axis) => {
    if (axis === rows) return own[rows] ?? 0;
    return axis === k && block !== undefined ? Math.ceil((own[k] ?? 0) / block) : extent;
  });
  const suffices = given.every((extent, axis) => extent >= (limits[axis] ?? 0));
  const divides = block !== undefined || (own[k] ?? 0) % (given[k] ?? 0) === 0;
  if (!suffices || !divides || (own.length === 3 && own[0] !== given[0])) return undefined;
  if (isSame(limits, given)) return { values, scales };
  const attributes = {
    start_indices: given.map(() => 0),
    limit_indices: limits,
    strides: given.map(() => 1),
  };
  return { values, scales: builder.one("stablehlo.slice", { operand: scales }, attributes) };
}

/** Whether every product of a number and a scale is one of bf16, but for the smallest. */
function isExactInBf16({ values, scales }: ScaledOperand): boolean {
  const bitsOf = (value: GraphValue): number => {
    const { element } = typeOfValue(value);
    return isNarrowFloat(element) && isFloatElement(element) && element !== "f16"
      ? significandBits(element)
      : Infinity;
  };
  const own = bitsOf(values);
  const of = scales === undefined ? 1 : bitsOf(scales);
  return (own === 1 || of === 1 ? Math.max(own, of) : own + of) <= significandBits("bf16");
}

/** What settings and types say of a product: its operands, and how many of their elements share a scale. */
interface BlockScaledDot {
  readonly lhs: ScaledOperand;
  readonly rhs: ScaledOperand;
  readonly block: number | undefined;
  readonly global: GraphValue | undefined;
  readonly out: TensorType;
}

/** Sums over the last axes of two operands, whose first axes are a batch where there are three. */
function sumsOf(
  builder: GraphBuilder,
  { lhs, rhs, block, global, out }: BlockScaledDot,
): GraphValue {
  const wide: FloatElement = out.element === "f64" ? "f64" : "f32";
  const multiplied = isExactInBf16(lhs) && isExactInBf16(rhs) ? "bf16" : wide;
  const rank = out.shape.length;
  const k = typeOfValue(lhs.values).shape.at(-1) ?? 0;
  const extent = block === undefined ? k : Math.ceil(k / block) * block;
  const made = ({ values, scales }: ScaledOperand): GraphValue => {
    if (scales === undefined)
      return extended(builder, convert(builder, values, multiplied), extent);
    const size = block ?? blockOf(typeOfValue(values), typeOfValue(scales));
    return dequantized(builder, values, scales, size, multiplied);
  };
  const batch = rank === 3 ? [0] : [];
  const sums = builder.one(
    "stablehlo.dot_general",
    { lhs: made(lhs), rhs: made(rhs) },
    {
      dot_dimension_numbers: {
        lhs_batching_dimensions: batch,
        rhs_batching_dimensions: batch,
        lhs_contracting_dimensions: [rank - 1],
        rhs_contracting_dimensions: [rank - 1],
      },
    },
    { types: [tensorType(wide, out.shape)] },
  );
  const factor = global && broadcastInDim(builder, convert(builder, global, wide), out.shape, []);
  const scaled = factor === undefined ? sums : multiply(builder, sums, factor);
  return convert(builder, scaled, out.element);
}

/** Whether shapes are [m, k], [n, k] and [m, n], or those after a batch. */
function isProduct({ shape: a }: TensorType, { shape: b }: TensorType, out: TensorType): boolean {
  const batch = a.slice(0, -2);
  const [m = 0, k = 0] = a.slice(-2);
  const n = b.at(-2) ?? 0;
  return (
    (a.length === 2 || a.length === 3) &&
    isSame(b, [...batch, n, k]) &&
    isSame(out.shape, [...batch, m, n])
  );
}

export const blockScaledDot: CallMeaning = (op, builder) => {
  const { inputs } = op.operands;
  const [left, right, leftScales, rightScales, global] = inputs;
  const types = [...inputs, ...op.results].map(({ type }) => type).filter(isTensor);
  const [a, b] = types;
  const out = types.at(-1);
  if (inputs.length > 5 || op.results.length !== 1 || types.length !== inputs.length + 1)
    return undefined;
  if (left === undefined || right === undefined || leftScales === undefined) return undefined;
  if (a === undefined || b === undefined || out === undefined) return undefined;
  if (!isProduct(a, b, out) || !areFloats(...types)) return undefined;
  if (global !== undefined && typeOfValue(global).shape.length !== 0) return undefined;
  const block = blockSize(op);
  const operandOf = (values: GraphValue, scales: GraphValue | undefined) =>
    withoutPadding(builder, { values, scales }, block);
  const [lhs, rhs] = [operandOf(left, leftScales), operandOf(right, rightScales)];
  if (lhs === undefined || rhs === undefined) return undefined;
  return [sumsOf(builder, { lhs, rhs, block, global, out })];
};

/** Operands of a product of matrices with scales along k, [batch, rows, k] or [rows, k]; a global scale is [1] of f32. */
export interface ScaledProductOperands {
  readonly a: GraphValue;
  readonly b: GraphValue;
  readonly aScale: GraphValue | undefined;
  readonly bScale: GraphValue | undefined;
  readonly globalScale: GraphValue | undefined;
}

/** What a call of such a product says: the names of both formats, or bf16, and its operands. */
export interface ScaledProductSettings {
  readonly formats: readonly [a: string, b: string];
  readonly operands: ScaledProductOperands;
}

/** The target of calls that stand for products with scales, which the passes for devices make. */
export const scaledProductTarget = "tilewright.scaled_matmul";

const globalSetting = "global";

/** A call of the product. */
export function scaledProduct(
  builder: GraphBuilder,
  { formats, operands, type }: ScaledProductSettings & { readonly type: TensorType },
): GraphValue {
  const { a, b, aScale, bScale, globalScale } = operands;
  const inputs = [a, b, aScale, bScale, globalScale].filter((value) => value !== undefined);
  const words = [...formats, ...(globalScale === undefined ? [] : [globalSetting])];
  return builder.one(
    "stablehlo.custom_call",
    { inputs },
    {
      ...{ call_target_name: scaledProductTarget, has_side_effect: false, api_version: 1 },
      backend_config: { kind: "string", value: words.join(" ") },
      called_computations: [],
    },
    { types: [type] },
  );
}

/** What a call says, where it is one of a product with scales. */
export function scaledProductSettings(op: Call): ScaledProductSettings | undefined {
  const { call_target_name: target, backend_config: config } = op.attributes;
  if (target !== scaledProductTarget || config?.kind !== "string") return undefined;
  const [ofA, ofB, last] = config.value.split(" ");
  const [a, b, ...others] = op.operands.inputs;
  if (ofA === undefined || ofB === undefined || a === undefined || b === undefined)
    return undefined;
  const next = (isThere: boolean): GraphValue | undefined => (isThere ? others.shift() : undefined);
  const aScale = next(Object.hasOwn(scaledFormats, ofA));
  const bScale = next(Object.hasOwn(scaledFormats, ofB));
  const globalScale = next(last === globalSetting);
  return { formats: [ofA, ofB], operands: { a, b, aScale, bScale, globalScale } };
}

/** The product as other ops: operands in bf16, sums in f32. */
export const scaledProductMeaning: CallMeaning = (op, builder) => {
  const settings = scaledProductSettings(op);
  const [result] = op.results;
  if (settings === undefined || result === undefined) return undefined;
  const { a, b, aScale, bScale, globalScale } = settings.operands;
  const whole = { block: undefined, out: typeOfValue(result) };
  const global = globalScale && reshape(builder, globalScale, []);
  const [lhs, rhs] = [
    { values: a, scales: aScale },
    { values: b, scales: bScale },
  ];
  return [sumsOf(builder, { ...whole, lhs, rhs, global })];
};
