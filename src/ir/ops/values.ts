/** Ops that make values and compute on them element by element. */
import {
  binaryFunctions,
  classifyFunctions,
  comparePredicates,
  directedRoundings,
  unaryFunctions,
} from "../../formats/arithmetic/functions.ts";
import { overflows, roundings } from "../../formats/floats.ts";
import { acts, computes, computesEach, defineOps, lanes } from "./define.ts";

/** How a result is rounded, and whether subnormal numbers count as zeros. */
const mannered = { rounding: { optional: directedRoundings }, flushToZero: "flag?" } as const;

export const valueOps = defineOps({
  constant: {
    summary: "A scalar, or a tile with the same value everywhere.",
    operands: {},
    attributes: { value: "literal", dtype: "dtype", shape: "integers" },
    regions: {},
    traits: { ...computesEach, results: "fixed" },
  },
  block_index: {
    summary: "The block's index along a grid axis.",
    operands: {},
    attributes: { axis: "text" },
    regions: {},
    traits: computes,
  },
  grid_size: {
    summary: "The number of blocks along a grid axis.",
    operands: {},
    attributes: { axis: "text" },
    regions: {},
    traits: computes,
  },
  cluster_rank: {
    summary: "The block's position in its cluster along a grid axis.",
    operands: {},
    attributes: { axis: "text" },
    regions: {},
    traits: computes,
  },
  thread_index: {
    summary: "The index of the program thread in its block.",
    operands: {},
    attributes: {},
    regions: {},
    traits: computes,
  },
  size: {
    summary: "A size at this launch, which the host computes exactly; it is below 2³¹.",
    operands: {},
    attributes: { of: "size" },
    regions: {},
    traits: computesEach,
  },
  iota: {
    summary: "A tile whose elements count along one axis.",
    operands: {},
    attributes: { dtype: "dtype", shape: "integers", axis: "integer" },
    regions: {},
    traits: { ...computes, results: "fixed" },
  },
  unary: {
    summary:
      "A function of one number, element by element; with `approximate`, by the GPU's own approximation. `rounding` and `flushToZero` say how roots are rounded.",
    operands: { source: "one" },
    attributes: { fn: unaryFunctions, approximate: "flag?", ...mannered },
    regions: {},
    traits: computesEach,
  },
  classify: {
    summary: "A test of one float, element by element, giving bool.",
    operands: { source: "one" },
    attributes: { fn: classifyFunctions },
    regions: {},
    traits: computesEach,
  },
  binary: {
    summary:
      "A function of two numbers of one type, element by element; with `approximate`, by the GPU's own approximation. `rounding` is another one than to the nearest number; with `flushToZero` subnormal operands and results are zeros. With `oftenOne`, of products of f32 alone, warps whose right factors are all one leave them out.",
    operands: { left: "one", right: "one" },
    attributes: { fn: binaryFunctions, approximate: "flag?", ...mannered, oftenOne: "flag?" },
    regions: {},
    traits: computesEach,
  },
  compare: {
    summary: "A comparison of two numbers of one type, element by element, giving bool.",
    operands: { left: "one", right: "one" },
    attributes: { predicate: comparePredicates },
    regions: {},
    traits: computesEach,
  },
  fma: {
    summary: "a * b + c with one rounding, which `rounding` chooses; `flushToZero` as of `binary`.",
    operands: { a: "one", b: "one", c: "one" },
    attributes: mannered,
    regions: {},
    traits: computesEach,
  },
  assume: {
    summary:
      "The same integers, of which the program promises that they are multiples of a number, not below `least` nor above `greatest`, or below a size.",
    operands: { source: "one" },
    attributes: { multipleOf: "integer?", least: "literal?", greatest: "literal?", below: "size?" },
    regions: {},
    traits: { ...computesEach, may: "drop" },
  },
  select: {
    summary: "Chooses between two values by a bool, element by element.",
    operands: { condition: "one", ifTrue: "one", ifFalse: "one" },
    attributes: {},
    regions: {},
    traits: computesEach,
  },
  cast: {
    summary:
      "Converts to another number format by the conversion table, but for what `overflow` and `rounding` choose.",
    operands: { source: "one" },
    attributes: {
      dtype: "dtype",
      overflow: { optional: overflows },
      rounding: { optional: roundings },
    },
    regions: {},
    traits: computesEach,
  },
  inline_ptx: {
    summary:
      "Instructions of PTX as the user wrote them: once for each element of operands of one shape, or with `layouts` once for each lane, on its registers of every tile. `types` are those of the results, `meaning` what they are, which the simulator takes; lowered, it has none.",
    operands: { sources: "many", meaning: "many" },
    attributes: { code: "text", types: "texts", layouts: "texts?" },
    regions: {},
    traits: { ...computes, elements: { eachWithout: "layouts" } },
  },
  inline_ptx_memory: {
    summary:
      "Instructions of PTX as the user wrote them, which access memory: once for each lane, on its registers of every tile. `reads` and `writes` are the windows that they touch, by addresses among their sources; `meaning` what their results are, which the simulator takes.",
    operands: { sources: "many", reads: "many", writes: "many", meaning: "many" },
    attributes: { code: "text", types: "texts", layouts: "texts" },
    regions: {},
    traits: {
      ...acts,
      accesses: [lanes("read", "reads"), lanes("write", "writes")],
      results: "new",
    },
  },
  is_simulated: {
    summary:
      "Whether the simulator runs the kernel; what it does there in place of inline PTX is left out elsewhere.",
    operands: {},
    attributes: {},
    regions: {},
    traits: { ...computes, may: "drop" },
  },
  optimization_barrier: {
    summary:
      "The same values, of which passes know nothing: what computes with them is neither folded, merged nor moved across.",
    operands: { values: "many" },
    attributes: {},
    regions: {},
    traits: { ...computesEach, may: "drop" },
  },
  bitcast_width: {
    summary:
      "The same bytes as numbers of another width, little-endian, along the last axis, which gets longer or shorter by as much.",
    operands: { source: "one" },
    attributes: { dtype: "dtype" },
    regions: {},
    traits: { ...computes, results: { same: "source" } },
  },
  bitcast: {
    summary: "The same bits read as another format of the same width.",
    operands: { source: "one" },
    attributes: { dtype: "dtype" },
    regions: {},
    traits: { ...computesEach, results: { same: "source" } },
  },
});
