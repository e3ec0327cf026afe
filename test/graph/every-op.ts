/**
 * A program for every op: the table is keyed by kind, so that a new op does not compile until it has one, or a reason for having none.
 * Batches of each are held against loops over examples; derivatives of those that are smooth against central differences.
 */
import type { GraphOpKind } from "../../src/graph/ops/table.ts";

export interface OpCase {
  readonly text: string;
  /** Whether its derivatives are checked; where not, why. */
  readonly derivative: true | string;
  /** Where arguments are drawn from for its derivatives; 0.2 to 0.9 by default. */
  readonly range?: readonly [number, number];
}

/** What has no program, and why. */
export interface NoCase {
  readonly none: string;
}

function program(parameters: string, result: string, ...lines: readonly string[]): string {
  return [
    `func.func @main(${parameters}) -> ${result} {`,
    ...lines,
    `return %r : ${result}`,
    "}",
  ].join("\n");
}

const four = "tensor<4xf64>";
const whole = "tensor<4xi32>";
const truth = "tensor<4xi1>";

const smooth = (text: string, range?: readonly [number, number]): OpCase => ({
  text,
  derivative: true,
  ...(range === undefined ? {} : { range }),
});
const flat = (text: string, why: string): OpCase => ({ text, derivative: why });
const none = (why: string): NoCase => ({ none: why });

const noFloats = "its results are no floats";
const between = none("it works between processes");
const dynamic = none("its shape is known only when it runs");
const outside = none("it is no function of arrays");
const inlined = none("it is inlined before");
const tested = none("it checks, and has no results");
const quantised = none("quantised types do not run");

const unaryText = (kind: string, type: string = four): string =>
  program(
    `%x: ${type}`,
    type,
    `%r = ${kind} %x : ${kind.startsWith("chlo") ? `${type} -> ` : ""}${type}`,
  );
const binaryText = (kind: string, type: string = four): string =>
  program(
    `%x: ${type}, %y: ${type}`,
    type,
    `%r = ${kind} %x, %y : ${kind.startsWith("chlo") ? `${type}, ${type} -> ` : ""}${type}`,
  );
const unary = (kind: string, range?: readonly [number, number]): OpCase =>
  smooth(unaryText(kind), range);
const binary = (kind: string): OpCase => smooth(binaryText(kind));
const wholeUnary = (kind: string): OpCase => flat(unaryText(kind, whole), noFloats);
const wholeBinary = (kind: string): OpCase => flat(binaryText(kind, whole), noFloats);
const truthOf = (kind: string): OpCase =>
  flat(
    program(
      `%x: ${four}`,
      truth,
      `%r = ${kind} %x : ${kind.startsWith("chlo") ? `${four} -> ${truth}` : `(${four}) -> ${truth}`}`,
    ),
    noFloats,
  );
const complexPart = (kind: string): OpCase =>
  smooth(
    program(
      `%x: ${four}, %y: ${four}`,
      four,
      `%c = stablehlo.complex %x, %y : tensor<4xcomplex<f64>>`,
      `%d = stablehlo.multiply %c, %c : tensor<4xcomplex<f64>>`,
      `%r = ${kind} %d : (tensor<4xcomplex<f64>>) -> ${four}`,
    ),
  );

const region = (kind: string): string =>
  `({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %s = stablehlo.${kind} %a, %b : tensor<f64> stablehlo.return %s : tensor<f64> })`;
const zero = "%z = stablehlo.constant dense<0.0> : tensor<f64>";

const gatherNumbers =
  "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>";
const scatterNumbers =
  "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>";
const norm = "epsilon = 1.0e-2 : f32, feature_index = 1 : i64";
const features = "tensor<3xf64>";
const batch = "tensor<4x3xf64>";

export const opCases: { readonly [K in GraphOpKind]: OpCase | NoCase } = {
  "stablehlo.abs": unary("stablehlo.abs"),
  "stablehlo.cbrt": unary("stablehlo.cbrt"),
  "stablehlo.ceil": unary("stablehlo.ceil"),
  "stablehlo.count_leading_zeros": wholeUnary("stablehlo.count_leading_zeros"),
  "stablehlo.cosine": unary("stablehlo.cosine"),
  "stablehlo.exponential": unary("stablehlo.exponential"),
  "stablehlo.exponential_minus_one": unary("stablehlo.exponential_minus_one"),
  "stablehlo.floor": unary("stablehlo.floor"),
  "stablehlo.imag": complexPart("stablehlo.imag"),
  "stablehlo.is_finite": truthOf("stablehlo.is_finite"),
  "stablehlo.log": unary("stablehlo.log"),
  "stablehlo.log_plus_one": unary("stablehlo.log_plus_one"),
  "stablehlo.logistic": unary("stablehlo.logistic"),
  "stablehlo.negate": unary("stablehlo.negate"),
  "stablehlo.not": wholeUnary("stablehlo.not"),
  "stablehlo.popcnt": wholeUnary("stablehlo.popcnt"),
  "stablehlo.real": complexPart("stablehlo.real"),
  "stablehlo.round_nearest_afz": unary("stablehlo.round_nearest_afz", [0.1, 0.4]),
  "stablehlo.round_nearest_even": unary("stablehlo.round_nearest_even", [0.1, 0.4]),
  "stablehlo.rsqrt": unary("stablehlo.rsqrt"),
  "stablehlo.sign": unary("stablehlo.sign"),
  "stablehlo.sine": unary("stablehlo.sine"),
  "stablehlo.sqrt": unary("stablehlo.sqrt"),
  "stablehlo.tan": unary("stablehlo.tan"),
  "stablehlo.tanh": unary("stablehlo.tanh"),
  "stablehlo.convert": unary("stablehlo.convert"),
  "stablehlo.bitcast_convert": flat(
    program(
      `%x: ${four}`,
      four,
      `%0 = stablehlo.bitcast_convert %x : (${four}) -> tensor<4xi64>`,
      `%r = stablehlo.bitcast_convert %0 : (tensor<4xi64>) -> ${four}`,
    ),
    "bits have no slope",
  ),
  "stablehlo.uniform_quantize": quantised,
  "stablehlo.uniform_dequantize": quantised,
  "stablehlo.add": binary("stablehlo.add"),
  "stablehlo.and": wholeBinary("stablehlo.and"),
  "stablehlo.atan2": binary("stablehlo.atan2"),
  "stablehlo.complex": complexPart("stablehlo.real"),
  "stablehlo.divide": binary("stablehlo.divide"),
  "stablehlo.maximum": binary("stablehlo.maximum"),
  "stablehlo.minimum": binary("stablehlo.minimum"),
  "stablehlo.multiply": binary("stablehlo.multiply"),
  "stablehlo.or": wholeBinary("stablehlo.or"),
  "stablehlo.power": binary("stablehlo.power"),
  "stablehlo.remainder": binary("stablehlo.remainder"),
  "stablehlo.shift_left": wholeBinary("stablehlo.shift_left"),
  "stablehlo.shift_right_arithmetic": wholeBinary("stablehlo.shift_right_arithmetic"),
  "stablehlo.shift_right_logical": wholeBinary("stablehlo.shift_right_logical"),
  "stablehlo.subtract": binary("stablehlo.subtract"),
  "stablehlo.xor": wholeBinary("stablehlo.xor"),
  "stablehlo.compare": flat(
    program(
      `%x: ${four}, %y: ${four}`,
      truth,
      `%r = stablehlo.compare LT, %x, %y : (${four}, ${four}) -> ${truth}`,
    ),
    noFloats,
  ),
  "stablehlo.select": smooth(
    program(
      `%x: ${four}, %y: ${four}`,
      four,
      `%h = stablehlo.constant dense<0.5> : ${four}`,
      `%p = stablehlo.compare LT, %x, %h : (${four}, ${four}) -> ${truth}`,
      `%r = stablehlo.select %p, %x, %y : ${truth}, ${four}`,
    ),
  ),
  "stablehlo.clamp": smooth(
    program(
      `%l: tensor<f64>, %x: ${four}`,
      four,
      `%u = stablehlo.constant dense<0.95> : tensor<f64>`,
      `%r = stablehlo.clamp %l, %x, %u : (tensor<f64>, ${four}, tensor<f64>) -> ${four}`,
    ),
  ),
  "stablehlo.reduce_precision": flat(
    program(`%x: ${four}`, four, `%r = stablehlo.reduce_precision %x, format = e8m10 : ${four}`),
    "rounding has no slope",
  ),
  "stablehlo.constant": none("it has no operands"),
  "stablehlo.iota": none("it has no operands"),
  "stablehlo.dynamic_iota": dynamic,
  "stablehlo.broadcast_in_dim": smooth(
    program(
      `%x: ${four}`,
      "tensor<2x4x3xf64>",
      `%r = stablehlo.broadcast_in_dim %x, dims = [1] : (${four}) -> tensor<2x4x3xf64>`,
    ),
  ),
  "stablehlo.dynamic_broadcast_in_dim": dynamic,
  "stablehlo.broadcast": smooth(
    program(
      `%x: ${four}`,
      "tensor<2x4xf64>",
      `%r = stablehlo.broadcast %x, sizes = [2] : (${four}) -> tensor<2x4xf64>`,
    ),
  ),
  "stablehlo.reshape": smooth(
    program(
      `%x: tensor<2x3xf64>`,
      "tensor<3x2xf64>",
      `%r = stablehlo.reshape %x : (tensor<2x3xf64>) -> tensor<3x2xf64>`,
    ),
  ),
  "stablehlo.dynamic_reshape": dynamic,
  "stablehlo.transpose": smooth(
    program(
      `%x: tensor<2x3xf64>`,
      "tensor<3x2xf64>",
      `%r = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>`,
    ),
  ),
  "stablehlo.reverse": smooth(
    program(`%x: ${four}`, four, `%r = stablehlo.reverse %x, dims = [0] : ${four}`),
  ),
  "stablehlo.concatenate": smooth(
    program(
      `%x: tensor<2xf64>, %y: tensor<3xf64>`,
      "tensor<5xf64>",
      `%r = stablehlo.concatenate %x, %y, dim = 0 : (tensor<2xf64>, tensor<3xf64>) -> tensor<5xf64>`,
    ),
  ),
  "stablehlo.slice": smooth(
    program(
      `%x: ${four}`,
      "tensor<2xf64>",
      `%r = stablehlo.slice %x [0:4:2] : (${four}) -> tensor<2xf64>`,
    ),
  ),
  "stablehlo.real_dynamic_slice": dynamic,
  "stablehlo.pad": smooth(
    program(
      `%x: tensor<3xf64>, %v: tensor<f64>`,
      "tensor<7xf64>",
      `%r = stablehlo.pad %x, %v, low = [1], high = [1], interior = [1] : (tensor<3xf64>, tensor<f64>) -> tensor<7xf64>`,
    ),
  ),
  "stablehlo.dynamic_pad": dynamic,
  "stablehlo.dynamic_slice": smooth(
    program(
      `%x: ${four}, %i: tensor<i32>`,
      "tensor<2xf64>",
      `%r = stablehlo.dynamic_slice %x, %i, sizes = [2] : (${four}, tensor<i32>) -> tensor<2xf64>`,
    ),
  ),
  "stablehlo.dynamic_update_slice": smooth(
    program(
      `%x: ${four}, %u: tensor<2xf64>, %i: tensor<i32>`,
      four,
      `%r = stablehlo.dynamic_update_slice %x, %u, %i : (${four}, tensor<2xf64>, tensor<i32>) -> ${four}`,
    ),
  ),
  "stablehlo.gather": smooth(
    program(
      `%x: tensor<4x5xf64>, %i: tensor<2x1xi32>`,
      "tensor<2x5xf64>",
      `%r = "stablehlo.gather"(%x, %i) <{${gatherNumbers}, slice_sizes = array<i64: 1, 5>}> : (tensor<4x5xf64>, tensor<2x1xi32>) -> tensor<2x5xf64>`,
    ),
  ),
  "stablehlo.dynamic_gather": dynamic,
  "stablehlo.scatter": smooth(
    program(
      `%x: tensor<4x5xf64>, %i: tensor<2x1xi32>, %u: tensor<2x5xf64>`,
      "tensor<4x5xf64>",
      `%r = "stablehlo.scatter"(%x, %i, %u) <{${scatterNumbers}}> ${region("add")} : (tensor<4x5xf64>, tensor<2x1xi32>, tensor<2x5xf64>) -> tensor<4x5xf64>`,
    ),
  ),
  "stablehlo.get_dimension_size": dynamic,
  "stablehlo.set_dimension_size": dynamic,
  "stablehlo.torch_index_select": none("gather replaces it"),
  "stablehlo.dot_general": smooth(
    program(
      `%x: tensor<2x3x4xf64>, %y: tensor<4x2x5xf64>`,
      "tensor<2x3x5xf64>",
      `%r = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [2] x [0] : (tensor<2x3x4xf64>, tensor<4x2x5xf64>) -> tensor<2x3x5xf64>`,
    ),
  ),
  "stablehlo.dot": smooth(
    program(
      `%x: tensor<2x3xf64>, %y: tensor<3xf64>`,
      "tensor<2xf64>",
      `%r = stablehlo.dot %x, %y : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2xf64>`,
    ),
  ),
  "stablehlo.einsum": none("dot_general replaces it"),
  "stablehlo.unary_einsum": none("dot_general replaces it"),
  "stablehlo.convolution": smooth(
    program(
      `%x: tensor<2x4x5xf64>, %w: tensor<6x2x3xf64>`,
      "tensor<2x6x3xf64>",
      `%r = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<2x4x5xf64>, tensor<6x2x3xf64>) -> tensor<2x6x3xf64>`,
    ),
  ),
  "stablehlo.dynamic_conv": dynamic,
  "stablehlo.fft": smooth(
    program(
      `%x: ${four}`,
      "tensor<3xf64>",
      `%0 = stablehlo.fft %x, type = RFFT, length = [4] : (${four}) -> tensor<3xcomplex<f64>>`,
      `%r = stablehlo.real %0 : (tensor<3xcomplex<f64>>) -> tensor<3xf64>`,
    ),
  ),
  "stablehlo.cholesky": smooth(
    program(
      `%x: tensor<2x2xf64>`,
      "tensor<2x2xf64>",
      `%t = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x2xf64>) -> tensor<2x2xf64>`,
      `%p = stablehlo.dot_general %x, %t, contracting_dims = [1] x [0] : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>`,
      `%e = stablehlo.constant dense<[[2.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf64>`,
      `%a = stablehlo.add %p, %e : tensor<2x2xf64>`,
      `%r = stablehlo.cholesky %a, lower = true : tensor<2x2xf64>`,
    ),
  ),
  "stablehlo.triangular_solve": smooth(
    program(
      `%a: tensor<2x2xf64>, %b: tensor<2x3xf64>`,
      "tensor<2x3xf64>",
      `%r = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x2xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>`,
    ),
  ),
  "stablehlo.batch_norm_inference": smooth(
    program(
      `%x: ${batch}, %s: ${features}, %o: ${features}`,
      batch,
      `%r = "stablehlo.batch_norm_inference"(%x, %s, %o, %s, %s) <{${norm}}> : (${batch}, ${features}, ${features}, ${features}, ${features}) -> ${batch}`,
    ),
  ),
  "stablehlo.batch_norm_training": smooth(
    program(
      `%x: ${batch}, %s: ${features}, %o: ${features}`,
      batch,
      `%0:3 = "stablehlo.batch_norm_training"(%x, %s, %o) <{${norm}}> : (${batch}, ${features}, ${features}) -> (${batch}, ${features}, ${features})`,
      `%r = stablehlo.negate %0#0 : ${batch}`,
    ),
  ),
  "stablehlo.batch_norm_grad": smooth(
    program(
      `%x: ${batch}, %s: ${features}, %m: ${features}, %v: ${features}, %g: ${batch}`,
      batch,
      `%0:3 = "stablehlo.batch_norm_grad"(%x, %s, %m, %v, %g) <{${norm}}> : (${batch}, ${features}, ${features}, ${features}, ${batch}) -> (${batch}, ${features}, ${features})`,
      `%r = stablehlo.negate %0#0 : ${batch}`,
    ),
  ),
  "stablehlo.rng": none("its numbers come from nowhere"),
  "stablehlo.rng_bit_generator": none("its state is one of the program's"),
  "stablehlo.reduce": smooth(
    program(
      `%x: tensor<3x4xf64>`,
      "tensor<3xf64>",
      zero,
      `%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf64>, tensor<f64>) -> tensor<3xf64>`,
    ),
  ),
  "stablehlo.reduce_window": smooth(
    program(
      `%x: tensor<6xf64>`,
      "tensor<3xf64>",
      zero,
      `%r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ${region("add")} : (tensor<6xf64>, tensor<f64>) -> tensor<3xf64>`,
    ),
  ),
  "stablehlo.select_and_scatter": smooth(
    program(
      `%x: tensor<6xf64>, %s: tensor<3xf64>`,
      "tensor<6xf64>",
      zero,
      `%r = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %p = stablehlo.compare GE, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1> stablehlo.return %p : tensor<i1> }, ${region("add").slice(1, -1)}) : (tensor<6xf64>, tensor<3xf64>, tensor<f64>) -> tensor<6xf64>`,
    ),
  ),
  "stablehlo.sort": smooth(
    program(
      `%x: tensor<2x4xf64>`,
      "tensor<2x4xf64>",
      `%r = "stablehlo.sort"(%x) <{dimension = 1 : i64}> ({ ^bb0(%a: tensor<f64>, %b: tensor<f64>): %s = stablehlo.compare LT, %a, %b : (tensor<f64>, tensor<f64>) -> tensor<i1> stablehlo.return %s : tensor<i1> }) : (tensor<2x4xf64>) -> tensor<2x4xf64>`,
    ),
  ),
  "stablehlo.map": smooth(
    program(
      `%x: ${four}, %y: ${four}`,
      four,
      `%r = "stablehlo.map"(%x, %y) <{dimensions = array<i64: 0>}> ${region("multiply")} : (${four}, ${four}) -> ${four}`,
    ),
  ),
  "stablehlo.while": smooth(
    program(
      `%x: ${four}`,
      four,
      `%c = stablehlo.constant dense<0> : tensor<i32>`,
      `%n = stablehlo.constant dense<3> : tensor<i32>`,
      `%k = stablehlo.constant dense<1> : tensor<i32>`,
      `%0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, ${four}`,
      `cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %p : tensor<i1> } do {`,
      `%j = stablehlo.add %i, %k : tensor<i32>`,
      `%b = stablehlo.sine %a : ${four}`,
      `stablehlo.return %j, %b : tensor<i32>, ${four} }`,
      `%r = stablehlo.negate %0#1 : ${four}`,
    ),
  ),
  "stablehlo.case": smooth(
    program(
      `%x: ${four}, %i: tensor<i32>`,
      four,
      `%r = "stablehlo.case"(%i) ({ %0 = stablehlo.sine %x : ${four} stablehlo.return %0 : ${four} }, { stablehlo.return %x : ${four} }) : (tensor<i32>) -> ${four}`,
    ),
  ),
  "stablehlo.if": smooth(
    program(
      `%x: ${four}, %i: tensor<i32>`,
      four,
      `%c = stablehlo.constant dense<1> : tensor<i32>`,
      `%p = stablehlo.compare LT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>`,
      `%r = "stablehlo.if"(%p) ({ %0 = stablehlo.sine %x : ${four} stablehlo.return %0 : ${four} }, { stablehlo.return %x : ${four} }) : (tensor<i1>) -> ${four}`,
    ),
  ),
  "stablehlo.optimization_barrier": smooth(
    program(`%x: ${four}`, four, `%r = stablehlo.optimization_barrier %x : ${four}`),
  ),
  "func.call": inlined,
  "stablehlo.composite": inlined,
  "stablehlo.custom_call": outside,
  "stablehlo.tuple": outside,
  "stablehlo.get_tuple_element": outside,
  "sdy.sharding_constraint": none("it says where values lie"),
  "sdy.manual_computation": between,
  foreign: outside,
  "stablehlo.replica_id": between,
  "stablehlo.partition_id": between,
  "stablehlo.all_gather": between,
  "stablehlo.all_reduce": between,
  "stablehlo.all_to_all": between,
  "stablehlo.reduce_scatter": between,
  "stablehlo.collective_broadcast": between,
  "stablehlo.collective_reduce": between,
  "stablehlo.collective_permute": between,
  "stablehlo.cross-replica-sum": between,
  "stablehlo.send": between,
  "stablehlo.recv": between,
  "stablehlo.infeed": between,
  "stablehlo.outfeed": between,
  "stablehlo.async_start": between,
  "stablehlo.async_done": between,
  "stablehlo.after_all": between,
  "stablehlo.create_token": between,
  "chlo.acos": unary("chlo.acos"),
  "chlo.acosh": smooth(
    program(
      `%x: ${four}`,
      four,
      `%c = stablehlo.constant dense<1.5> : ${four}`,
      `%0 = stablehlo.add %x, %c : ${four}`,
      `%r = chlo.acosh %0 : ${four} -> ${four}`,
    ),
  ),
  "chlo.asin": unary("chlo.asin"),
  "chlo.asin_acos_kernel": none("it is a part of the expansion of asin and acos"),
  "chlo.asinh": unary("chlo.asinh"),
  "chlo.atan": unary("chlo.atan"),
  "chlo.atanh": unary("chlo.atanh"),
  "chlo.bessel_i1e": flat(unaryText("chlo.bessel_i1e"), "it has no rule"),
  "chlo.conj": unary("chlo.conj"),
  "chlo.cosh": unary("chlo.cosh"),
  "chlo.digamma": unary("chlo.digamma"),
  "chlo.erf": unary("chlo.erf"),
  "chlo.erf_inv": unary("chlo.erf_inv"),
  "chlo.erfc": unary("chlo.erfc"),
  "chlo.is_inf": truthOf("chlo.is_inf"),
  "chlo.is_neg_inf": truthOf("chlo.is_neg_inf"),
  "chlo.is_pos_inf": truthOf("chlo.is_pos_inf"),
  "chlo.lgamma": unary("chlo.lgamma"),
  "chlo.sinh": unary("chlo.sinh"),
  "chlo.square": unary("chlo.square"),
  "chlo.tan": unary("chlo.tan"),
  "chlo.next_after": flat(binaryText("chlo.next_after"), "steps have no slope"),
  "chlo.polygamma": smooth(
    program(
      `%x: ${four}`,
      four,
      `%n = stablehlo.constant dense<1.0> : ${four}`,
      `%r = chlo.polygamma %n, %x : ${four}, ${four} -> ${four}`,
    ),
  ),
  "chlo.zeta": smooth(
    program(
      `%x: ${four}`,
      four,
      `%s = stablehlo.constant dense<3.0> : ${four}`,
      `%r = chlo.zeta %s, %x : ${four}, ${four} -> ${four}`,
    ),
  ),
  "chlo.mulhi": wholeBinary("chlo.mulhi"),
  "chlo.top_k": smooth(
    program(
      `%x: tensor<2x4xf64>`,
      "tensor<2x2xf64>",
      `%0:2 = chlo.top_k(%x, k = 2) : tensor<2x4xf64> -> (tensor<2x2xf64>, tensor<2x2xi32>)`,
      `%r = stablehlo.negate %0#0 : tensor<2x2xf64>`,
    ),
  ),
  "chlo.ragged_dot": none("JAX prints it as a product with masks, which has both"),
  "chlo.scan": smooth(
    program(
      `%x: ${four}, %z: tensor<f64>`,
      four,
      `%0:2 = chlo.scan(%x) inits(%z) dimension=0 {`,
      `^bb0(%a: tensor<f64>, %b: tensor<f64>):`,
      `%s = stablehlo.multiply %a, %b : tensor<f64>`,
      `%t = stablehlo.sine %s : tensor<f64>`,
      `stablehlo.return %t, %t : tensor<f64>, tensor<f64>`,
      `} : (${four}, tensor<f64>) -> (${four}, tensor<f64>)`,
      `%r = stablehlo.negate %0#0 : ${four}`,
    ),
  ),
  "check.expect_eq": tested,
  "check.expect_eq_const": tested,
  "check.expect_almost_eq": tested,
  "check.expect_almost_eq_const": tested,
  "check.expect_close": tested,
  "check.expect_serialized_eq": tested,
  "interpreter.run_parallel": between,
  "interpreter.print": outside,
  "interpreter.probe": outside,
  "tilewright.custom_vjp": none("its derivative is the user's"),
  "tilewright.checkpoint": smooth(
    program(
      `%x: ${four}`,
      four,
      `%r = "tilewright.checkpoint"(%x) <{policy = "nothing"}> ({ ^bb0(%a: ${four}): %s = stablehlo.sine %a : ${four} %p = stablehlo.multiply %s, %a : ${four} stablehlo.return %p : ${four} }) : (${four}) -> ${four}`,
    ),
  ),
  "tilewright.name": none("it is its operand, with a name"),
  "tilewright.stop_gradient": flat(
    program(`%x: ${four}`, four, `%r = "tilewright.stop_gradient"(%x) : (${four}) -> ${four}`),
    "it has none on purpose",
  ),
};
