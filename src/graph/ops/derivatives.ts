/**
 * Ops of ours, which say how a computation is differentiated. Each means what its body or its operand is; StableHLO has no
 * words for them, so programs are printed for others without them (`passes/derivatives.ts`).
 *
 *   "tilewright.custom_vjp"(%x) ({body}, {forward}, {backward})
 *     body      inputs -> results
 *     forward   inputs -> results, residuals
 *     backward  residuals, cotangents of the float results -> cotangents of the float inputs
 */
import { list, text, withDefault } from "./forms.ts";
import { defineGraphOps } from "./schema.ts";

/** Which values of a checkpointed computation are kept for the way back; the others are computed again. */
const checkpointPolicies = ["nothing", "dots", "dotsWithoutBatch", "names"] as const;
export type CheckpointPolicy = (typeof checkpointPolicies)[number];

export const derivativeOps = defineGraphOps({
  "tilewright.custom_vjp": {
    summary: "Its body, with a derivative of its own in reverse mode.",
    operands: { inputs: "many" },
    attributes: {},
    regions: { body: "one", forward: "one", backward: "one" },
    effect: "regions",
    text: "generic",
  },
  "tilewright.checkpoint": {
    summary: "Its body, computed again on the way back instead of kept.",
    operands: { inputs: "many" },
    attributes: { policy: text, names: withDefault(list(text), []) },
    regions: { body: "one" },
    effect: "regions",
    text: "generic",
  },
  "tilewright.name": {
    summary: "Its operand, under a name that a checkpoint's policy can keep.",
    operands: { operand: "one" },
    attributes: { name: text },
    regions: {},
    effect: "none",
    text: "generic",
  },
  "tilewright.stop_gradient": {
    summary: "Its operand, which counts as constant.",
    operands: { operand: "one" },
    attributes: {},
    regions: {},
    effect: "none",
    text: "generic",
  },
});
