/**
 * Products of dequantised operands as products of operands in formats with scales, with a global scale and the format of the result where these follow:
 *
 *   dot_general(multiply(codes, scales), x)  ──▶  @tilewright.scaled_matmul, which the library makes without writing dequantised operands to memory
 *
 * Who wrote the multiplication, JAX's `scaled_dot`, XLA's call, or a program that keeps its weights in few bits, is all the same.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import { rewriting } from "../../normal/rewriting.ts";
import type { Place } from "../../normal/rewriting.ts";
import { isFloatElement } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import type { GraphPass } from "../../passes/pass.ts";
import { reshape, typeOfValue } from "../../transform/arithmetic.ts";
import { scaledProduct, scaledProductSettings } from "../../transform/expand/block-scaled.ts";
import { dotAxes } from "../dot-axes.ts";
import { settingName } from "./call.ts";
import { factorOf } from "./factors.ts";

type Call = GraphOp<"stablehlo.custom_call">;

/** The formats of results that sums of f32 are rounded to once. */
const results: ReadonlySet<ElementType> = new Set<ElementType>(["f32", "bf16", "f16"]);

function productCall(op: AnyGraphOp, place: Place): GraphValue | undefined {
  if (op.kind !== "stablehlo.dot_general") return undefined;
  const [result] = op.results;
  const { lhs, rhs } = op.operands;
  if (result === undefined || op.attributes.algorithm !== undefined) return undefined;
  const type = typeOfValue(result);
  const numbers = op.attributes.dot_dimension_numbers;
  const factor = (side: "lhs" | "rhs") => {
    const value = side === "lhs" ? lhs : rhs;
    const axes = dotAxes(numbers, side, typeOfValue(value).shape.length);
    return factorOf(value, axes, (each) => place.definition(each));
  };
  const [a, b] = [factor("lhs"), factor("rhs")];
  if (a === undefined || b === undefined || !results.has(type.element)) return undefined;
  if (a.format === "bf16" && b.format === "bf16") return undefined;
  const { builder } = place;
  const [rows = 1] = a.extents.slice(-2);
  const [columns = 1] = b.extents.slice(-2);
  const made = scaledProduct(builder, {
    formats: [settingName(a.format), settingName(b.format)],
    operands: {
      a: a.elements(builder),
      b: b.elements(builder),
      aScale: a.scales?.(builder),
      bScale: b.scales?.(builder),
      globalScale: undefined,
    },
    type: tensorType(type.element, [...a.extents.slice(0, -2), rows, columns]),
  });
  return reshape(builder, made, type.shape);
}

/** A value that is a call's result in another shape, which nothing else uses. */
function callBefore(value: GraphValue, place: Place): Call | undefined {
  const op = place.definition(value);
  if (op === undefined || place.uses(value) > 1) return undefined;
  if (op.kind === "stablehlo.reshape") return callBefore(op.operands.operand, place);
  const isOwn = op.kind === "stablehlo.custom_call" && scaledProductSettings(op) !== undefined;
  return isOwn && typeOfValue(value).element === "f32" ? op : undefined;
}

/** One number for all elements, as an array of one element of f32; undefined of others. */
function numberOf(value: GraphValue, place: Place): GraphValue | undefined {
  const op = place.definition(value);
  if (op?.kind !== "stablehlo.broadcast_in_dim") return undefined;
  const { operand } = op.operands;
  const { element, shape } = typeOfValue(operand);
  return element === "f32" && sizeOf(shape) === 1 ? operand : undefined;
}

function again(
  builder: GraphBuilder,
  call: Call,
  shape: readonly number[],
  change: { readonly element?: ElementType; readonly globalScale?: GraphValue },
): GraphValue | undefined {
  const settings = scaledProductSettings(call);
  const [result] = call.results;
  if (settings === undefined || result === undefined) return undefined;
  const own = typeOfValue(result);
  const made = scaledProduct(builder, {
    formats: settings.formats,
    operands: {
      ...settings.operands,
      ...(change.globalScale !== undefined && {
        globalScale: reshape(builder, change.globalScale, [1]),
      }),
    },
    type: tensorType(change.element ?? own.element, own.shape),
  });
  return reshape(builder, made, shape);
}

function globallyScaled(op: AnyGraphOp, place: Place): GraphValue | undefined {
  if (op.kind !== "stablehlo.multiply") return undefined;
  const { lhs, rhs } = op.operands;
  for (const [sums, factor] of [
    [lhs, rhs],
    [rhs, lhs],
  ] as const) {
    const call = callBefore(sums, place);
    const globalScale = call && numberOf(factor, place);
    const isFirst = call && scaledProductSettings(call)?.operands.globalScale === undefined;
    if (call !== undefined && globalScale !== undefined && isFirst === true)
      return again(place.builder, call, typeOfValue(sums).shape, { globalScale });
  }
  return undefined;
}

function convertedResult(op: AnyGraphOp, place: Place): GraphValue | undefined {
  if (op.kind !== "stablehlo.convert") return undefined;
  const [result] = op.results;
  const call = callBefore(op.operands.operand, place);
  if (result === undefined || call === undefined) return undefined;
  const { element, shape } = typeOfValue(result);
  const isNarrower = isFloatElement(element) && results.has(element) && element !== "f32";
  return isNarrower ? again(place.builder, call, shape, { element }) : undefined;
}

export const scaledProductsPass: GraphPass = rewriting("scaled-products", {
  "scaled-product": productCall,
  "global-scale": globallyScaled,
  "scaled-result": convertedResult,
});
