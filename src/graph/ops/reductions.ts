/** Ops that combine elements by a region: reductions, windows, sorting. */
import { flag, integer, integers, optional, rows, withDefault } from "./forms.ts";
import { defineGraphOps } from "./schema.ts";

export const reductionOps = defineGraphOps({
  "stablehlo.reduce": {
    summary: "Combines the elements along axes.",
    operands: { inputs: "many", init_values: "many" },
    attributes: { dimensions: integers },
    regions: { body: "one" },
    effect: "regions",
    text: "reduce",
  },
  "stablehlo.reduce_window": {
    summary: "Combines the elements of each window.",
    operands: { inputs: "many", init_values: "many" },
    attributes: {
      window_dimensions: integers,
      window_strides: optional(integers),
      base_dilations: optional(integers),
      window_dilations: optional(integers),
      padding: optional(rows),
    },
    regions: { body: "one" },
    effect: "regions",
    text: "generic",
  },
  "stablehlo.select_and_scatter": {
    summary: "Adds each source element at the place that its window selects.",
    operands: { operand: "one", source: "one", init_value: "one" },
    attributes: {
      window_dimensions: optional(integers),
      window_strides: optional(integers),
      padding: optional(rows),
    },
    regions: { select: "one", scatter: "one" },
    effect: "regions",
    text: "generic",
  },
  "stablehlo.sort": {
    summary: "Sorts along an axis by a comparator; all operands move together.",
    operands: { inputs: "many" },
    attributes: { dimension: withDefault(integer, -1), is_stable: withDefault(flag, false) },
    regions: { comparator: "one" },
    effect: "regions",
    text: "generic",
  },
  "stablehlo.map": {
    summary: "Applies a region to each element.",
    operands: { inputs: "many" },
    attributes: { dimensions: integers },
    regions: { computation: "one" },
    effect: "regions",
    text: "generic",
  },
});
