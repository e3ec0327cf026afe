/**
 * Operations that a program with some part of the library is likely to run first. While a GPU is opened there is time to plan and
 * compile a few kernels, after which the JavaScript engine knows that code (`cuda/warm-up.ts`). Back ends do not know the
 * library, so each part of it registers such an operation when it is loaded.
 */
import type { OperationPlan } from "./operation.ts";

export interface WarmUpOperation {
  /** Makes and plans it; called at most once a process. */
  readonly plan: () => Pick<OperationPlan, "launches">;
}

const operations: WarmUpOperation[] = [];

export function addWarmUpOperation(operation: WarmUpOperation): void {
  operations.push(operation);
}

/** Returns `part`, and registers its operation for the warm-up. */
export function withWarmUp<T>(part: T, operation: WarmUpOperation): T {
  addWarmUpOperation(operation);
  return part;
}

/** Operations of the parts loaded so far. */
export function warmUpOperations(): readonly WarmUpOperation[] {
  return operations;
}
