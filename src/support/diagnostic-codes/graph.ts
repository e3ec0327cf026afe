/** Codes of programs' meaning: TW91xx types and structure, TW92xx derivatives and batching. */
import { registerCodes } from "./entry.ts";

export const graphCodes = registerCodes({
  TW9101: {
    title: "operands of an op of a program have different types",
    cause: "The op computes element by element, so its operands need one shape and element type.",
    example: "%0 = stablehlo.add %a, %b   // tensor<4xf32> and tensor<8xf32>",
    remedy: "broadcast, reshape or convert one of them to the other's type",
  },
  TW9102: {
    title: "element type that an op of a program does not take",
    cause: "The op is not defined for elements of this type.",
    example: "%0 = stablehlo.popcnt %x : tensor<4xf32>",
    remedy: "convert the operand to an element type that the op takes",
  },
  TW9103: {
    title: "axis out of range or named twice in an op of a program",
    cause: "An attribute names an axis that the operand does not have, or the same axis twice.",
    example: "%0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<2x2xf32>",
    remedy: "name each axis once, from 0 to the rank less one",
  },
  TW9104: {
    title: "extents of an op of a program do not fit",
    cause: "Two extents that have to agree differ, or a slice or window does not fit its operand.",
    example: "%0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]   // 4x8 and 9x4",
    remedy: "make the extents agree; the report names both shapes",
  },
  TW9105: {
    title: "region of an op of a program has other parameters or results",
    cause: "What a region takes or returns is not what its op gives it or expects of it.",
    example: "stablehlo.while whose condition returns tensor<f32>",
    remedy: "give the region the parameters and results that the report lists",
  },
  TW9106: {
    title: "result type of an op of a program is not the inferred one",
    cause: "The written result type differs from the one that operands and attributes give.",
    example: "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>",
    remedy: "write the inferred type, or correct the operands",
  },
  TW9107: {
    title: "call of a function that a program does not have",
    cause: "No function of the module has this name, or it takes other types.",
    example: "%0 = call @missing(%x) : (tensor<f32>) -> tensor<f32>",
    remedy: "call a function of the module with the types that it declares",
  },
  TW9108: {
    title: "functions of a program that call each other in a circle",
    cause: "A function calls itself, directly or through others; programs have no recursion.",
    example: "func.func @f() { call @f() : () -> ()  return }",
    remedy: "write the repetition as stablehlo.while",
  },
  TW9109: {
    title: "calls of a program that go too deep or become too many ops",
    cause:
      "Calls are written out before a program is compiled. Functions that call each other twice over many levels become more ops than anybody can hold.",
    example: "func.func @f0() { call @f1()  call @f1() }   // and so on, to @f30",
    remedy: "call the functions from a stablehlo.while, or fewer of them",
  },
  TW9201: {
    title: "op of a program without a derivative",
    cause:
      "The result depends on a value that is differentiated, through an op that has no rule for it.",
    example: "grad of a program that scatters by multiplication",
    remedy:
      "write the part with ops that have derivatives, or keep it out of what is differentiated",
  },
  TW9202: {
    title: "loop of unknown length in reverse mode",
    cause:
      "Going backwards through a loop needs the number of its trips, which its condition does not show.",
    example: "grad of a whileLoop that ends when a value has converged",
    remedy: "count the trips with a constant limit, as scan does, or use forward mode (jvp)",
  },
  TW9204: {
    title: "function with its own derivative that uses a differentiated value",
    cause:
      "The derivative of such a function is of its arguments alone; a value from around it would silently count as constant.",
    example: "grad((w) => customVjp(() => w, …)())(w)",
    remedy: "hand the value to the function as an argument, or stopGradient it",
  },
  TW9203: {
    title: "op of a program that cannot be batched",
    cause:
      "The op has no rule for operands with a batch in front, such as calls of something outside.",
    example: "vmap of a program with a custom_call",
    remedy: "keep the op out of what is batched, or write it with ops that can be",
  },
});
