/**
 * Operations that a program with some part of the library is likely to run first. While a GPU is opened there is time to plan and
 * compile a few kernels, after which the JavaScript engine knows that code (`cuda/warm-up.ts`). Back ends know nothing of the
 * library, so a part of it says when it is loaded what is typical of it.
 */
import type { OperationPlan } from "./operation.ts";

export interface TypicalOperation {
  /** Makes and plans it; called at most once a process. */
  readonly plan: () => Pick<OperationPlan, "launches">;
}

const typical: TypicalOperation[] = [];

export function addTypical(operation: TypicalOperation): void {
  typical.push(operation);
}

/** A function of the library that has this typical operation: whoever loads one has the other. */
export function withTypical<T>(part: T, operation: TypicalOperation): T {
  addTypical(operation);
  return part;
}

/** Those of the parts that were loaded so far. */
export function typicalOperations(): readonly TypicalOperation[] {
  return typical;
}
