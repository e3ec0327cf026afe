// Two layers with a bias and relu, as `jax.jit(mlp).lower(…).as_text()` prints them.
module @mlp {
  func.func public @main(%x: tensor<16x32xf32>, %w1: tensor<32x64xf32>, %b1: tensor<64xf32>, %w2: tensor<64x10xf32>) -> tensor<16x10xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %h = stablehlo.dot_general %x, %w1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
    %b = stablehlo.broadcast_in_dim %b1, dims = [1] : (tensor<64xf32>) -> tensor<16x64xf32>
    %s = stablehlo.add %h, %b : tensor<16x64xf32>
    %z = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
    %r = stablehlo.maximum %s, %z : tensor<16x64xf32>
    %o = stablehlo.dot_general %r, %w2, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x10xf32>) -> tensor<16x10xf32>
    return %o : tensor<16x10xf32>
  }
}
