// Shapes that are known when a program runs, and quantised elements: read and printed, refused where they would run.

func.func @main(%x: tensor<?x4xf32>, %n: tensor<2xi32>, %s: tensor<i32>, %z: tensor<f32>) -> tensor<?x?xf32> {
  %0 = stablehlo.dynamic_reshape %x, %n : (tensor<?x4xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  %1 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi32>) -> tensor<?x?xi32>
  %2 = stablehlo.dynamic_broadcast_in_dim %z, %n, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x?xf32>
  %3 = stablehlo.add %0, %2 : tensor<?x?xf32>
  %4 = stablehlo.dynamic_pad %3, %z, %n, %n, %n : (tensor<?x?xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %5 = stablehlo.real_dynamic_slice %4, %n, %n, %n : (tensor<?x?xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<?x?xf32>
  %6 = stablehlo.get_dimension_size %5, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
  %7 = stablehlo.set_dimension_size %5, %6, dim = 0 : (tensor<?x?xf32>, tensor<i32>) -> tensor<?x?xf32>
  return %7 : tensor<?x?xf32>
}

// -----

func.func @main(%x: tensor<4x3xf32>) -> tensor<2x6xf32> {
  %n = stablehlo.constant dense<[2, 6]> : tensor<2xi32>
  %0 = stablehlo.dynamic_reshape %x, %n : (tensor<4x3xf32>, tensor<2xi32>) -> tensor<2x6xf32>
  return %0 : tensor<2x6xf32>
}

// -----

func.func @main(%x: tensor<5xf32>, %i: tensor<2x1xi32>, %w: tensor<1x8x3xf32>, %k: tensor<3x3x4xf32>) -> tensor<2xf32> {
  %s = stablehlo.constant dense<1> : tensor<1xi32>
  %p = stablehlo.constant dense<[[1, 1]]> : tensor<1x2xi32>
  %0 = "stablehlo.dynamic_gather"(%x, %i, %s) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<5xf32>, tensor<2x1xi32>, tensor<1xi32>) -> tensor<2xf32>
  %1 = stablehlo.dynamic_conv(%w, %k, %p) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x3xf32>, tensor<3x3x4xf32>, tensor<1x2xi32>) -> tensor<?x?x4xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @main(%x: tensor<4xf32>, %b: tensor<?xf32, #stablehlo.bounds<8>>) -> tensor<4xf32> {
  %0 = stablehlo.uniform_quantize %x : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00:15>>
  %1 = stablehlo.add %0, %0 : tensor<4x!quant.uniform<i8:f32, 2.000000e+00:15>>
  %2 = stablehlo.uniform_dequantize %1 : (tensor<4x!quant.uniform<i8:f32, 2.000000e+00:15>>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @main() -> tensor<2x!quant.uniform<i8:f32, 2.000000e+00>> {
  %0 = stablehlo.constant() <{value = dense<[1, -2]> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32, 2.000000e+00>>
  return %0 : tensor<2x!quant.uniform<i8:f32, 2.000000e+00>>
}

// -----

func.func @main(%x: tensor<?x4xf32>, %z: tensor<f32>) -> tensor<?xf32> {
  %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
