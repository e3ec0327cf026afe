/** Which sizes an operation of a plan is carried out for: those of its buffers under the shapes that it is given them in. */
import { bindDimensions } from "../../device/binding.ts";
import type { Target } from "../../targets/target.ts";
import type { OperationStep } from "./plan.ts";

/** The sizes that an operation is carried out for, by the shapes of its arguments. */
export function sizesOf(
  { operation, inputs, outputs }: OperationStep,
  target: Target,
): { readonly [name: string]: number } {
  const arrays = new Map(
    [...inputs, ...outputs].map(({ name, shape, buffer }) => [
      name,
      { dtype: buffer.dtype, shape },
    ]),
  );
  return Object.fromEntries(bindDimensions(operation.kernel, arrays, {}, target));
}
