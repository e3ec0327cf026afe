/**
 * The functions of functions as programs call them — control flow, `jit`, derivatives, kernels — and those of devices, each
 * with what its arguments are, as `checked.ts` has the functions of arrays.
 */
import type { ArgumentKind } from "../support/checked-call.ts";
import { functionKind, isListOf, isWhole, optional } from "../support/checked-call.ts";
import { Device } from "../device/device.ts";
import { deviceNames } from "../runtime/open-options.ts";
import { isMatmulPrecision } from "../graph/ops/matmul-precision.ts";
import { isOperation } from "../device/operation.ts";
import { isKernelDefinition } from "../lang/index.ts";
import { array, checked, isArray, isFlag } from "./argument-checks.ts";
import { options, tree } from "./argument-checks.ts";
import * as derivatives from "./derivatives.ts";
import * as devices from "./device.ts";
import * as control from "./control.ts";
import * as compiling from "./jit.ts";
import * as kernels from "./kernels.ts";
import * as scopes from "./scope.ts";
import * as transforms from "./transforms.ts";
import * as trees from "./tree.ts";

/**
 * Applies `body` to a state for as long as `condition` holds of it. Both are recorded once.
 *
 * @example
 * ```ts
 * import { add, array, less, mul, whileLoop } from "tilewright/arrays";
 *
 * const start = { x: array(1), steps: array(0, "i32") };
 * const end = whileLoop(
 *   ({ x }) => less(x, 100),
 *   ({ x, steps }) => ({ x: mul(x, 2), steps: add(steps, 1) }),
 *   start,
 * );
 * console.log(await end.x.values(), await end.steps.values()); // 128 7
 * ```
 */
export const whileLoop = checked(
  "whileLoop",
  [functionKind, functionKind, tree],
  control.whileLoop,
);
const single = (dtype: "bool" | "i32"): ArgumentKind => ({
  expected: `an array of ${dtype} without axes`,
  holds: (value) => isArray(value) && value.dtype === dtype && value.rank === 0,
});
/** The result of one of two functions, chosen by a bool without axes when the program runs. */
export const cond = checked("cond", [single("bool"), functionKind, functionKind], control.cond);
const functionList: ArgumentKind = {
  expected: "a list of functions, at least one",
  holds: (value) =>
    isListOf((each) => typeof each === "function")(value) &&
    (value as readonly unknown[]).length > 0,
};
/** The result of one of several functions, chosen by an index without axes when the program runs, which is clamped. */
export const switchCase = checked("switchCase", [single("i32"), functionList], control.switchCase);
const scanOptions = options("{ length }, a whole number from 0", { length: isWhole(0) });
/**
 * Carries a state through the rows of arrays: `f(carry, row)` gives the next carry and a result. Gives the last carry
 * and the stacked results. Recorded once, whatever the length.
 *
 * @example
 * ```ts
 * import { add, array, scan } from "tilewright/arrays";
 *
 * const [total, sums] = scan(
 *   (carry, x) => [add(carry, x), add(carry, x)],
 *   array(0),
 *   array([1, 2, 3]),
 * );
 * console.log(await total.values(), await sums.values()); // 6 [1, 3, 6]
 * ```
 */
export const scan = checked("scan", [functionKind, tree, tree, scanOptions], control.scan);

// Limits are looked at by the function itself.
const anything = (): boolean => true;
const jitOptions = options(
  '{ name, donate, cacheSize, matmulPrecision, signal, timeLimit, stepLimit }, where donate lists arguments by their places, cacheSize is a whole number from 1 and matmulPrecision is "f32" or "tf32"',
  {
    cacheSize: isWhole(1),
    name: (given) => typeof given === "string",
    donate: isListOf(isWhole(0)),
    matmulPrecision: isMatmulPrecision,
    signal: anything,
    timeLimit: anything,
    stepLimit: anything,
  },
);
const gradOptions = options("{ argument }, the place of an argument", { argument: isWhole(0) });
/**
 * Compiles a function of arrays. It is recorded at the first call with arguments of some shapes and dtypes, and runs
 * as one program from then on.
 *
 * @example
 * ```ts
 * import { add, array, jit, mul } from "tilewright/arrays";
 * import type { NDArray } from "tilewright/arrays";
 *
 * const axpy = jit((a: NDArray, x: NDArray, y: NDArray) => add(mul(a, x), y));
 * console.log(await axpy(array(2), array([1, 2]), array([10, 20])).values()); // [12, 24]
 * ```
 */
export const jit = checked("jit", [functionKind, jitOptions], compiling.jit);
/** The program of a function as StableHLO text, for arguments of given shapes and dtypes. */
export const lower = checked("lower", [functionKind], compiling.lower);
/**
 * The gradient of a function that returns one number, for its first argument or the one that `argument` names. The
 * argument may be a record or a list of arrays.
 *
 * @example
 * ```ts
 * import { array, grad, mul, sum } from "tilewright/arrays";
 * import type { NDArray } from "tilewright/arrays";
 *
 * const loss = (w: NDArray) => sum(mul(w, w));
 * console.log(await grad(loss)(array([1, 2])).values()); // [2, 4]
 * ```
 */
export const grad = checked("grad", [functionKind, gradOptions], transforms.grad);
/** The value of a function and its gradient, computed together. See `grad`. */
export const valueAndGrad = checked(
  "valueAndGrad",
  [functionKind, gradOptions],
  transforms.valueAndGrad,
);
/** The result of a function, and the function that turns cotangents of the result into those of the arguments. */
export const vjp = checked("vjp", [functionKind], transforms.vjp);
/**
 * A function with a reverse-mode derivative of its own. `forward` gives the result and what `backward` needs;
 * `backward` gives a cotangent for each argument.
 */
export const customVjp = checked(
  "customVjp",
  [functionKind, functionKind, functionKind],
  derivatives.customVjp,
);
const launchable: ArgumentKind = {
  expected: "a kernel, as kernel(…) makes it, or an operation",
  holds: (value) => isKernelDefinition(value) || isOperation(value),
};
/**
 * A kernel as a function of arrays. `meaning` says in arrays what it computes; `backward` gives a cotangent for each
 * argument, and without it the derivative of `meaning` is used.
 */
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
/** The function, but derivatives keep only its arguments and compute the rest again, which saves memory. */
export const checkpoint = checked(
  "checkpoint",
  [functionKind, checkpointOptions],
  derivatives.checkpoint,
);
/** The array under a name, by which `checkpoint` can be told to keep it. */
export const checkpointName = checked(
  "checkpointName",
  [array, { expected: "a name", holds: (value) => typeof value === "string" }],
  derivatives.checkpointName,
);
/** The array as a constant: derivatives do not pass through it. */
export const stopGradient = checked("stopGradient", [tree], derivatives.stopGradient);
const vmapOptions = options("{ arguments }, a boolean for each", { arguments: isListOf(isFlag) });
/**
 * A function of one example made a function of a batch of them. Results have the batch as their first axis.
 *
 * @example
 * ```ts
 * import { array, mul, sum, vmap } from "tilewright/arrays";
 * import type { NDArray } from "tilewright/arrays";
 *
 * const dot = (x: NDArray, y: NDArray) => sum(mul(x, y));
 * const rows = vmap(dot, { arguments: [true, false] });
 * console.log(await rows(array([[1, 2], [3, 4]]), array([1, 10])).values()); // [21, 43]
 * ```
 */
export const vmap = checked("vmap", [functionKind, vmapOptions], transforms.vmap);

const isTrees = (value: unknown): boolean =>
  Array.isArray(value) && value.every((each) => tree.holds(each, []));
/** The result of a function and its tangent along tangents of the arguments: a derivative in forward mode. */
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
/** The record or list with each array in it replaced by what a function makes of it. */
export const mapTree = checked("mapTree", [tree, functionKind], trees.mapTree);

const device: ArgumentKind = {
  expected: 'a device, as open(…) gives it, the name of one, or "evaluator"',
  holds: (value) =>
    value instanceof Device || ["evaluator", ...deviceNames].some((name) => name === value),
};
/** Runs a function and gives back the device memory of all arrays that were computed in it and are not part of its result. */
export const scope = checked("scope", [functionKind], scopes.scope);
const deviceOptions = options("{ cacheSize }, a whole number from 1", { cacheSize: isWhole(1) });
/**
 * Chooses the device that arrays are computed on from now on: a device, the name of one, or `"evaluator"`, which says what programs mean, op by op;
 * without one, the default again: the GPU, or the CPU where there is none. Resolves once the programs of the device before have run.
 *
 * @example
 * ```ts
 * import { array, matmul, useDevice } from "tilewright/arrays";
 *
 * await useDevice("cpu"); // or "gpu", or a device that open() gave
 * const x = array([[1, 2], [3, 4]]);
 * console.log(await matmul(x, x).values()); // computed on the device
 *
 * await useDevice();
 * ```
 */
export const useDevice = checked("useDevice", [optional(device), deviceOptions], devices.useDevice);
