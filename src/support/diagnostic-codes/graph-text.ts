/** Codes of the text of programs (StableHLO): TW90xx. */
import { registerCodes } from "./entry.ts";

export const graphTextCodes = registerCodes({
  TW9001: {
    title: "program text has something else here",
    cause:
      "The text does not follow the grammar of MLIR, or of this op's short form, at this place.",
    example: "%0 = stablehlo.add %arg0 %arg1 : tensor<4xf32>",
    remedy: 'write what is expected; the generic form "dialect.op"(…) is legal for every op',
  },
  TW9002: {
    title: "value used before its definition in program text",
    cause: "No op before this one, and no argument of a region around it, defines the value.",
    example: "%0 = stablehlo.negate %missing : tensor<4xf32>",
    remedy: "define the value earlier in the same region or in one around it",
  },
  TW9003: {
    title: "name defined twice in program text",
    cause: "A value or function of this name is already in sight.",
    example: "func.func @f() { return }\nfunc.func @f() { return }",
    remedy: "give the second one another name",
  },
  TW9004: {
    title: "operand, attribute or region missing, too many or of another form",
    cause: "An op lacks one of its parts, has too many, or an attribute is not what the op takes.",
    example: '%0 = "stablehlo.iota"() : () -> tensor<4xf32>',
    remedy: "write each part of the op as its entry in StableHLO's specification has it",
  },
  TW9005: {
    title: "written type is not the value's",
    cause:
      "The types after the colon differ from the types that the operands were defined with, or from the number of results.",
    example:
      "%0 = stablehlo.abs %arg0 : (tensor<4xf32>) -> tensor<4xf32>   // %arg0: tensor<8xf32>",
    remedy: "write the type that the value was defined with",
  },
  TW9006: {
    title: "constant does not fit its type",
    cause:
      "A dense constant has other extents than its type, or a number that the element type lacks.",
    example: "stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>",
    remedy:
      "make the nesting of the list the shape of the type, and each number one of the element type",
  },
  TW9007: {
    title: "constant kept outside the text",
    cause:
      "A dense_resource names data that the section of resources at the end of the text lacks, as when large constants are left out of what is printed.",
    example: "stablehlo.constant dense_resource<weights> : tensor<1024xf32>",
    remedy:
      "print the program with its constants (in JAX, without large-constant elision), or pass the data as an argument",
  },
  TW9008: {
    title: "region of several blocks",
    cause:
      "StableHLO's regions are single blocks; branches between blocks belong to other dialects.",
    example: "^bb1:\n  cf.br ^bb2",
    remedy: "lower control flow to stablehlo.while, stablehlo.if and stablehlo.case",
  },
  TW9009: {
    title: "op without a short form here",
    cause: "The op is not one of the table's, so only its generic form can be read.",
    example: "%0 = tensor.dim %arg0, %c0 : tensor<?xf32>",
    remedy: 'write it in generic form: "dialect.op"(%a) : (T) -> T',
  },
  TW9010: {
    title: "program text that is nested too deeply",
    cause:
      "Lists, types, regions or locations stand within each other over too many levels, or names stand for each other in a circle.",
    example: "#a = [#a]",
    remedy: "write it with fewer levels, and names that lead to an end",
  },
  TW9011: {
    title: "tensor with more elements than can be counted",
    cause: "The product of a type's extents is 2^53 or more.",
    example: "tensor<99999999999x99999999999xf32>",
    remedy: "write a smaller shape",
  },
  TW9012: {
    title: "type that programs do not have",
    cause: "No element type or type of StableHLO has this name, and no other dialect is named.",
    example: "tensor<4xf33>",
    remedy: "write one of the element types that docs/stablehlo-operations.md lists",
  },
});
