/** Which kinds compute each element of a result from the elements of the operands at its place, in any dialect. */
import { chloElementwiseOps } from "./chlo.ts";
import { elementwiseOps } from "./elementwise.ts";

export function isElementwise(kind: string): boolean {
  return Object.hasOwn(elementwiseOps, kind) || Object.hasOwn(chloElementwiseOps, kind);
}
