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
import type { GraphRegion } from "./node.ts";

export interface KernelCall {
  readonly operation: Operation;
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
