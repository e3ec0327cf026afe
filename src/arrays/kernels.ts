/**
 * A kernel as a function of arrays. Devices launch the kernel; what it means is a function of arrays beside it, which says
 * the results' shapes, runs on the evaluator, and is what derivatives go through unless they are given.
 *
 *   const scaled = fromKernel(scaleKernel, (x, factor) => mul(x, factor));
 *   jit(grad((x) => sum(scaled(x, factor))))           the kernel, and the derivative of mul
 *
 * Arguments are the kernel's inputs and results its outputs, in the order in which it declares them.
 */
import { arrayParameters } from "../device/binding.ts";
import { isOperation, kernelOperation } from "../device/operation.ts";
import type { Operation } from "../device/operation.ts";
import { storageOf } from "../graph/lower/storage.ts";
import { registerKernelCall } from "../graph/ops/kernel-calls.ts";
import type { GraphValue } from "../graph/ops/node.ts";
import { typeText } from "../graph/ops/types.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { LazyArray } from "./array.ts";
import { recordAll, typeOfArray } from "./array.ts";
import { valuesOf } from "./control.ts";
import { customVjp } from "./derivatives.ts";
import { arraysOf, recordFunction } from "./record.ts";
import { vjp } from "./transforms.ts";
import { rebuild } from "./tree.ts";

function refused(name: string, message: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({
    code: "TW9318",
    message: `${name}: ${message}`,
    expected,
    found,
  });
}

/** A kernel as an operation of one launch. */
function operationOf(given: KernelDefinition | Operation): Operation {
  if (isOperation(given)) return given;
  return kernelOperation(given);
}

/** Fails unless a kernel takes and makes arrays alone. */
function requireArraysAlone({ name, kernel, inputs, inouts }: Operation): void {
  const arrays = new Set(arrayParameters(kernel).map((each) => each.name));
  const other = Object.keys(inputs).find((each) => !arrays.has(each));
  if (other !== undefined)
    throw refused(name, "an input is no array", "inputs that are arrays", `the scalar ${other}`);
  const [updated] = Object.keys(inouts);
  if (updated !== undefined)
    throw refused(name, "an array is updated in place", "inputs and outputs", `inout ${updated}`);
}

/** Fails unless values have the element types of a kernel's arrays. */
function requireElements(
  { name, kernel }: Operation,
  what: string,
  names: readonly string[],
  values: readonly GraphValue[],
): void {
  const dtypes = new Map(arrayParameters(kernel).map((each) => [each.name, each.type.dtype.name]));
  const expected = names.map((each) => `${each} of ${dtypes.get(each) ?? "no type"}`);
  const isSame =
    names.length === values.length &&
    values.every(
      (value, i) => storageOf(typeOfArray(value).element)?.name === dtypes.get(names[i] ?? ""),
    );
  if (isSame) return;
  const found = values.map(({ type }) => typeText(type)).join(", ") || "nothing";
  throw refused(name, `${what} are not the kernel's`, expected.join(", "), found);
}

/**
 * A kernel as a function of arrays, which computes what `meaning` does. `backward` gives a cotangent for each argument
 * from the arguments and those of the results; without it, that of `meaning` is used.
 */
export function fromKernel<A extends readonly LazyArray[], R>(
  kernel: KernelDefinition | Operation,
  meaning: (...args: A) => R,
  backward?: (args: A, cotangents: R) => { readonly [K in keyof A]: unknown },
): (...args: A) => R {
  const operation = operationOf(kernel);
  requireArraysAlone(operation);
  const targets = new Map<string, string>();
  const call = (...args: A): R => {
    const { graph, captures, result } = recordFunction(operation.name, meaning, args);
    if (captures.length > 0)
      throw refused(
        operation.name,
        "what it means depends on more than its arguments",
        "a function of its arguments alone",
        `${captures.length} other arrays`,
      );
    const inputs = valuesOf(args);
    requireElements(operation, "arguments", Object.keys(operation.inputs), inputs);
    requireElements(operation, "results", Object.keys(operation.outputs), graph.results);
    const types = graph.results.map(({ type }) => type);
    const key = [...inputs.map(({ type }) => type), ...types].map(typeText).join();
    const call_target_name = targets.get(key) ?? registerKernelCall({ operation, meaning: graph });
    targets.set(key, call_target_name);
    const attributes = {
      call_target_name,
      has_side_effect: false,
      api_version: 1,
      called_computations: [],
    };
    const results = recordAll("stablehlo.custom_call", { inputs }, attributes, { types });
    return rebuild(result, arraysOf(results));
  };
  return customVjp(
    call,
    (...args: A) => [call(...args), args] as const,
    backward ?? ((args: A, cotangents: R) => vjp(meaning, ...args)[1](cotangents)),
  );
}
