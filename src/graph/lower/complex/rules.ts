/** How each op works on pairs of real values where some of its values are complex. */
import { graphOp, graphValue } from "../../ops/node.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../../ops/node.ts";
import { applyGraphRule } from "../../ops/table.ts";
import type { GraphOpKind, GraphRules } from "../../ops/table.ts";
import { tensorType } from "../../ops/types.ts";
import type { TensorType } from "../../ops/types.ts";
import {
  binary,
  broadcastInDim,
  compare,
  convert,
  iota,
  like,
  negate,
  typeOfValue,
  zerosOf,
} from "../../transform/arithmetic.ts";
import { callLowering } from "../rules/calls.ts";
import { cannotRun } from "../storage.ts";
import { fourier } from "./fourier.ts";
import { larger, magnitude, smaller } from "../../ops/complex-functions.ts";
import { binaryFunctions, closed, opened, unaryFunctions } from "./functions.ts";
import type { ComplexReal } from "./functions.ts";
import {
  isComplexType,
  joined,
  joinedLiteral,
  joinedType,
  literalPart,
  partElement,
  separated,
} from "./parts.ts";
import { product } from "./products.ts";
import { combined, each, flat, mapped, sorted } from "./regions.ts";
import type { Split, Splitter } from "./split.ts";

type Rule<K extends GraphOpKind> = (op: GraphOp<K>, split: Splitter) => readonly Split[];

function refused(op: AnyGraphOp): never {
  throw cannotRun(op, "it is not defined for complex numbers there");
}

function ofKinds<K extends GraphOpKind>(
  kinds: readonly K[],
  rule: (op: AnyGraphOp, split: Splitter) => readonly Split[],
): { readonly [N in K]: Rule<N> } {
  return Object.fromEntries(kinds.map((kind) => [kind, rule])) as never;
}

function resultType({ results: [result] }: AnyGraphOp): TensorType {
  if (result === undefined) throw new Error("the op has a result");
  return typeOfValue(result);
}

/* ---- functions of elements ---- */

type UnaryKind = keyof typeof unaryFunctions;
type BinaryKind = keyof typeof binaryFunctions;

function unary(op: GraphOp<UnaryKind>, split: Splitter): readonly Split[] {
  const { builder } = split;
  const parts = split.parts(op.operands.operand);
  return [closed(builder, unaryFunctions[op.kind](opened(builder, parts)), parts)];
}

function pairwise(op: GraphOp<BinaryKind>, split: Splitter): readonly Split[] {
  const { builder } = split;
  const [left, right] = [split.parts(op.operands.lhs), split.parts(op.operands.rhs)];
  const value = binaryFunctions[op.kind](opened(builder, left), opened(builder, right));
  return [closed(builder, value, left)];
}

const unaryKinds = Object.keys(unaryFunctions) as readonly UnaryKind[];
const binaryKinds = Object.keys(binaryFunctions) as readonly BinaryKind[];

/** Both parts of the bounds, in the shape of what they bound. */
function clamp(op: GraphOp<"stablehlo.clamp">, split: Splitter): readonly Split[] {
  const { builder } = split;
  const { shape } = resultType(op);
  const full = (value: GraphValue): ComplexReal => {
    const { re, im } = split.parts(value);
    const spread = (part: GraphValue): GraphValue =>
      typeOfValue(part).shape.length === shape.length
        ? part
        : broadcastInDim(builder, part, shape, []);
    return opened(builder, { re: spread(re), im: spread(im) });
  };
  const { min, operand, max } = op.operands;
  const value = smaller(larger(full(min), full(operand)), full(max));
  return [closed(builder, value, split.parts(operand))];
}

function compared(op: GraphOp<"stablehlo.compare">, split: Splitter): readonly Split[] {
  const { builder } = split;
  const { comparison_direction: direction } = op.attributes;
  if (direction !== "EQ" && direction !== "NE") return refused(op);
  const [left, right] = [split.parts(op.operands.lhs), split.parts(op.operands.rhs)];
  const re = compare(builder, direction, left.re, right.re);
  const im = compare(builder, direction, left.im, right.im);
  return [binary(builder, direction === "EQ" ? "stablehlo.and" : "stablehlo.or", re, im)];
}

function converted(op: GraphOp<"stablehlo.convert">, split: Splitter): readonly Split[] {
  const { builder } = split;
  const { operand } = op.operands;
  const { element } = resultType(op);
  const to = partElement(element);
  const re = convert(builder, split.part(operand, "re"), to);
  if (to === element) return [re];
  const im = split.isComplex(operand) ? split.parts(operand).im : like(builder, re, 0);
  return [{ re, im: convert(builder, im, to) }];
}

/** Through both parts side by side, which is how a complex number lies in memory. */
function bitcast(op: GraphOp<"stablehlo.bitcast_convert">, split: Splitter): readonly Split[] {
  const { builder } = split;
  const { operand } = op.operands;
  const given = split.isComplex(operand)
    ? joined(builder, split.parts(operand))
    : split.real(operand);
  const type = joinedType(resultType(op));
  const bits = builder.one("stablehlo.bitcast_convert", { operand: given }, {}, { types: [type] });
  return [isComplexType(resultType(op)) ? separated(builder, bits) : bits];
}

function constant(op: GraphOp<"stablehlo.constant">, { builder }: Splitter): readonly Split[] {
  const { value } = op.attributes;
  if ("kind" in value) throw cannotRun(op, "its value is carried as text");
  const part = (slot: 0 | 1): GraphValue =>
    builder.one("stablehlo.constant", {}, { value: literalPart(value, slot) });
  return [{ re: part(0), im: part(1) }];
}

function counted(op: GraphOp<"stablehlo.iota">, { builder }: Splitter): readonly Split[] {
  const { element, shape } = resultType(op);
  const type = tensorType(partElement(element), shape);
  const re = iota(builder, type, op.attributes.iota_dimension);
  return [{ re, im: zerosOf(builder, type) }];
}

function transformed(op: GraphOp<"stablehlo.fft">, split: Splitter): readonly Split[] {
  const { operand } = op.operands;
  const given: { re: GraphValue; im: GraphValue | undefined } = split.isComplex(operand)
    ? split.parts(operand)
    : { re: split.real(operand), im: undefined };
  const value = fourier(op, split.builder, given);
  return [isComplexType(resultType(op)) ? value : value.re];
}

/* ---- checks and calls ---- */

/** Operands of checks are compared part by part. */
function checked(op: AnyGraphOp, split: Splitter): readonly Split[] {
  const joint = (value: GraphValue): GraphValue =>
    split.isComplex(value) ? joined(split.builder, split.parts(value)) : split.real(value);
  const operands = Object.fromEntries(
    Object.entries(op.operands).map(([name, slot]) => [
      name,
      Array.isArray(slot) ? (slot as readonly GraphValue[]).map(joint) : joint(slot as GraphValue),
    ]),
  );
  const { value, ...rest } = op.attributes as { readonly value?: never };
  const attributes = value === undefined ? rest : { ...rest, value: joinedLiteral(value) };
  const results = op.results.map(({ type }) => graphValue(type));
  const { regions, location, name, extra } = op;
  const parts = { operands, attributes, regions, results, location, name, extra };
  split.builder.append(graphOp(op.kind, parts as never) as AnyGraphOp);
  return results;
}

function called(op: GraphOp<"stablehlo.custom_call">, split: Splitter): readonly Split[] {
  const lowering = callLowering.form === "choose" ? callLowering.by(op) : callLowering;
  if (lowering.form === "check") return checked(op, split);
  if (lowering.form === "alias")
    return lowering
      .operands(op)
      .map((value) => (split.isComplex(value) ? split.parts(value) : split.real(value)));
  return refused(op);
}

/* ---- the record ---- */

const perPart = ofKinds(
  [
    "stablehlo.add",
    "stablehlo.subtract",
    "stablehlo.negate",
    "stablehlo.select",
    "stablehlo.broadcast_in_dim",
    "stablehlo.dynamic_broadcast_in_dim",
    "stablehlo.broadcast",
    "stablehlo.reshape",
    "stablehlo.dynamic_reshape",
    "stablehlo.transpose",
    "stablehlo.reverse",
    "stablehlo.concatenate",
    "stablehlo.slice",
    "stablehlo.real_dynamic_slice",
    "stablehlo.pad",
    "stablehlo.dynamic_pad",
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.dynamic_gather",
    "stablehlo.torch_index_select",
    "sdy.sharding_constraint",
  ],
  (op, split) => each(op, split),
);

const allTogether = ofKinds(
  ["stablehlo.while", "stablehlo.case", "stablehlo.if", "stablehlo.optimization_barrier"],
  flat,
);

const checks = ofKinds(
  [
    "check.expect_eq",
    "check.expect_eq_const",
    "check.expect_almost_eq",
    "check.expect_almost_eq_const",
    "check.expect_close",
  ],
  checked,
);

/** Ops that are undefined for complex numbers, that no device runs, or that are others by now. */
const neverComplex = ofKinds(
  [
    "stablehlo.and",
    "stablehlo.batch_norm_grad",
    "stablehlo.batch_norm_inference",
    "stablehlo.batch_norm_training",
    "stablehlo.ceil",
    "stablehlo.cholesky",
    "stablehlo.composite",
    "stablehlo.count_leading_zeros",
    "stablehlo.dynamic_conv",
    "stablehlo.dynamic_iota",
    "stablehlo.einsum",
    "stablehlo.floor",
    "stablehlo.get_tuple_element",
    "stablehlo.is_finite",
    "stablehlo.not",
    "stablehlo.or",
    "stablehlo.popcnt",
    "stablehlo.reduce_precision",
    "stablehlo.remainder",
    "stablehlo.rng",
    "stablehlo.rng_bit_generator",
    "stablehlo.round_nearest_afz",
    "stablehlo.round_nearest_even",
    "stablehlo.select_and_scatter",
    "stablehlo.set_dimension_size",
    "stablehlo.shift_left",
    "stablehlo.shift_right_arithmetic",
    "stablehlo.shift_right_logical",
    "stablehlo.triangular_solve",
    "stablehlo.tuple",
    "stablehlo.unary_einsum",
    "stablehlo.uniform_dequantize",
    "stablehlo.uniform_quantize",
    "stablehlo.xor",
    "stablehlo.replica_id",
    "stablehlo.partition_id",
    "stablehlo.all_gather",
    "stablehlo.all_reduce",
    "stablehlo.all_to_all",
    "stablehlo.reduce_scatter",
    "stablehlo.collective_broadcast",
    "stablehlo.collective_reduce",
    "stablehlo.collective_permute",
    "stablehlo.cross-replica-sum",
    "stablehlo.send",
    "stablehlo.recv",
    "stablehlo.infeed",
    "stablehlo.outfeed",
    "stablehlo.async_start",
    "stablehlo.async_done",
    "stablehlo.after_all",
    "stablehlo.create_token",
    "sdy.manual_computation",
    "foreign",
    "func.call",
    "chlo.asin_acos_kernel",
    "chlo.bessel_i1e",
    "chlo.digamma",
    "chlo.erf",
    "chlo.erf_inv",
    "chlo.erfc",
    "chlo.is_inf",
    "chlo.is_neg_inf",
    "chlo.is_pos_inf",
    "chlo.lgamma",
    "chlo.mulhi",
    "chlo.next_after",
    "chlo.polygamma",
    "chlo.ragged_dot",
    "chlo.scan",
    "chlo.top_k",
    "chlo.zeta",
    "check.expect_serialized_eq",
    "interpreter.run_parallel",
    "interpreter.print",
    "interpreter.probe",
    "tilewright.custom_vjp",
    "tilewright.checkpoint",
    "tilewright.name",
    "tilewright.stop_gradient",
  ],
  refused,
);

const rules: GraphRules<[Splitter], readonly Split[]> = {
  ...neverComplex,
  ...perPart,
  ...allTogether,
  ...checks,
  ...ofKinds(unaryKinds, unary as never),
  ...ofKinds(binaryKinds, pairwise as never),
  ...ofKinds(["stablehlo.reduce", "stablehlo.reduce_window", "stablehlo.scatter"], combined),
  "stablehlo.abs": ({ operands }, split) => {
    const parts = split.parts(operands.operand);
    const size = magnitude(opened(split.builder, parts));
    return [convert(split.builder, size.value, typeOfValue(parts.re).element)];
  },
  "stablehlo.bitcast_convert": bitcast,
  "stablehlo.clamp": clamp,
  "stablehlo.compare": compared,
  "stablehlo.complex": ({ operands }, split) => [
    { re: split.real(operands.lhs), im: split.real(operands.rhs) },
  ],
  "stablehlo.constant": constant,
  "stablehlo.convert": converted,
  "stablehlo.convolution": product,
  "stablehlo.custom_call": called,
  "stablehlo.dot": product,
  "stablehlo.dot_general": product,
  "stablehlo.fft": transformed,
  "stablehlo.get_dimension_size": (op, split) => {
    const { operand } = op.operands;
    return split.builder.add(op.kind, { operand: split.part(operand, "re") }, op.attributes);
  },
  "stablehlo.map": mapped,
  "stablehlo.imag": ({ operands }, split) => [split.parts(operands.operand).im],
  "stablehlo.iota": counted,
  "stablehlo.real": ({ operands }, split) => [split.parts(operands.operand).re],
  "stablehlo.sort": sorted,
  "chlo.conj": ({ operands }, split) => {
    const { re, im } = split.parts(operands.operand);
    return [{ re, im: negate(split.builder, im) }];
  },
};

/** The kinds of ops that may have complex values. */
export const complexKinds: readonly string[] = Object.keys(rules).filter(
  (kind) => !Object.hasOwn(neverComplex, kind),
);

/** The results of an op that has complex values, as pairs. */
export function complexResults(op: AnyGraphOp, split: Splitter): readonly Split[] {
  return applyGraphRule(rules, op, split);
}
