/** Convolutions: by the library where it makes them, as forward ones or as gradients; else one result a lane. */
import { fold } from "../lowering.ts";
import type { Lowering } from "../lowering.ts";
import { leastProducts } from "../library.ts";
import { convolutionAt } from "../rules/products.ts";
import { forwardCall, isForward, needsOtherWeights, withOtherWeights } from "./forward.ts";
import { gradientForm } from "./gradients.ts";
import { isByRows } from "../../normal/row-convolutions.ts";
import { rowsKernel } from "./rows.ts";
import { productsOf, typesOf } from "./shared.ts";
import type { Convolution } from "./shared.ts";

export const convolutionLowering: Lowering<"stablehlo.convolution"> = {
  form: "choose",
  by: (op) => {
    if (isByRows(op)) return fold(convolutionAt, rowsKernel);
    if (isForward(op))
      return needsOtherWeights(op)
        ? { form: "expand", to: withOtherWeights }
        : { form: "library", call: forwardCall };
    const gradient = gradientForm(op);
    if (gradient === undefined) return fold(convolutionAt);
    return "call" in gradient
      ? { form: "library", call: gradient.call }
      : { form: "expand", to: gradient.to };
  },
};

/** Whether a convolution over an operand with holes stays as it is: the library makes it, or it is too small for several kernels. */
export function keepsHoles(op: Convolution): boolean {
  const types = typesOf(op);
  return (
    types === undefined || productsOf(op, types) < leastProducts || gradientForm(op) !== undefined
  );
}
