/** Ops with regions, the end of a region, and ops for finding mistakes. */
import { acts, computes, defineOps } from "./define.ts";

/** An op that does what its regions do. */
const controls = {
  ...computes,
  results: { handed: "yields" },
  elements: "as its regions",
  may: "as its regions",
} as const;

/** An op whose regions are not run by everybody alike. */
const divides = { ...controls, elements: "mixed" } as const;

/** An op that tells of values and makes none. */
const reports = { ...acts, elements: "each" } as const;

/** All lanes of the thread come and go together. */
const entryAndExit = [
  { who: "thread", part: "whole", at: "before" },
  { who: "thread", part: "whole", at: "after" },
] as const;

export const controlOps = defineOps({
  loop: {
    summary:
      "Counts from `lower` below `upper` by `step`; the body takes the index and the carried values and yields the next ones. `depth` says for how many steps there is room where the compiler copies blocks ahead; with `breaks` the body yields last whether the loop ends here, with what it hands on.",
    operands: { lower: "one", upper: "one", step: "one", initial: "many" },
    attributes: { depth: "integer?", breaks: "flag?" },
    regions: { body: "one" },
    traits: {
      ...controls,
      results: { handed: "initial" },
      regions: "repeat",
      unrolls: "never",
    },
  },
  while: {
    summary:
      "Repeats the body while the condition, computed from the carried values, yields true; with `breaks` the body yields last whether the loop ends behind it.",
    operands: { initial: "many" },
    attributes: { breaks: "flag?" },
    regions: { condition: "one", body: "one" },
    traits: {
      ...controls,
      results: { handed: "initial" },
      regions: "repeat",
      ends: "perhaps never",
      unrolls: "never",
    },
  },
  if: {
    summary: "Runs one of two regions, which yield the results.",
    operands: { condition: "one" },
    attributes: {},
    regions: { then: "one", otherwise: "one" },
    traits: { ...controls, regions: "one of" },
  },
  switch: {
    summary: "Runs the case of the index, clamped to the cases there are; cases yield the results.",
    operands: { index: "one" },
    attributes: {},
    regions: { cases: "many" },
    traits: { ...controls, regions: "one of" },
  },
  scoped: {
    summary:
      "Memory and barriers allocated in the body live as long as it runs. Outside `on_threads` all program threads enter and leave together.",
    operands: {},
    attributes: {},
    regions: { body: "one" },
    traits: {
      ...controls,
      synchronizes: entryAndExit,
      releases: "block",
      acquires: "block",
      stands: "whole thread",
      regions: "once",
    },
  },
  on_threads: {
    summary: "Only the listed program threads run the body.",
    operands: {},
    attributes: { threads: "integers" },
    regions: { body: "one" },
    traits: { ...divides, stands: "whole thread", regions: "some threads" },
  },
  warps: {
    summary:
      "Each warp of the thread runs the body on its own, with its index; they meet before and after.",
    operands: {},
    attributes: {},
    regions: { body: "one" },
    traits: {
      ...divides,
      synchronizes: entryAndExit,
      stands: "whole thread",
      regions: "each warp",
    },
  },
  yield: {
    summary: "Ends a region with its results.",
    operands: { values: "many" },
    attributes: {},
    regions: {},
    traits: { ...controls, results: { handed: "values" }, elements: "each" },
  },
  debug_print: {
    summary: "Prints values; each `{}` of the format takes the next one.",
    operands: { values: "many", scratch: "optional" },
    attributes: { format: "text" },
    regions: {},
    traits: { ...reports, scratch: "by layout" },
  },
  print_layout: {
    summary: "Has the compiler tell the register layout of a tile, with a name where one is given.",
    operands: { source: "one" },
    attributes: { name: "text?" },
    regions: {},
    traits: reports,
  },
  assert: {
    summary: "Stops with the message where the condition is false anywhere.",
    operands: { condition: "one", scratch: "optional" },
    attributes: { message: "text" },
    regions: {},
    traits: { ...reports, scratch: "by layout" },
  },
  profile_mark: {
    summary:
      "Where a profile scope begins or ends; with a ring, the time is written there, and `site` tells the scope. A profiled kernel opens the ring first and closes it last.",
    operands: { ring: "optional" },
    attributes: { edge: ["open", "begin", "end", "close"], name: "text", site: "integer?" },
    regions: {},
    traits: reports,
  },
  debug_break: {
    summary: "Stops the simulator in the debugger with the named values in sight.",
    operands: { values: "many" },
    attributes: { names: "texts" },
    regions: {},
    traits: reports,
  },
});
