/** Codes of evaluating programs: TW95xx. */
import { registerCodes } from "./entry.ts";

export const evaluateCodes = registerCodes({
  TW9501: {
    title: "op that cannot be evaluated",
    cause:
      "The op has no meaning that the evaluator knows: a shape that is known only when it runs, quantised elements, an element type for which it is not defined, a call of something outside the program, or an op of an unknown dialect.",
    example: "%0 = stablehlo.custom_call @my_library_call(%x) : (tensor<4xf32>) -> tensor<4xf32>",
    remedy: "lower the program for a platform whose ops are StableHLO's own, with static shapes",
  },
  TW9502: {
    title: "check that does not hold",
    cause: "A value of the program is not what one of its own checks expects.",
    example: "check.expect_eq_const %sum, dense<3.0> : tensor<f32>",
    remedy: "look at the elements that the report lists, and at the op that the value comes from",
  },
  TW9503: {
    title: "processes that wait for each other",
    cause:
      "Each process waits at a collective, a receive or an infeed that no other process will answer.",
    example: "a collective that one process of its group never reaches",
    remedy: "let every process of a group reach the same collectives in the same order",
  },
  TW9504: {
    title: "no such function",
    cause: "The module has no function of this name.",
    example: "call @missing(%x) : (tensor<f32>) -> tensor<f32>",
    remedy: "use one of the functions that the report lists",
  },
  TW9505: {
    title: "inputs that do not fit the function",
    cause:
      "A function is given another number of values than it has parameters, or values of other types.",
    example: 'evaluate(module, "main", []) // of a function with a parameter',
    remedy: "give one value for each parameter, with its element type and shape",
  },
  TW9506: {
    title: "value that is too large to evaluate",
    cause: "An op of the program gives a value of more than 4 GiB, which is the evaluator's limit.",
    example: "%0 = stablehlo.iota dim = 0 : tensor<1000000000000xi32>",
    remedy: "evaluate the program for smaller shapes, or run it on a device",
  },
});
