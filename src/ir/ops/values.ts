/** Ops that make values and compute on them element by element. */
import {
  binaryFunctions,
  classifyFunctions,
  comparePredicates,
  unaryFunctions,
} from "../../formats/arithmetic/functions.ts";
import { defineOps } from "./define.ts";

export const valueOps = defineOps({
  constant: {
    summary: "A scalar, or a tile with the same value everywhere.",
    operands: {},
    attributes: { value: "literal", dtype: "dtype", shape: "integers" },
    regions: {},
    effect: "none",
  },
  block_index: {
    summary: "The block's index along a grid axis.",
    operands: {},
    attributes: { axis: "text" },
    regions: {},
    effect: "none",
  },
  grid_size: {
    summary: "The number of blocks along a grid axis.",
    operands: {},
    attributes: { axis: "text" },
    regions: {},
    effect: "none",
  },
  cluster_rank: {
    summary: "The block's position in its cluster along a grid axis.",
    operands: {},
    attributes: { axis: "text" },
    regions: {},
    effect: "none",
  },
  thread_index: {
    summary: "The index of the program thread in its block.",
    operands: {},
    attributes: {},
    regions: {},
    effect: "none",
  },
  dimension_size: {
    summary: "The value of a named dimension at this launch.",
    operands: {},
    attributes: { name: "text" },
    regions: {},
    effect: "none",
  },
  iota: {
    summary: "A tile whose elements count along one axis.",
    operands: {},
    attributes: { dtype: "dtype", shape: "integers", axis: "integer" },
    regions: {},
    effect: "none",
  },
  unary: {
    summary:
      "A function of one number, element by element; with `approximate`, by the GPU's own approximation.",
    operands: { source: "one" },
    attributes: { fn: unaryFunctions, approximate: "flag?" },
    regions: {},
    effect: "none",
  },
  classify: {
    summary: "A test of one float, element by element, giving bool.",
    operands: { source: "one" },
    attributes: { fn: classifyFunctions },
    regions: {},
    effect: "none",
  },
  binary: {
    summary:
      "A function of two numbers of one type, element by element; with `approximate`, by the GPU's own approximation.",
    operands: { left: "one", right: "one" },
    attributes: { fn: binaryFunctions, approximate: "flag?" },
    regions: {},
    effect: "none",
  },
  compare: {
    summary: "A comparison of two numbers of one type, element by element, giving bool.",
    operands: { left: "one", right: "one" },
    attributes: { predicate: comparePredicates },
    regions: {},
    effect: "none",
  },
  fma: {
    summary: "a * b + c with one rounding.",
    operands: { a: "one", b: "one", c: "one" },
    attributes: {},
    regions: {},
    effect: "none",
  },
  select: {
    summary: "Chooses between two values by a bool, element by element.",
    operands: { condition: "one", ifTrue: "one", ifFalse: "one" },
    attributes: {},
    regions: {},
    effect: "none",
  },
  cast: {
    summary: "Converts to another number format by the conversion table.",
    operands: { source: "one" },
    attributes: { dtype: "dtype", overflow: ["saturate", "nan"] },
    regions: {},
    effect: "none",
  },
  bitcast: {
    summary: "The same bits read as another format of the same width.",
    operands: { source: "one" },
    attributes: { dtype: "dtype" },
    regions: {},
    effect: "none",
  },
});
