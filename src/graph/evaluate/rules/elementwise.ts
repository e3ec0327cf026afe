/** Rules of ops that compute place by place. */
import { isTensor } from "../../ops/index.ts";
import type { GraphRules } from "../../ops/index.ts";
import { bitcast } from "../bitcast.ts";

import { declaredElement } from "../elementwise/index.ts";
import { unsupported } from "../frame.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { elementwise, refuse } from "./shared.ts";

export const elementwiseRules = {
  "stablehlo.abs": elementwise,
  "stablehlo.cbrt": elementwise,
  "stablehlo.ceil": elementwise,
  "stablehlo.count_leading_zeros": elementwise,
  "stablehlo.cosine": elementwise,
  "stablehlo.exponential": elementwise,
  "stablehlo.exponential_minus_one": elementwise,
  "stablehlo.floor": elementwise,
  "stablehlo.imag": elementwise,
  "stablehlo.is_finite": elementwise,
  "stablehlo.log": elementwise,
  "stablehlo.log_plus_one": elementwise,
  "stablehlo.logistic": elementwise,
  "stablehlo.negate": elementwise,
  "stablehlo.not": elementwise,
  "stablehlo.popcnt": elementwise,
  "stablehlo.real": elementwise,
  "stablehlo.round_nearest_afz": elementwise,
  "stablehlo.round_nearest_even": elementwise,
  "stablehlo.rsqrt": elementwise,
  "stablehlo.sign": elementwise,
  "stablehlo.sine": elementwise,
  "stablehlo.sqrt": elementwise,
  "stablehlo.tan": elementwise,
  "stablehlo.tanh": elementwise,
  "stablehlo.convert": elementwise,
  "stablehlo.bitcast_convert": (op, frame) => {
    const [result] = op.results;
    if (result === undefined || !isTensor(result.type)) throw unsupported(op, "it has no tensor");
    const { element, shape } = result.type;
    const to = { element, shape, stored: frame.stored(element) };
    return [bitcast(frame.tensor(op.operands.operand), declaredElement(op.operands.operand), to)];
  },
  "stablehlo.uniform_quantize": refuse("quantised elements are not evaluated"),
  "stablehlo.uniform_dequantize": refuse("quantised elements are not evaluated"),
  "stablehlo.add": elementwise,
  "stablehlo.and": elementwise,
  "stablehlo.atan2": elementwise,
  "stablehlo.complex": elementwise,
  "stablehlo.divide": elementwise,
  "stablehlo.maximum": elementwise,
  "stablehlo.minimum": elementwise,
  "stablehlo.multiply": elementwise,
  "stablehlo.or": elementwise,
  "stablehlo.power": elementwise,
  "stablehlo.remainder": elementwise,
  "stablehlo.shift_left": elementwise,
  "stablehlo.shift_right_arithmetic": elementwise,
  "stablehlo.shift_right_logical": elementwise,
  "stablehlo.subtract": elementwise,
  "stablehlo.xor": elementwise,
  "stablehlo.compare": elementwise,
  "stablehlo.select": elementwise,
  "stablehlo.clamp": elementwise,
  "stablehlo.reduce_precision": elementwise,
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
