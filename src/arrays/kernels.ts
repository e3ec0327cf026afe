/**
 * A kernel as a function of arrays. Devices launch the kernel; what it means is a function of arrays beside it, which says
 * the results' shapes, runs on the evaluator, and is what derivatives go through unless they are given.
 *
 *   const scaled = fromKernel(scaleKernel, (x, factor) => mul(x, factor));
 *   jit(grad((x) => sum(scaled(x, factor))))           the kernel, and the derivative of mul
 *
 * Arguments are the kernel's inputs, in the order in which it declares them. Types and shapes of the two are compared when
 * arguments of some types come for the first time, on every device; `checkMeaning` of `tilewright/testing` compares numbers.
 */
import { kernelOperation, isOperation } from "../device/operation.ts";
import type { Operation } from "../device/operation.ts";
import { GraphBuilder } from "../graph/infer/builder.ts";
import { kernelCallOf, registerKernelCall } from "../graph/ops/kernel-calls.ts";
import type { LibraryOperation } from "../graph/ops/kernel-calls.ts";
import { graphRegion } from "../graph/ops/node.ts";
import { kernel as kernelOf } from "../lang/index.ts";
import type { KernelDefinition, TensorSpecs } from "../lang/index.ts";
import type { NDArray } from "./array.ts";
import { keep, originOf } from "./array.ts";
import { customVjp } from "./derivatives.ts";
import {
  inOrder,
  refused,
  requireAgreement,
  requireArguments,
  requireArraysAlone,
  resultPlaces,
  signatureKey,
} from "./kernel-signature.ts";
import type { ResultPlaces } from "./kernel-signature.ts";
import { arraysOf, recordForCalls } from "./trace-function.ts";
import { vjp } from "./transforms.ts";
import { rebuild } from "./tree.ts";

/** What `fromKernel` was given, for who checks the one against the other. */
export interface KernelFunction {
  readonly operation: Operation;
  readonly meaning: (...args: readonly NDArray[]) => unknown;
  readonly backward: ((args: never, cotangents: never) => unknown) | undefined;
}

const made = new WeakMap<object, KernelFunction>();

/** What a function was made from; undefined where `fromKernel` did not make it. */
export function kernelFunctionOf(call: object): KernelFunction | undefined {
  return made.get(call);
}

/** A kernel for arguments of some types. */
interface Signature<R> {
  readonly target: string;
  readonly results: ResultPlaces;
  /** What the meaning returned, with arrays of its recording. */
  readonly result: R;
}

/**
 * A kernel as a function of arrays, which computes what `meaning` does. `backward` gives a cotangent for each argument
 * from the arguments and those of the results; without it, that of `meaning` is used.
 */
export function fromKernel<A extends readonly NDArray[], R>(
  kernel: KernelDefinition | Operation,
  meaning: (...args: A) => R,
  backward?: (args: A, cotangents: R) => { readonly [K in keyof A]: unknown },
): (...args: A) => R {
  return declaredCall({ kernel, meaning, backward });
}

/** What `fromKernel` takes, and what devices run instead of a kernel that is declared alone. */
interface DeclaredCall<A extends readonly NDArray[], R> {
  readonly kernel: KernelDefinition | Operation;
  readonly meaning: (...args: A) => R;
  readonly backward?:
    | ((args: A, cotangents: R) => { readonly [K in keyof A]: unknown })
    | undefined;
  readonly library?: LibraryOperation;
}

/**
 * An operation of the library as a function of arrays. Its kernels are loaded with the first program for a device, so only the arguments are
 * declared here, in their order.
 */
export function fromLibrary<A extends readonly NDArray[], R>(
  library: LibraryOperation,
  declaration: { readonly inputs: TensorSpecs; readonly outputs: TensorSpecs },
  meaning: (...args: A) => R,
  backward?: (args: A, cotangents: R) => { readonly [K in keyof A]: unknown },
): (...args: A) => R {
  const declared = kernelOf({ name: library.library, ...declaration }, () => undefined);
  return declaredCall({ kernel: declared, meaning, backward, library });
}

function declaredCall<A extends readonly NDArray[], R>({
  kernel,
  meaning,
  backward,
  library,
}: DeclaredCall<A, R>): (...args: A) => R {
  const operation = isOperation(kernel) ? kernel : kernelOperation(kernel);
  requireArraysAlone(operation);
  const signatures = new Map<string, Signature<R>>();

  /** Records the meaning for arguments of these types, and holds it against the kernel. */
  const sign = (args: A): Signature<R> => {
    const { name } = operation;
    const { graph, captures, result } = recordForCalls(name, meaning, args);
    if (captures.length > 0)
      throw refused(operation, {
        message: "what it means depends on more than its arguments",
        expected: "a function of its arguments alone",
        found: `${captures.length} other ${captures.length === 1 ? "array" : "arrays"}`,
        remedy: "hand everything over as an argument",
      });
    const results = resultPlaces(operation, result);
    const { parameters, ops, results: values } = graph;
    const ordered = inOrder(values, results.ofOutputs);
    requireAgreement(operation, parameters, ordered);
    const call = { operation, library, meaning: graphRegion(parameters, ops, ordered) };
    return { target: registerKernelCall(call), results, result };
  };

  const call = (...args: A): R => {
    const inputs = requireArguments(operation, args).map(({ value }) => value);
    const key = signatureKey(operation, inputs);
    const { target, results, result } = signatures.get(key) ?? sign(args);
    signatures.set(key, { target, results, result });
    const attributes = {
      call_target_name: target,
      has_side_effect: false,
      api_version: 1,
      called_computations: [],
    };
    const types = kernelCallOf(target)?.meaning.results.map(({ type }) => type) ?? [];
    const builder = new GraphBuilder(originOf(operation.name));
    const outputs = builder.add("stablehlo.custom_call", { inputs }, attributes, { types });
    keep(builder.ops);
    return rebuild(result, arraysOf(inOrder(outputs, results.ofLeaves)));
  };
  const differentiable = customVjp(
    call,
    (...args: A) => [call(...args), args] as const,
    backward ?? ((args: A, cotangents: R) => vjp(meaning, ...args)[1](cotangents)),
  );
  made.set(differentiable, {
    operation,
    meaning: meaning as unknown as KernelFunction["meaning"],
    backward,
  });
  return differentiable;
}
