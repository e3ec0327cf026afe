/**
 * Whether ops of two kernels make the same integers. Stages of the compiler decide attributes and add barriers; the
 * arithmetic of a kernel they leave as it is, so that its facts need not be found again:
 *
 *   %3 = loop %0, %1, %2 initial(%0) body(%4, %5) { … yield %6 }     before
 *   %3 = loop %0, %1, %2 initial(%0) body(%4, %5) { … yield %6 }     with other ops in its body: alike, where %6 is
 *
 * Values are compared by identity. What makes an operand is not looked at: whoever asks, asks of all values.
 */
import type { AnyOp, Region, Value } from "../node.ts";
import { operandValues, regionList, yieldedValues } from "../traverse.ts";

/** Whether the op makes of the same values what the other one does. */
export function makesAlike(op: AnyOp, other: AnyOp): boolean {
  if (op === other) return true;
  if (op.kind !== other.kind || op.attributes !== other.attributes) return false;
  if (!sameValues(operandValues(op), operandValues(other))) return false;
  const [regions, others] = [regionList(op), regionList(other)];
  return (
    regions.length === others.length &&
    regions.every((region, index) => hasSameEnds(region, others[index]))
  );
}

function hasSameEnds(region: Region, other: Region | undefined): boolean {
  return (
    other !== undefined &&
    sameValues(region.parameters, other.parameters) &&
    sameValues(yieldedValues(region), yieldedValues(other))
  );
}

export function sameValues(left: readonly Value[], right: readonly Value[]): boolean {
  return left === right || (left.length === right.length && left.every((v, i) => v === right[i]));
}
