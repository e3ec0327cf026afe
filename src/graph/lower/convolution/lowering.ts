/** Convolutions: by the library where it makes them, as forward ones or as gradients; else one result a lane. */
import { fold } from "../lowering.ts";
import type { Lowering } from "../lowering.ts";
import { convolutionAt } from "../rules/products.ts";
import { forwardCall, isForward, needsOtherWeights, withOtherWeights } from "./forward.ts";
import { gradientForm } from "./gradients.ts";

export const convolutionLowering: Lowering<"stablehlo.convolution"> = {
  form: "choose",
  by: (op) => {
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
