// Ops that move elements: what the table of cases has no program of.

func.func @main() -> (tensor<2x2xf32>, tensor<4xi32>, tensor<3xui8>, tensor<2xcomplex<f32>>, tensor<i1>) {
  %0 = stablehlo.constant dense<[[1.0, -2.5], [0x7F800000, 3.0e-2]]> : tensor<2x2xf32>
  %1 = stablehlo.iota dim = 0 : tensor<4xi32>
  %2 = stablehlo.constant {mhlo.kept = "yes"} dense<"0x0102FF"> : tensor<3xui8>
  %3 = stablehlo.constant dense<[(1.0, 2.0), (-0.0, 0xFF800000)]> : tensor<2xcomplex<f32>>
  %4 = stablehlo.constant dense<true> : tensor<i1>
  return %0, %1, %2, %3, %4 : tensor<2x2xf32>, tensor<4xi32>, tensor<3xui8>, tensor<2xcomplex<f32>>, tensor<i1>
}

// -----

func.func @main(%x: tensor<3x4xf32>, %i: tensor<2xi32>) -> tensor<2x4xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 0 : i64, batch_dims = 0 : i64}> : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x4xf32>) -> (tensor<2x4xf32>, tensor<3x2xf32>) {
  %0 = stablehlo.einsum %x, %y, config = "ij,jk->ik" : (tensor<2x3xf32>, tensor<3x4xf32>) -> tensor<2x4xf32>
  %1 = "stablehlo.unary_einsum"(%x) <{einsum_config = "ij->ji"}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<3x2xf32>
}

// -----

func.func @main(%x: tensor<4x5xi32>, %i: tensor<2x1xi32>, %u: tensor<2x5xi32>) -> tensor<4x5xi32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %b : tensor<i32>
  }) : (tensor<4x5xi32>, tensor<2x1xi32>, tensor<2x5xi32>) -> tensor<4x5xi32>
  return %0 : tensor<4x5xi32>
}

// -----

func.func @main(%x: tensor<2x3x4xf32>, %i: tensor<2x1xi64>) -> tensor<2x4xf32> {
  %0 = "stablehlo.gather"(%x, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 1, 4>} : (tensor<2x3x4xf32>, tensor<2x1xi64>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @main(%x: tensor<3x6xui16>, %i: tensor<i32>) -> (tensor<2x2xui16>, tensor<6x3xui16>, tensor<5x8xui16>) {
  %0 = stablehlo.slice %x [0:2, 1:6:3] : (tensor<3x6xui16>) -> tensor<2x2xui16>
  %1 = stablehlo.transpose %x, dims = [1, 0] : (tensor<3x6xui16>) -> tensor<6x3xui16>
  %z = stablehlo.constant dense<7> : tensor<ui16>
  %2 = stablehlo.pad %x, %z, low = [0, -1], high = [0, 3], interior = [1, 0] : (tensor<3x6xui16>, tensor<ui16>) -> tensor<5x8xui16>
  %3 = stablehlo.dynamic_update_slice %x, %0, %i, %i : (tensor<3x6xui16>, tensor<2x2xui16>, tensor<i32>, tensor<i32>) -> tensor<3x6xui16>
  %4 = stablehlo.dynamic_slice %3, %i, %i, sizes = [2, 2] : (tensor<3x6xui16>, tensor<i32>, tensor<i32>) -> tensor<2x2xui16>
  return %4, %1, %2 : tensor<2x2xui16>, tensor<6x3xui16>, tensor<5x8xui16>
}

// -----

func.func @main(%x: tensor<0x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<0xi32>) {
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<0x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.constant dense<> : tensor<0xi32>
  return %0, %1 : tensor<2x3xf32>, tensor<0xi32>
}
