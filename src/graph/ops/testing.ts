/** Ops of StableHLO's tests: the check dialect, and the one that runs several processes. */
import {
  integer,
  integer32,
  list,
  literalForm,
  optional,
  real,
  symbol,
  text,
  withDefault,
} from "./forms.ts";
import { defineGraphOps } from "./schema.ts";

const check = { regions: {}, effect: "always" } as const;
const both = { lhs: "one", rhs: "one" } as const;
const left = { lhs: "one" } as const;

export const testingOps = defineGraphOps({
  "check.expect_eq": {
    ...check,
    summary: "Fails unless all elements are equal.",
    operands: both,
    attributes: {},
    text: "expect",
  },
  "check.expect_eq_const": {
    ...check,
    summary: "Fails unless all elements equal a constant's.",
    operands: left,
    attributes: { value: literalForm },
    text: "expect_const",
  },
  "check.expect_almost_eq": {
    ...check,
    summary: "Fails unless all elements are near each other.",
    operands: both,
    attributes: { tolerance: withDefault(real, 1e-4) },
    text: "expect",
    labels: { tolerance: "tolerance" },
  },
  "check.expect_almost_eq_const": {
    ...check,
    summary: "Fails unless all elements are near a constant's.",
    operands: left,
    attributes: { value: literalForm, tolerance: withDefault(real, 1e-4) },
    text: "expect_const",
  },
  "check.expect_close": {
    ...check,
    summary: "Fails unless the distance in units of the last place lies between two bounds.",
    operands: { actual: "one", expected: "one" },
    attributes: {
      max_ulp_difference: withDefault(integer, 1),
      min_ulp_difference: withDefault(integer, 0),
    },
    text: "expect_types",
    labels: { max_ulp_difference: "max_ulp_difference", min_ulp_difference: "min_ulp_difference" },
  },
  "check.expect_serialized_eq": {
    ...check,
    summary: "Fails unless all elements equal those that a probe wrote to a file.",
    operands: { expected: "one" },
    attributes: { probe_id: text, iteration: withDefault(integer32, 0) },
    text: "expect",
    labels: { probe_id: "probe_id", iter: "iteration" },
  },
  "interpreter.run_parallel": {
    ...check,
    summary: "Runs a grid of programs, rows replicas, columns partitions.",
    operands: { inputs: "many" },
    attributes: { programs: list(list(symbol)), infeed: optional(list(symbol)) },
    text: "generic",
  },
  "interpreter.print": {
    ...check,
    summary: "Prints its operand.",
    operands: { operand: "one" },
    attributes: {},
    text: "expect",
  },
  "interpreter.probe": {
    ...check,
    summary: "Its operand, which is written to a file.",
    operands: { operand: "one" },
    attributes: { probe_id: text },
    text: "short",
    labels: { probe_id: "probe_id" },
  },
});
