// Checks, random numbers, narrow and complex elements, and ops of ours.

func.func @main() -> tensor<3xf32> {
  %x = stablehlo.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  check.expect_eq_const %x, dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  check.expect_almost_eq_const %x, dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  check.expect_eq %x, %x : tensor<3xf32>
  check.expect_almost_eq %x, %x, tolerance = 0.5 : tensor<3xf32>
  check.expect_close %x, %x, max_ulp_difference = 3, min_ulp_difference = 0 : tensor<3xf32>, tensor<3xf32>
  interpreter.print %x : tensor<3xf32>
  %1 = interpreter.probe %x, probe_id = "probe0" : tensor<3xf32>
  check.expect_serialized_eq %1, probe_id = "probe0", iter = 1 : tensor<3xf32>
  return %1 : tensor<3xf32>
}

// -----

func.func @main(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui32>, tensor<3xf32>) {
  %0:2 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x2xui32>)
  %a = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.constant dense<1.0> : tensor<f32>
  %n = stablehlo.constant dense<3> : tensor<1xi64>
  %1 = stablehlo.rng %a, %b, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<3xf32>
  return %0#0, %0#1, %1 : tensor<2xui64>, tensor<2x2xui32>, tensor<3xf32>
}

// -----

func.func @main(%x: tensor<2xcomplex<f32>>, %y: tensor<2xcomplex<f64>>) -> (tensor<2xcomplex<f32>>, tensor<2xf64>) {
  %0 = chlo.asin_acos_kernel %x : tensor<2xcomplex<f32>> -> tensor<2xcomplex<f32>>
  %1 = stablehlo.multiply %x, %x : tensor<2xcomplex<f32>>
  %2 = stablehlo.abs %y : (tensor<2xcomplex<f64>>) -> tensor<2xf64>
  %3 = stablehlo.power %1, %x : tensor<2xcomplex<f32>>
  return %3, %2 : tensor<2xcomplex<f32>>, tensor<2xf64>
}

// -----

func.func @main(%a: tensor<3xi4>, %b: tensor<3xui2>, %c: tensor<3xf8E4M3FN>, %d: tensor<3xbf16>, %e: tensor<3xi8>, %f: tensor<3xi1>) -> (tensor<3xi4>, tensor<3xui2>, tensor<3xf8E4M3FN>, tensor<3xf32>, tensor<3xi16>, tensor<3xi1>) {
  %0 = stablehlo.add %a, %a : tensor<3xi4>
  %1 = stablehlo.multiply %b, %b : tensor<3xui2>
  %2 = stablehlo.convert %d : (tensor<3xbf16>) -> tensor<3xf8E4M3FN>
  %3 = stablehlo.convert %c : (tensor<3xf8E4M3FN>) -> tensor<3xf32>
  %4 = stablehlo.convert %e : (tensor<3xi8>) -> tensor<3xi16>
  %5 = stablehlo.not %f : tensor<3xi1>
  return %0, %1, %2, %3, %4, %5 : tensor<3xi4>, tensor<3xui2>, tensor<3xf8E4M3FN>, tensor<3xf32>, tensor<3xi16>, tensor<3xi1>
}

// -----

func.func @main() -> (tensor<2xf8E8M0FNU>, tensor<2xf4E2M1FN>, tensor<2xf6E3M2FN>, tensor<2xf8E5M2FNUZ>, tensor<3xindex>) {
  %0 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf8E8M0FNU>
  %1 = stablehlo.constant dense<[0.5, -6.0]> : tensor<2xf4E2M1FN>
  %2 = stablehlo.constant dense<[0.25, -28.0]> : tensor<2xf6E3M2FN>
  %3 = stablehlo.constant dense<0x80> : tensor<2xf8E5M2FNUZ>
  %4 = stablehlo.constant dense<[-1, 0, 9223372036854775807]> : tensor<3xindex>
  return %0, %1, %2, %3, %4 : tensor<2xf8E8M0FNU>, tensor<2xf4E2M1FN>, tensor<2xf6E3M2FN>, tensor<2xf8E5M2FNUZ>, tensor<3xindex>
}

// -----

func.func @main(%x: tensor<2x3xbf16>, %y: tensor<3x2xbf16>, %g: tensor<2xi32>, %w: tensor<2x3x2xbf16>) -> (tensor<2x2xf32>, tensor<2x2xbf16>) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT], algorithm = <lhs_precision_type = bf16, rhs_precision_type = bf16, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x3xbf16>, tensor<3x2xbf16>) -> tensor<2x2xf32>
  %1 = "chlo.ragged_dot"(%x, %w, %g) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<2x3xbf16>, tensor<2x3x2xbf16>, tensor<2xi32>) -> tensor<2x2xbf16>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xbf16>
}

// -----

func.func @main(%x: tensor<1x4x4x1xf32>, %w: tensor<2x2x1x1xf32>) -> (tensor<1x5x2x1xf32>, tensor<1x2x2x1xf32>) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision HIGHEST>]} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x5x2x1xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %z) <{base_dilations = array<i64: 1, 1, 1, 1>, padding = dense<[[0, 0], [1, 0], [0, 1], [0, 0]]> : tensor<4x2xi64>, window_dilations = array<i64: 1, 2, 2, 1>, window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<1x4x4x1xf32>, tensor<f32>) -> tensor<1x2x2x1xf32>
  return %0, %1 : tensor<1x5x2x1xf32>, tensor<1x2x2x1xf32>
}

// -----

func.func @main(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %0 = "tilewright.name"(%x) <{name = "kept"}> : (tensor<4xf64>) -> tensor<4xf64>
  %1 = "tilewright.custom_vjp"(%0) ({
  ^bb0(%a: tensor<4xf64>):
    %s = stablehlo.exponential %a : tensor<4xf64>
    stablehlo.return %s : tensor<4xf64>
  }, {
  ^bb0(%a: tensor<4xf64>):
    %s = stablehlo.exponential %a : tensor<4xf64>
    stablehlo.return %s, %s : tensor<4xf64>, tensor<4xf64>
  }, {
  ^bb0(%r: tensor<4xf64>, %c: tensor<4xf64>):
    %s = stablehlo.multiply %r, %c : tensor<4xf64>
    stablehlo.return %s : tensor<4xf64>
  }) : (tensor<4xf64>) -> tensor<4xf64>
  %2 = "tilewright.stop_gradient"(%1) : (tensor<4xf64>) -> tensor<4xf64>
  return %1, %2 : tensor<4xf64>, tensor<4xf64>
}
