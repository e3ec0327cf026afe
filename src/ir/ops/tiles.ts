/** Ops that rearrange tiles or combine elements of a tile. */
import {
  argFunctions,
  reduceFunctions,
  scanFunctions,
} from "../../formats/arithmetic/functions.ts";
import { accumulations, productPrecisions } from "../precisions.ts";
import { computes, computesEach, defineOps } from "./define.ts";

/** The tensor cores read a factor in shared memory for all warps of the thread; a `dot` waits for them. */
const multiplied = <const O extends string>(of: O) =>
  ({ of, mode: "read", actor: "threads", proxy: "async", done: "at once" }) as const;

export const tileOps = defineOps({
  broadcast: {
    summary:
      "Repeats a scalar or tile; input axis i becomes output axis `axes[i]`, of extent 1 or equal.",
    operands: { source: "one" },
    attributes: { shape: "integers", axes: "integers" },
    regions: {},
    traits: computesEach,
  },
  reshape: {
    summary: "The same elements in row-major order under another shape.",
    operands: { source: "one" },
    attributes: { shape: "integers" },
    regions: {},
    traits: { ...computes, results: { same: "source" } },
  },
  transpose: {
    summary: "Permutes axes; output axis i is input axis `permutation[i]`.",
    operands: { source: "one" },
    attributes: { permutation: "integers" },
    regions: {},
    traits: computes,
  },
  layout_cast: {
    summary:
      "The same tile, with the register layout that it lies in stated by its text: of the tile as it is made, which moves nothing, of a copy that is converted to it, or only preferred as a hint.",
    operands: { source: "one" },
    attributes: { layout: "text", hint: "flag?", convert: "flag?" },
    regions: {},
    traits: { ...computesEach, results: { same: "source" } },
  },
  slice: {
    summary: "A static window of a tile.",
    operands: { source: "one" },
    attributes: { starts: "integers", sizes: "integers" },
    regions: {},
    traits: computes,
  },
  concatenate: {
    summary: "Joins tiles along an axis.",
    operands: { parts: "many" },
    attributes: { axis: "integer" },
    regions: {},
    traits: computes,
  },
  reduce: {
    summary: "Combines elements along axes, which disappear.",
    operands: { source: "one", scratch: "optional" },
    attributes: { fn: reduceFunctions, axes: "integers" },
    regions: {},
    traits: { ...computes, scratch: "by layout" },
  },
  scan: {
    summary: "Running combination along an axis, the element itself included.",
    operands: { source: "one", scratch: "optional" },
    attributes: { fn: scanFunctions, axis: "integer", reverse: "flag" },
    regions: {},
    traits: { ...computes, scratch: "by layout" },
  },
  arg_reduce: {
    summary:
      "The i32 index of the first least or greatest element along an axis, which disappears.",
    operands: { source: "one", scratch: "optional" },
    attributes: { fn: argFunctions, axis: "integer" },
    regions: {},
    traits: { ...computes, scratch: "by layout" },
  },
  sort: {
    summary:
      "Sorts keys along an axis, stably, and moves the payloads with them; with `positions`, a last result says where each key was. With `first`, a power of two, the results are the first so many of these, over and over along the axis.",
    operands: { keys: "one", payloads: "many", scratch: "optional" },
    attributes: { axis: "integer", descending: "flag", first: "integer?", positions: "flag?" },
    regions: {},
    traits: { ...computes, scratch: "by layout", unrolls: "never" },
  },
  scaled_dot: {
    summary:
      "Matrix product [m, k] by [k, n] in f32, of narrow floats each `block` of which along k counts times its scale, [m, k / block] and [n, k / block], added to the accumulator where one is given: by instructions of the target that take scales. Placed, it is made by a grid of `warps`.",
    operands: {
      left: "one",
      right: "one",
      leftScales: "one",
      rightScales: "one",
      accumulator: "optional",
    },
    attributes: { block: "integer", warps: "integers?" },
    regions: {},
    traits: { ...computes, unrolls: "never" },
  },
  dot: {
    summary:
      "Matrix product [m, k] by [k, n], added to the accumulator where one is given. `accumulation` matters for FP8 summed in f32, and is promoted where it is not told; `unscaled` tells why it stands for a product with scales that the target could make. Placed, it is made by `instruction`, for mma.sync by a grid of `warps`; wgmma reads operands that are windows of smem by itself.",
    operands: { left: "one", right: "one", accumulator: "optional" },
    attributes: {
      dtype: "dtype",
      precision: productPrecisions,
      accumulation: { optional: accumulations },
      unscaled: "text?",
      instruction: "text?",
      warps: "integers?",
    },
    regions: {},
    traits: {
      ...computes,
      accesses: {
        by: { wgmma: [multiplied("left"), multiplied("right")], "mma.sync": [], fma: [] },
      },
      unrolls: "never",
    },
  },
});
