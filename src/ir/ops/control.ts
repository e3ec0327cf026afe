/** Ops with regions, the end of a region, and ops for finding mistakes. */
import { defineOps } from "./define.ts";

export const controlOps = defineOps({
  loop: {
    summary:
      "Counts from `lower` below `upper` by `step`; the body takes the index and the carried values and yields the next ones.",
    operands: { lower: "one", upper: "one", step: "one", initial: "many" },
    attributes: {},
    regions: { body: "one" },
    effect: "regions",
  },
  while: {
    summary: "Repeats the body while the condition, computed from the carried values, yields true.",
    operands: { initial: "many" },
    attributes: {},
    regions: { condition: "one", body: "one" },
    effect: "regions",
  },
  if: {
    summary: "Runs one of two regions, which yield the results.",
    operands: { condition: "one" },
    attributes: {},
    regions: { then: "one", otherwise: "one" },
    effect: "regions",
  },
  switch: {
    summary: "Runs the case of the index, clamped to the cases there are; cases yield the results.",
    operands: { index: "one" },
    attributes: {},
    regions: { cases: "many" },
    effect: "regions",
  },
  scoped: {
    summary:
      "Memory and barriers allocated in the body live as long as it runs. Outside `on_threads` all program threads enter and leave together.",
    operands: {},
    attributes: {},
    regions: { body: "one" },
    effect: "regions",
  },
  on_threads: {
    summary: "Only the listed program threads run the body.",
    operands: {},
    attributes: { threads: "integers" },
    regions: { body: "one" },
    effect: "regions",
  },
  warps: {
    summary:
      "Each of the four warps runs the body on its own, with its index; they meet before and after.",
    operands: {},
    attributes: {},
    regions: { body: "one" },
    effect: "regions",
  },
  yield: {
    summary: "Ends a region with its results.",
    operands: { values: "many" },
    attributes: {},
    regions: {},
    effect: "order",
  },
  debug_print: {
    summary: "Prints values; each `{}` of the format takes the next one.",
    operands: { values: "many" },
    attributes: { format: "text" },
    regions: {},
    effect: "order",
  },
  assert: {
    summary: "Stops with the message where the condition is false anywhere.",
    operands: { condition: "one" },
    attributes: { message: "text" },
    regions: {},
    effect: "order",
  },
  debug_break: {
    summary: "Stops the simulator in the debugger with the named values in sight.",
    operands: { values: "many" },
    attributes: { names: "texts" },
    regions: {},
    effect: "order",
  },
});
