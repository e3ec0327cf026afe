// Softmax of rows: a maximum, an exponential, a sum, a division.
module @softmax {
  func.func public @main(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %max = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %maxes = stablehlo.broadcast_in_dim %max, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
    %shifted = stablehlo.subtract %x, %maxes : tensor<32x64xf32>
    %e = stablehlo.exponential %shifted : tensor<32x64xf32>
    %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<32x64xf32>, tensor<f32>) -> tensor<32xf32>
    %sums = stablehlo.broadcast_in_dim %sum, dims = [0] : (tensor<32xf32>) -> tensor<32x64xf32>
    %p = stablehlo.divide %e, %sums : tensor<32x64xf32>
    return %p : tensor<32x64xf32>
  }
}
