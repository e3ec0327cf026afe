// Calls, tuples, tokens, other dialects, and forms of modules.

#map = affine_map<(d0) -> (d0)>
#names = {inner = [1 : i64, "two", @main, unit, #foreign.attribute<[3], "x">], other = #map}
!row = tensor<4xf32>
module @jit_step attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32, some.names = #names} {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(%x: !row {mhlo.sharding = "{replicated}", tf.aliasing_output = 0 : i32}, %y: tensor<4xf32> loc("y")) -> (!row {jax.result_info = "result[0]"}) {
    %0 = call @helper(%x, %y) : (!row, tensor<4xf32>) -> tensor<4xf32> loc(#loc2)
    %1 = func.call @"odd name \22 \C3\A9"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.composite "my.scale" %1 {composite_attributes = {factor = 2.000000e+00 : f32, mode = "fast"}, decomposition = @scale, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : !row
  }
  func.func private @helper(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %a, %b {mhlo.frontend_attributes = {kept = "1"}} : tensor<4xf32> loc(callsite("inner"("f.py":3:4 to :9) at fused<"pass">["g.py":7:1, #loc1]))
    return %0 : tensor<4xf32>
  }
  func.func private @"odd name \22 \C3\A9"(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.negate %a : tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func private @scale(%a: tensor<4xf32>) -> tensor<4xf32> attributes {inlined = false} {
    %0 = stablehlo.multiply %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
}
#loc1 = loc("model.py":12:5)
#loc2 = loc("layer1/matmul"(#loc1))

// -----

"builtin.module"() <{sym_name = "generic"}> ({
  "func.func"() <{function_type = (tensor<2xf32>) -> tensor<2xf32>, sym_name = "main", sym_visibility = "public", arg_attrs = [{jax.arg = 1 : i64}], res_attrs = [{}]}> ({
  ^bb0(%arg0: tensor<2xf32>):
    %0 = "stablehlo.tanh"(%arg0) {x.y = -1 : i8, "quoted key" = 1.5 : f64, flag} : (tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0) : (tensor<2xf32>) -> ()
  }) : () -> ()
}) {some.attribute} : () -> ()

// -----

func.func @main(%x: tensor<2xf32>, %t: !stablehlo.token) -> (tuple<tensor<2xf32>, tuple<>, !stablehlo.token>, !stablehlo.token) {
  %0 = stablehlo.create_token : !stablehlo.token
  %1 = stablehlo.after_all %0, %t : !stablehlo.token
  %e = stablehlo.tuple : tuple<>
  %2 = stablehlo.tuple %x, %e, %1 : tuple<tensor<2xf32>, tuple<>, !stablehlo.token>
  %3 = stablehlo.get_tuple_element %2[0] : (tuple<tensor<2xf32>, tuple<>, !stablehlo.token>) -> tensor<2xf32>
  %4:2 = stablehlo.optimization_barrier %3, %1 : tensor<2xf32>, !stablehlo.token
  return %2, %4#1 : tuple<tensor<2xf32>, tuple<>, !stablehlo.token>, !stablehlo.token
}

// -----

func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>) {
  %0 = stablehlo.custom_call @Sharding(%x) {backend_config = "", mhlo.sharding = "{devices=[2,1]<=[2]}"} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = stablehlo.custom_call @"my target"(%0) {api_version = 4 : i32, backend_config = {depth = 2 : i64}, called_computations = [@main], has_side_effect = true, operand_layouts = [dense<[1, 0]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<0> : tensor<1xindex>]} : (tensor<2x3xf32>) -> tensor<2xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"a", ?}, {}]> : tensor<2x3xf32>
  return %2, %1 : tensor<2x3xf32>, tensor<2xf32>
}

// -----

sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {}]>] out_shardings=[<@mesh, [{"a"}, {}]>] manual_axes={"a"} (%a: tensor<2x2xf32>) {
    %1 = stablehlo.cosine %a : tensor<2x2xf32>
    sdy.return %1 : tensor<2x2xf32>
  } : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<?xf32> {
  %0 = "other.op"(%x) <{a = [1 : i64, @f::@g, unit, #d.x<y, z>], b = {c = tensor<?xf32>}}> ({
  ^bb0(%a: tensor<f32>):
    "other.inner"(%a) : (tensor<f32>) -> ()
    stablehlo.return
  }) : (tensor<4xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>
  %1 = stablehlo.add %x, %0 : tensor<2xf32>
  return %1 : tensor<2xf32>
}
{-#
  dialect_resources: {
    builtin: {
      weights: "0x040000000000803F00000040"
    }
  }
#-}

// -----

func.func @main(%n: tensor<i32>, %x: tensor<3xf32>) -> (tensor<i32>, tensor<3xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %a = %x) : tensor<i32>, tensor<3xf32> attributes {mhlo.kept = 1 : i64}
    cond {
      %p = stablehlo.compare GT, %i, %zero, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %j = stablehlo.subtract %i, %one : tensor<i32>
      %q = stablehlo.compare EQ, %j, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %b = "stablehlo.if"(%q) ({
        stablehlo.return %a : tensor<3xf32>
      }, {
        %c = stablehlo.add %a, %a : tensor<3xf32>
        stablehlo.return %c : tensor<3xf32>
      }) : (tensor<i1>) -> tensor<3xf32>
      stablehlo.return %j, %b : tensor<i32>, tensor<3xf32>
    }
  return %0#0, %0#1 : tensor<i32>, tensor<3xf32>
}

// -----

func.func @main(%x: tensor<3x4xf32>, %k: tensor<3x4xi32>) -> (tensor<3xf32>, tensor<3xi32>) {
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.reduce(%x init: %z), (%k init: %c) across dimensions = [1] : (tensor<3x4xf32>, tensor<3x4xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
    reducer(%a: tensor<f32>, %b: tensor<f32>) (%i: tensor<i32>, %j: tensor<i32>) {
      %p = stablehlo.compare GE, %a, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %m = stablehlo.select %p, %a, %b : tensor<i1>, tensor<f32>
      %n = stablehlo.select %p, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %m, %n : tensor<f32>, tensor<i32>
    }
  return %0#0, %0#1 : tensor<3xf32>, tensor<3xi32>
}
