/** Codes of arrays: TW93xx. */
import { registerCodes } from "./entry.ts";

export const arrayCodes = registerCodes({
  TW9301: {
    title: "dtype that arrays do not have",
    cause: "Programs have no element type for this number format.",
    example: 'zeros([4], "tf32")',
    remedy: "use a dtype that programs have, such as f32 or bf16",
  },
  TW9302: {
    title: "value of a recorded function read",
    cause:
      "While a function is recorded its parameters have no data, so nothing that depends on them has.",
    example: "jit((x) => { void x.read(); return x; })",
    remedy: "return the array from the function and read it outside",
  },
  TW9303: {
    title: "array used as a JavaScript value",
    cause: "An array is not a number: operators and JSON see an object.",
    example: "const y = x + 1;",
    remedy: "use methods and functions such as add(x, 1), or await x.values()",
  },
  TW9304: {
    title: "shapes that cannot be broadcast",
    cause: "Counted from the last axis, two extents differ and neither is 1.",
    example: "add(zeros([4]), zeros([3]))",
    remedy: "reshape one of the arrays so that the axes agree",
  },
  TW9305: {
    title: "operands of other dtypes",
    cause: "The function takes arrays of one dtype, or of floats.",
    example: 'add(zeros([4], "f32"), zeros([4], "i32"))',
    remedy: "convert with astype",
  },
  TW9306: {
    title: "ragged lists",
    cause: "Lists within one list have different lengths, so they are no array.",
    example: "array([[1, 2], [3]])",
    remedy: "make all lists of one depth equally long",
  },
  TW9307: {
    title: "axis that an array does not have",
    cause: "An axis is a whole number from 0 to the rank less one, or negative from the end.",
    example: "flip(zeros([4]), 1)",
    remedy: "name an axis of the array",
  },
  TW9308: {
    title: "formula that does not fit its arrays",
    cause:
      "A formula of einsum has a letter of its own for each axis of an operand, and its result only letters of those, each once.",
    example: 'einsum("ij,jk->ik", zeros([4]), zeros([4, 4]))',
    remedy: "write a letter for each axis; a diagonal is taken before",
  },
  TW9309: {
    title: "asynchronous function recorded",
    cause:
      "A function that is recorded has to return arrays at once; it cannot wait for their data.",
    example: "jit(async (x) => add(x, 1))",
    remedy: "remove async, and read arrays outside the function",
  },
  TW9310: {
    title: "gradient of something that is no single float",
    cause: "A gradient is of a function whose result is one float; others have Jacobians.",
    example: "grad((x) => mul(x, x))(zeros([4]))",
    remedy: "sum the result, or use vjp",
  },
  TW9311: {
    title: "loop or branch that returns other arrays",
    cause:
      "What goes around a loop, or comes from either branch, needs one structure and one type each.",
    example: "whileLoop(c, (x) => concatenate([x, x]), zeros([4]))",
    remedy: "return arrays of the shapes and dtypes that were given",
  },
  TW9312: {
    title: "rows of scan that do not agree",
    cause:
      "The arrays that scan goes through need one number of rows, which is the length where one is given.",
    example: "scan(f, c, [zeros([4]), zeros([5])])",
    remedy: "give arrays with equally many rows, or a length and no arrays",
  },
  TW9313: {
    title: "examples of vmap that do not agree",
    cause: "The arrays of a batch need one first extent, the number of examples.",
    example: "vmap(add)(zeros([4]), zeros([5]))",
    remedy: "give arrays with equally many examples, or say which arguments have none",
  },
  TW9314: {
    title: "array used after it was disposed of or donated",
    cause:
      "dispose() gave the array's memory back, or a call that it was donated to took it. Then it was read, computed with or donated, or something was computed that had been recorded from it.",
    example: "x.dispose(); await x.read()",
    remedy: "dispose of an array after its last use, and go on with what a donating call returns",
  },
  TW9315: {
    title: "array on a device that is no longer chosen",
    cause:
      "The array was computed on a device, and the evaluator, which has its data on the host, is asked to compute with it.",
    example: 'useDevice("gpu"); const y = f(x); useDevice("evaluator"); jit(g)(y)',
    remedy: "choose the device again, or read the array and make a new one from its data",
  },
  TW9316: {
    title: "derivative that does not fit its function",
    cause:
      "The forward function of customVjp returns a result and residuals; the backward function a list with a cotangent for each argument, of the argument's types.",
    example: "customVjp(sin, (x) => [sin(x), x], (x, c) => mul(c, cos(x)))",
    remedy: "return [result, residuals] and [cotangent, …]",
  },
  TW9317: {
    title: "array donated and used besides",
    cause:
      "The memory of a donated array may hold a result before the call has read the array at its other place.",
    example: "jit(add, { donate: [0] })(x, x)",
    remedy: "donate an array that the call uses once, or hand over a copy",
  },
  TW9318: {
    title: "kernel that cannot be an op of a program",
    cause:
      "fromKernel takes a kernel whose inputs and outputs are arrays, and a function that says what it computes: of as many arrays as the kernel has inputs, to as many as it has outputs, of its formats and shapes, and of nothing else. Both are compared when arguments of some types come for the first time, on every device.",
    example: "fromKernel(scale, (x) => sum(x))   // the kernel writes as many elements as it reads",
    remedy: "hand everything over as an argument, and return what the kernel writes",
  },
  TW9319: {
    title: "operands of attention that do not go together",
    cause:
      "Attention takes q of [b, s, h, d], k of [b, t, kv, d] and v of [b, t, kv, e], all of one float dtype, where h is a multiple of kv.",
    example: "nn.attention(zeros([1, 4, 2, 8]), zeros([1, 4, 2, 16]), zeros([1, 4, 2, 8]))",
    remedy: "put batch, length, heads and head size in this order, with as many heads of k as of v",
  },
  TW9320: {
    title: "place of an extreme where there are no elements",
    cause: "Of no elements none is the largest or the smallest, so there is no index to give.",
    example: "argmax(zeros([4, 0]), 1)",
    remedy: "give an array or an axis that has elements",
  },
  TW9321: {
    title: "number that a dtype does not have",
    cause:
      "A plain number takes the dtype of the array beside it. Integers are whole and within their range, truths are 0 and 1.",
    example: 'mul(array([1, 2, 3], "i32"), 0.5)',
    remedy: "give a number that the dtype has, or convert the array with astype first",
  },
  TW9322: {
    title: "function that is not for a dtype",
    cause:
      "Results have the dtype of their arrays: a mean of integers would be cut to an integer, a sum of truths be a truth, and what is logical of integers would be of their bits.",
    example: 'mean(array([1, 2], "i32"))',
    remedy: "convert the array with astype first",
  },
  TW9323: {
    title: "object that is no tree of arrays",
    cause:
      "Functions of arrays take and return records and lists. Into an object of a class nobody can see: arrays in it would not be found, and a compiled function would not notice that it changed.",
    example: 'jit((parameters) => parameters.get("w"))(new Map([["w", w]]))',
    remedy: "hand over a record or a list of what the object holds",
  },
  TW9324: {
    title: "tangent or cotangent of another shape or dtype",
    cause:
      "Along an array goes a tangent of its shape and dtype, back from a result a cotangent of its own; nothing is broadcast or converted.",
    example: "jvp(sin, [zeros([4])], [ones([1])])",
    remedy: "make it with the shape and dtype of the array: broadcastTo, astype",
  },
  TW9325: {
    title: "scales that an array does not have",
    cause:
      "An array in a format with scales has one scale for each of its blocks, in the format's own dtype. Padded and tiled layouts are of rows that are scaled along their last axis, with a scale of each row alone.",
    example: 'nn.quantizeBlocks(zeros([4, 64]), "mxfp8e4m3", { scales: zeros([4, 2]) })',
    remedy: "give scales as nn.quantizeBlocks makes them, and keep others in the plain layout",
  },
  TW9326: {
    title: "product with scales whose arrays do not fit",
    cause:
      "A product with scales sums the last axis of both arrays, along which their blocks extend; what is in front of rows is equal in both.",
    example: 'nn.scaledMatmul(nn.quantizeBlocks(zeros([4, 64]), "mxfp4"), zeros([8, 32]))',
    remedy: "give [..., m, k] and [..., n, k], quantised along k",
  },
});
