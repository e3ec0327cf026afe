/** Calls of `tilewright/arrays`. */
import { tensor as arraySpec, f32, fromNumbers, kernel, mxfp4, scaledHostArray } from "tilewright";
import * as arrays from "tilewright/arrays";
import type { BadCall, Untyped } from "./bad-call.ts";
import { junk, numberTakes, options, parameter } from "./junk.ts";
import type { Junk, Parameter } from "./junk.ts";

type Functions = { readonly [name: string]: Untyped | undefined };
const exported = arrays as unknown as Functions;
const namespaces = { nn: arrays.nn, random: arrays.random } as unknown as {
  readonly [name: string]: Functions;
};

/** Nothing is computed until it is read, so a call that is not read has not said everything. */
async function readResult(result: unknown): Promise<void> {
  if (result instanceof arrays.NDArray) await result.read();
  if (Array.isArray(result)) for (const each of result) await readResult(each);
}

export function call(name: string, ...parameters: readonly Parameter[]): BadCall {
  const [first = "", second] = name.split(".");
  const found = second === undefined ? exported[first] : namespaces[first]?.[second];
  if (found === undefined) throw new Error(`there is no export ${name}`);
  return {
    name,
    of: found,
    parameters,
    call: async (...values) => readResult(found(...values)),
  };
}

const floats = (): unknown =>
  arrays.array([
    [1, 2],
    [3, 4],
  ]);
const hostScaled = (): unknown =>
  scaledHostArray(
    mxfp4,
    fromNumbers(mxfp4.element, [1, 4], [1, 2, 3, 4]),
    fromNumbers(mxfp4.scale, [1, 1], [1]),
  );
const truths = (): unknown => arrays.less(floats() as arrays.NDArray<"f32">, 2);
const whole = (): unknown => arrays.array([1, 2, 3], "i32");
const operand = parameter(floats, ...numberTakes);
const array = parameter(floats);
const shape = parameter(() => [2, 2], "list", "numbers");
const axis = options(() => ({ axis: 0 }));
const f = parameter(() => (x: arrays.NDArray<"f32">) => arrays.sum(x), "function");
/** Whatever is no array in a tree is static. */
const treeTakes = Object.keys(junk) as readonly Junk[];

const unary = [
  "abs",
  "neg",
  "exp",
  "expm1",
  "log",
  "log1p",
  "sigmoid",
  "sin",
  "cos",
  "tan",
  "tanh",
  "sqrt",
  "rsqrt",
  "cbrt",
  "floor",
  "ceil",
  "sign",
  "round",
  "erf",
  "erfInv",
];
const binary = [
  "add",
  "sub",
  "mul",
  "div",
  "rem",
  "pow",
  "maximum",
  "minimum",
  "atan2",
  "equal",
  "notEqual",
  "less",
  "lessEqual",
  "greater",
  "greaterEqual",
];

const wholeNumbers = parameter(whole, ...numberTakes);
const dtype = parameter(() => "f32");
const optionalDType = parameter(() => "f32", "undefined");
const reduceOptions = options(() => ({ axis: 0, keepDims: true }));
const body = parameter(() => () => floats());
const key = parameter(() => arrays.random.key(1));
const wholeNumber = parameter(() => 3, "negative", "zero");
const parameters = parameter(() => ({ w: floats() }));
const learning = parameter(() => ({ learningRate: 0.1 }));

const planes = parameter(() => arrays.zeros([1, 4, 4, 3]));
const someIndices = parameter(() => arrays.array([0, 1], "i32"));
const heads = parameter(() => arrays.zeros([1, 2, 1, 4]));

export const arrayCalls: readonly BadCall[] = [
  call(
    "nn.attention",
    heads,
    heads,
    heads,
    options(() => ({ causal: true })),
  ),
  ...["nn.quantizeBlocks", "nn.fakeQuantize"].map((name) =>
    call(
      name,
      array,
      parameter(() => "mxfp4"),
      options(() => ({ axis: 0, scaleRounding: "floor" })),
    ),
  ),
  call(
    "nn.dequantizeBlocks",
    parameter(() => arrays.nn.quantizeBlocks(arrays.zeros([2, 2]), "mxfp4")),
    optionalDType,
  ),
  call(
    "nn.scaledArray",
    parameter(() => hostScaled()),
  ),
  call(
    "nn.withScaleLayout",
    parameter(() => arrays.nn.quantizeBlocks(arrays.zeros([2, 2]), "mxfp4")),
    parameter(() => "plain"),
  ),
  call(
    "nn.scaledMatmul",
    parameter(() => arrays.nn.quantizeBlocks(arrays.zeros([2, 2]), "mxfp4")),
    array,
    options(() => ({ dtype: "bf16" })),
  ),
  call(
    "nn.scaledDotGeneral",
    array,
    array,
    options(() => ({ contracting: [[1], [1]], formats: "mxfp4" })),
  ),
  call("nn.relu", array),
  call("nn.gelu", array),
  call("nn.silu", array),
  call("nn.softplus", array),
  call("nn.logSoftmax", array, axis),
  call("nn.batchNorm", array, array, array, options()),
  call(
    "nn.conv",
    planes,
    parameter(() => arrays.zeros([2, 2, 3, 4])),
    options(() => ({ strides: 2, padding: "same" })),
  ),
  ...["nn.maxPool", "nn.avgPool"].map((name) =>
    call(
      name,
      planes,
      parameter(() => [2, 2]),
      options(() => ({ padding: "valid" })),
    ),
  ),
  call(
    "nn.layerNorm",
    array,
    array,
    array,
    options(() => ({ epsilon: 1e-5 })),
  ),
  call(
    "nn.crossEntropy",
    array,
    parameter(() => arrays.array([0, 1], "i32")),
  ),
  call("nn.sgd", parameters, parameters, learning),
  call(
    "nn.adamw",
    parameters,
    parameters,
    parameter(() => ({
      step: arrays.array(0),
      first: { w: floats() },
      second: { w: floats() },
    })),
    options(() => ({ learningRate: 0.1 })),
  ),
  call(
    "random.key",
    wholeNumber,
    options(() => ({ generator: "rbg" })),
  ),
  ...["random.bits", "random.normal", "random.gumbel"].map((name) => call(name, key, shape)),
  call(
    "random.split",
    key,
    parameter(() => 3, "undefined", "zero"),
  ),
  call("random.foldIn", key, wholeNumber),
  call(
    "random.uniform",
    key,
    shape,
    options(() => ({ low: -1, high: 2 })),
  ),
  call(
    "random.bernoulli",
    key,
    parameter(() => 0.5, "zero"),
    shape,
  ),
  call(
    "random.randint",
    key,
    shape,
    wholeNumber,
    parameter(() => 10),
  ),
  call("random.categorical", key, array),
  call(
    "random.permutation",
    key,
    parameter(() => 4, "zero"),
  ),
  ...unary.map((name) => call(name, array)),
  ...binary.map((name) => call(name, operand, operand)),
  ...["bitwiseAnd", "bitwiseOr", "bitwiseXor", "shiftLeft", "shiftRight"].map((name) =>
    call(name, wholeNumbers, wholeNumbers),
  ),
  call("logicalNot", parameter(truths)),
  call("where", parameter(truths), operand, operand),
  call("astype", array, dtype),
  call(
    "bitcast",
    array,
    parameter(() => "i32"),
  ),
  call(
    "full",
    shape,
    parameter(() => 1, ...numberTakes),
    dtype,
  ),
  call(
    "broadcastTo",
    array,
    parameter(() => [3, 2, 2]),
  ),
  call("broadcastShapes", shape, shape),
  ...["sum", "prod", "max", "min", "mean", "logsumexp"].map((name) =>
    call(name, array, reduceOptions),
  ),
  ...["argmax", "argmin"].map((name) => call(name, array, axis)),
  ...["any", "all"].map((name) => call(name, parameter(truths), reduceOptions)),
  call("clip", array, operand, operand),
  ...["sort", "argsort"].map((name) =>
    call(
      name,
      array,
      options(() => ({ axis: 0, descending: true })),
    ),
  ),
  ...["cumsum", "cumprod", "cummax", "cummin"].map((name) =>
    call(
      name,
      array,
      options(() => ({ axis: 0, reverse: true })),
    ),
  ),
  call(
    "topK",
    array,
    parameter(() => 1, "zero"),
  ),
  call(
    "associativeScan",
    parameter(() => arrays.add),
    array,
    options(() => ({ reverse: true })),
  ),
  call(
    "dynamicSlice",
    array,
    parameter(() => [0, arrays.array(1, "i32")]),
    parameter(() => [1, 1]),
  ),
  call(
    "dynamicUpdateSlice",
    array,
    array,
    parameter(() => [0, 0]),
  ),
  call(
    "takeAlongAxis",
    array,
    parameter(() => arrays.array([[0], [1]], "i32")),
    options(() => ({ axis: 1 })),
  ),
  ...["addAt", "setAt"].map((name) => call(name, array, someIndices, array)),
  call(
    "pad",
    array,
    parameter(() => [
      [1, 1],
      [0, 2],
    ]),
    parameter(() => 1, "undefined", "object", "bare", ...numberTakes),
  ),
  call(
    "squeeze",
    parameter(() => arrays.zeros([1, 2])),
    axis,
  ),
  call("softmax", array, axis),
  call("matmul", array, array),
  call(
    "einsum",
    parameter(() => "ij,jk->ik"),
    array,
    array,
  ),
  call(
    "array",
    parameter(() => [1, 2], ...numberTakes, "list", "numbers"),
    optionalDType,
  ),
  call("zeros", shape, optionalDType),
  call("ones", shape, optionalDType),
  call(
    "arange",
    parameter(() => 4, "zero"),
    optionalDType,
  ),
  call(
    "iota",
    parameter(() => [2, 2], "numbers"),
    dtype,
    parameter(() => ({ axis: 0 })),
  ),
  call(
    "reshape",
    array,
    parameter(() => [4]),
  ),
  call(
    "transpose",
    array,
    parameter(() => [1, 0], "undefined"),
  ),
  call("flip", array, axis),
  call(
    "concatenate",
    parameter(() => [floats(), floats()]),
    axis,
  ),
  call(
    "stack",
    parameter(() => [floats(), floats()]),
    axis,
  ),
  call(
    "expandDims",
    array,
    parameter(() => ({ axis: 0 })),
  ),
  call(
    "slice",
    array,
    parameter(() => [[0, 1], null], "list"),
  ),
  call(
    "take",
    array,
    parameter(() => arrays.array([0], "i32")),
  ),
  call(
    "oneHot",
    parameter(whole),
    parameter(() => 4, "zero"),
    optionalDType,
  ),
  call(
    "whileLoop",
    parameter(() => (x: arrays.NDArray<"f32">) => arrays.less(arrays.sum(x), 100)),
    parameter(() => (x: arrays.NDArray<"f32">) => arrays.add(x, 1)),
    array,
  ),
  call(
    "cond",
    parameter(() => arrays.less(arrays.array(1), 2)),
    body,
    body,
  ),
  call(
    "scan",
    parameter(() => (carry: arrays.NDArray<"f32">, x: arrays.NDArray<"f32">) => [
      arrays.add(carry, x),
      x,
    ]),
    parameter(() => arrays.array([1, 2])),
    array,
    options(),
  ),
  call(
    "switchCase",
    parameter(() => arrays.array(0, "i32")),
    parameter(() => [() => floats(), () => floats()], "list"),
  ),
  call("customVjp", f, f, f),
  call(
    "fromKernel",
    parameter(() =>
      kernel({ name: "k", outputs: { out: arraySpec(f32, [8]) } }, ({ out }) => {
        out.store(0);
      }),
    ),
    f,
    parameter(() => undefined, "undefined", "function"),
  ),
  call(
    "checkpointName",
    array,
    parameter(() => "hidden", "text", "empty"),
  ),
  call(
    "stopGradient",
    parameter(() => ({ x: floats() }), ...treeTakes),
  ),
  call(
    "scope",
    parameter(() => () => floats(), "function"),
  ),
  ...["jit", "grad", "valueAndGrad", "vmap", "checkpoint"].map((name) => call(name, f, options())),
  call("lower", f, array),
  // No device is one that can be chosen: the evaluator.
  call(
    "useDevice",
    parameter(() => undefined, "undefined"),
  ),
  call("vjp", f, array),
  call(
    "jvp",
    f,
    parameter(() => [floats()]),
    parameter(() => [floats()]),
  ),
  call(
    "mapTree",
    parameter(() => ({ x: floats() }), ...treeTakes),
    parameter(() => (x: unknown) => x, "function"),
  ),
];
