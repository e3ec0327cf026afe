/**
 * Ops of placed kernels: what the compiler has decided beyond what was traced. Traced kernels have none of
 * them, and a placed kernel without them computes the same.
 */
import { allocates, computes, defineOps } from "./define.ts";

export const placedOps = defineOps({
  convert_layout: {
    summary:
      "The same elements, held by other lanes and registers, as the type of the result says; `scratch` is what they move through.",
    operands: { source: "one", scratch: "optional" },
    attributes: {},
    regions: {},
    traits: { ...computes, scratch: "by layout" },
  },
  alloc_scratch: {
    summary:
      "Shared memory from byte `at` for ops that need some while they run: `bytes` for each of the `agents` that run them side by side.",
    operands: {},
    attributes: { bytes: "integer", agents: "integer", at: "integer", name: "text?" },
    regions: {},
    traits: { ...allocates, stands: "anywhere" },
  },
});
