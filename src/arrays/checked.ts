/**
 * The functions on arrays as programs call them, each with what its arguments are. A value of another kind is refused
 * where it is given (TW4023), not where something is computed from it later.
 */
import { dtypes } from "../formats/dtype.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import { fieldsOf, functionKind, isListOf, isWhole, optional } from "../support/checked-call.ts";
import { isHostArray } from "../formats/hostarray.ts";
import { Device } from "../device/device.ts";
import { isOperation } from "../device/operation.ts";
import { isKernelDefinition } from "../lang/index.ts";
import { array, axis, checked, count, isArray, isFlag, isPairs, number } from "./kinds.ts";
import { options, shape, tree } from "./kinds.ts";
import * as derivatives from "./derivatives.ts";
import * as devices from "./device.ts";
import * as control from "./control.ts";
import * as functions from "./functions.ts";
import * as indexing from "./indexing.ts";
import * as compiling from "./jit.ts";
import * as kernels from "./kernels.ts";
import * as ordering from "./ordering.ts";
import * as reductions from "./reductions.ts";
import * as runnings from "./running.ts";
import * as scopes from "./scope.ts";
import * as shapes from "./shapes.ts";
import * as transforms from "./transforms.ts";
import * as trees from "./tree.ts";

const arrays: ArgumentKind = {
  expected: "a list of arrays, at least one",
  holds: (value) => isListOf(isArray)(value) && (value as readonly unknown[]).length > 0,
};
const operand: ArgumentKind = {
  expected: "an array or a number",
  holds: (value) => isArray(value) || typeof value === "number",
};
const openShape: ArgumentKind = {
  expected: "a shape, a list of whole numbers from 0, or -1 for what is left",
  holds: isListOf(isWhole(-1)),
};
const axes: ArgumentKind = { expected: "a list of axes", holds: isListOf(Number.isSafeInteger) };
const dtype: ArgumentKind = {
  expected: 'the name of a number format, such as "f32"',
  holds: (value) => typeof value === "string" && Object.hasOwn(dtypes, value),
};
const truths: ArgumentKind = {
  expected: "an array of bool",
  holds: (value) => isArray(value) && value.dtype === "bool",
};
const reduceOptions = options("{ axis, keepDims }, one or several axes and a boolean", {
  axis: (given) => axis.holds(given, []) || axes.holds(given, []),
  keepDims: isFlag,
});

const unary = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array], call);
const binary = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [operand, operand], call);
const reduction = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array, reduceOptions], call);

export const abs = unary("abs", functions.abs);
export const neg = unary("neg", functions.neg);
export const exp = unary("exp", functions.exp);
export const expm1 = unary("expm1", functions.expm1);
export const log = unary("log", functions.log);
export const log1p = unary("log1p", functions.log1p);
export const sigmoid = unary("sigmoid", functions.sigmoid);
export const sin = unary("sin", functions.sin);
export const cos = unary("cos", functions.cos);
export const tan = unary("tan", functions.tan);
export const tanh = unary("tanh", functions.tanh);
export const sqrt = unary("sqrt", functions.sqrt);
export const rsqrt = unary("rsqrt", functions.rsqrt);
export const cbrt = unary("cbrt", functions.cbrt);
export const floor = unary("floor", functions.floor);
export const ceil = unary("ceil", functions.ceil);
export const sign = unary("sign", functions.sign);
export const round = unary("round", functions.round);
export const logicalNot = unary("logicalNot", functions.logicalNot);
export const erf = unary("erf", functions.erf);
export const erfInv = unary("erfInv", functions.erfInv);

export const add = binary("add", functions.add);
export const sub = binary("sub", functions.sub);
export const mul = binary("mul", functions.mul);
export const div = binary("div", functions.div);
export const rem = binary("rem", functions.rem);
export const pow = binary("pow", functions.pow);
export const maximum = binary("maximum", functions.maximum);
export const minimum = binary("minimum", functions.minimum);
export const bitwiseAnd = binary("bitwiseAnd", functions.bitwiseAnd);
export const bitwiseOr = binary("bitwiseOr", functions.bitwiseOr);
export const bitwiseXor = binary("bitwiseXor", functions.bitwiseXor);
export const atan2 = binary("atan2", functions.atan2);
export const shiftLeft = binary("shiftLeft", functions.shiftLeft);
export const shiftRight = binary("shiftRight", functions.shiftRight);
export const equal = binary("equal", functions.equal);
export const notEqual = binary("notEqual", functions.notEqual);
export const less = binary("less", functions.less);
export const lessEqual = binary("lessEqual", functions.lessEqual);
export const greater = binary("greater", functions.greater);
export const greaterEqual = binary("greaterEqual", functions.greaterEqual);

export const clip = checked("clip", [array, operand, operand], functions.clip);
export const where = checked("where", [array, operand, operand], functions.where);
export const astype = checked("astype", [array, dtype], functions.astype);
export const bitcast = checked("bitcast", [array, dtype], functions.bitcast);
export const full = checked("full", [shape, number, dtype], functions.full);
export const broadcastTo = checked("broadcastTo", [array, shape], functions.broadcastTo);
export const broadcastShapes = checked(
  "broadcastShapes",
  [shape, shape],
  functions.broadcastShapes,
);

export const sum = reduction("sum", reductions.sum);
export const prod = reduction("prod", reductions.prod);
export const max = reduction("max", reductions.max);
export const min = reduction("min", reductions.min);
export const mean = reduction("mean", reductions.mean);
export const variance = reduction("variance", reductions.variance);
export const logsumexp = reduction("logsumexp", reductions.logsumexp);
export const any = checked("any", [truths, reduceOptions], reductions.any);
export const all = checked("all", [truths, reduceOptions], reductions.all);
export const argmax = checked("argmax", [array, optional(axis)], reductions.argmax);
export const argmin = checked("argmin", [array, optional(axis)], reductions.argmin);
export const softmax = checked("softmax", [array, optional(axis)], reductions.softmax);
export const matmul = checked("matmul", [array, array], reductions.matmul);
export const einsum = checked(
  "einsum",
  [
    { expected: 'a formula such as "ij,jk->ik"', holds: (value) => typeof value === "string" },
    array,
    array,
  ],
  reductions.einsum,
);

// A list with holes includes undefined, which no test of each element would meet.
const isNested = (value: unknown): boolean =>
  ["number", "bigint", "boolean"].includes(typeof value) ||
  (Array.isArray(value) && !value.includes(undefined) && value.every(isNested));
const data: ArgumentKind = {
  expected: "numbers in nested lists, or an array of the host, as fromNumbers makes it",
  holds: (value) => isNested(value) || isHostArray(fieldsOf(value, ["dtype", "shape", "data"])),
};

const makeArray = checked("array", [data, optional(dtype)], shapes.array);
export { makeArray as array };
export const zeros = checked("zeros", [shape, optional(dtype)], shapes.zeros);
export const ones = checked("ones", [shape, optional(dtype)], shapes.ones);
export const arange = checked("arange", [count, optional(dtype)], shapes.arange);
export const iota = checked(
  "iota",
  [
    shape,
    {
      expected: "an axis of the shape",
      holds: (value, [extents]) =>
        shape.holds(extents, []) && isWhole(0, (extents as readonly number[]).length - 1)(value),
    },
    dtype,
  ],
  shapes.iota,
);
export const reshape = checked("reshape", [array, openShape], shapes.reshape);
export const transpose = checked("transpose", [array, optional(axes)], shapes.transpose);
export const flip = checked("flip", [array, optional(axis)], shapes.flip);
export const concatenate = checked("concatenate", [arrays, optional(axis)], shapes.concatenate);
export const stack = checked("stack", [arrays, optional(axis)], shapes.stack);
export const expandDims = checked("expandDims", [array, axis], shapes.expandDims);
const isRange = (range: unknown): boolean =>
  isListOf(Number.isSafeInteger)(range) && isWhole(2, 3)((range as readonly unknown[]).length);
export const slice = checked(
  "slice",
  [
    array,
    {
      expected: "[start, stop, step?] or null for each axis",
      holds: isListOf((range) => range === null || isRange(range)),
    },
  ],
  shapes.slice,
);
export const squeeze = checked("squeeze", [array, optional(axis)], shapes.squeeze);
export const take = checked("take", [array, array], shapes.take);
export const oneHot = checked("oneHot", [array, count, optional(dtype)], shapes.oneHot);

/** An axis and a flag, each of which may be left out. */
const axisAnd = (name: string): ArgumentKind =>
  options(`{ axis, ${name} }, an axis and a boolean`, {
    axis: (given) => axis.holds(given, []),
    [name]: isFlag,
  });
const running = <F extends (...values: never[]) => unknown>(name: string, call: F): F =>
  checked(name, [array, axisAnd("reverse")], call);

export const sort = checked("sort", [array, axisAnd("descending")], ordering.sort);
export const argsort = checked("argsort", [array, axisAnd("descending")], ordering.argsort);
export const topK = checked("topK", [array, count], ordering.topK);
export const cumsum = running("cumsum", runnings.cumsum);
export const cumprod = running("cumprod", runnings.cumprod);
export const cummax = running("cummax", runnings.cummax);
export const cummin = running("cummin", runnings.cummin);

/** Records and lists with at least one array in them. */
const filledTree: ArgumentKind = {
  expected: "an array, or records and lists with arrays in them",
  holds: (value) => tree.holds(value, []) && trees.flatten(value).leaves.length > 0,
};
export const associativeScan = checked(
  "associativeScan",
  [functionKind, filledTree, axisAnd("reverse")],
  runnings.associativeScan,
);

const starts: ArgumentKind = {
  expected: "a whole number or an array of i32 without axes for each axis",
  holds: isListOf(
    (start) =>
      Number.isSafeInteger(start) || (isArray(start) && start.dtype === "i32" && start.rank === 0),
  ),
};
const indices: ArgumentKind = {
  expected: "an array of i32",
  holds: (value) => isArray(value) && value.dtype === "i32",
};
export const dynamicSlice = checked("dynamicSlice", [array, starts, shape], indexing.dynamicSlice);
export const dynamicUpdateSlice = checked(
  "dynamicUpdateSlice",
  [array, array, starts],
  indexing.dynamicUpdateSlice,
);
export const takeAlongAxis = checked(
  "takeAlongAxis",
  [array, indices, optional(axis)],
  indexing.takeAlongAxis,
);
export const addAt = checked("addAt", [array, indices, array], indexing.addAt);
export const setAt = checked("setAt", [array, indices, array], indexing.setAt);
export const pad = checked(
  "pad",
  [
    array,
    {
      expected: "[before, behind] for each axis, whole numbers",
      holds: isPairs,
    },
    optional(number),
  ],
  indexing.pad,
);

export const whileLoop = checked(
  "whileLoop",
  [functionKind, functionKind, tree],
  control.whileLoop,
);
const single = (dtype: "bool" | "i32"): ArgumentKind => ({
  expected: `an array of ${dtype} without axes`,
  holds: (value) => isArray(value) && value.dtype === dtype && value.rank === 0,
});
export const cond = checked("cond", [single("bool"), functionKind, functionKind], control.cond);
const functionList: ArgumentKind = {
  expected: "a list of functions, at least one",
  holds: (value) =>
    isListOf((each) => typeof each === "function")(value) &&
    (value as readonly unknown[]).length > 0,
};
export const switchCase = checked("switchCase", [single("i32"), functionList], control.switchCase);
const scanOptions = options("{ length }, a whole number from 0", { length: isWhole(0) });
export const scan = checked("scan", [functionKind, tree, tree, scanOptions], control.scan);

// Limits are looked at by the function itself.
const anything = (): boolean => true;
const jitOptions = options(
  "{ name, donate, cacheSize, signal, timeLimit, stepLimit }, where donate lists arguments by their places and cacheSize is a whole number from 1",
  {
    cacheSize: isWhole(1),
    name: (given) => typeof given === "string",
    donate: isListOf(isWhole(0)),
    signal: anything,
    timeLimit: anything,
    stepLimit: anything,
  },
);
const gradOptions = options("{ argument }, the place of an argument", { argument: isWhole(0) });
export const jit = checked("jit", [functionKind, jitOptions], compiling.jit);
export const lower = checked("lower", [functionKind], compiling.lower);
export const grad = checked("grad", [functionKind, gradOptions], transforms.grad);
export const valueAndGrad = checked(
  "valueAndGrad",
  [functionKind, gradOptions],
  transforms.valueAndGrad,
);
export const vjp = checked("vjp", [functionKind], transforms.vjp);
export const customVjp = checked(
  "customVjp",
  [functionKind, functionKind, functionKind],
  derivatives.customVjp,
);
const launchable: ArgumentKind = {
  expected: "a kernel, as kernel(…) makes it, or an operation",
  holds: (value) => isKernelDefinition(value) || isOperation(value),
};
export const fromKernel = checked(
  "fromKernel",
  [launchable, functionKind, optional(functionKind)],
  kernels.fromKernel,
);
const policies: readonly unknown[] = ["nothing", "dots", "dotsWithoutBatch"];
const checkpointOptions = options(
  '{ policy: "nothing" | "dots" | "dotsWithoutBatch" } or { names }',
  {
    policy: (given) => policies.includes(given),
    names: isListOf((name) => typeof name === "string"),
  },
);
export const checkpoint = checked(
  "checkpoint",
  [functionKind, checkpointOptions],
  derivatives.checkpoint,
);
export const checkpointName = checked(
  "checkpointName",
  [array, { expected: "a name", holds: (value) => typeof value === "string" }],
  derivatives.checkpointName,
);
export const stopGradient = checked("stopGradient", [tree], derivatives.stopGradient);
const vmapOptions = options("{ arguments }, a boolean for each", { arguments: isListOf(isFlag) });
export const vmap = checked("vmap", [functionKind, vmapOptions], transforms.vmap);

const isTrees = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => tree.holds(each, []));
export const jvp = checked(
  "jvp",
  [
    functionKind,
    { expected: "the arguments of the function, in a list", holds: isTrees },
    {
      expected: "a tangent for each argument, in a list",
      holds: (value, [, primals]) =>
        isTrees(value) &&
        trees.flatten(value as readonly []).leaves.length ===
          trees.flatten(primals as readonly []).leaves.length,
    },
  ],
  transforms.jvp,
);
export const mapTree = checked("mapTree", [tree, functionKind], trees.mapTree);

const device: ArgumentKind = {
  expected: "a device, as open(…) gives it",
  holds: (value) => value instanceof Device,
};
export const scope = checked("scope", [functionKind], scopes.scope);
const deviceOptions = options("{ cacheSize }, a whole number from 1", { cacheSize: isWhole(1) });
export const useDevice = checked("useDevice", [optional(device), deviceOptions], devices.useDevice);
