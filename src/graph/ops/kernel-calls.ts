/**
 * Calls of kernels that the user wrote. In a graph such a call is a custom_call, whose target is a name that is made here
 * for a kernel and the types that it is called with. Devices run the kernel, the evaluator what it means, a region over
 * the call's operands.
 *
 *   %y = stablehlo.custom_call @tilewright.kernel.0.scale(%x) : (tensor<8xf32>) -> tensor<8xf32>
 *
 * Names hold for the life of the process: a program that is printed and read elsewhere calls a kernel that nobody knows,
 * and is refused.
 */
import type { Operation } from "../../device/operation.ts";
import type { AttentionOptions } from "../../kernels/attention/attention.ts";
import type { AttentionBackwardSpec } from "../../kernels/attention/backward.ts";
import type { ScaledFormatName } from "../../formats/scaled/formats.ts";
import type { GraphRegion } from "./node.ts";

/** Operations of the library that functions of arrays call by name, and what these are made for: the lowering brings their kernels, arrays do without. */
export interface LibrarySpecs {
  readonly attention: AttentionOptions;
  readonly attention_backward: AttentionBackwardSpec;
  readonly scaled_matmul: {
    readonly a: ScaledFormatName;
    readonly b: ScaledFormatName;
    readonly batched: boolean;
  };
}

/** One of those operations. */
export type LibraryOperation = {
  [N in keyof LibrarySpecs]: { readonly library: N; readonly spec: LibrarySpecs[N] };
}[keyof LibrarySpecs];

export interface KernelCall {
  /** The user's operation, or a declaration of the library's. */
  readonly operation: Operation;
  /** What devices run where the operation is a declaration alone. */
  readonly library?: LibraryOperation | undefined;
  readonly meaning: GraphRegion;
}

const calls = new Map<string, KernelCall>();

/** Makes the name of a call's target. */
export function registerKernelCall(call: KernelCall): string {
  const target = `tilewright.kernel.${calls.size}.${call.operation.name}`;
  calls.set(target, call);
  return target;
}

export function kernelCallOf(target: string): KernelCall | undefined {
  return calls.get(target);
}
