/** Calls about what kernels are given, lists of arrays and promises about numbers, and about values behind a barrier. */
import { f32, i32, iota } from "tilewright";
import { given, host, traced } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { parameter } from "./junk.ts";

export const argumentCalls: readonly BadCall[] = [
  host(
    "byTarget",
    parameter(() => ({ default: 4 }), "object", "bare"),
  ),
  traced("tracedTarget"),
  traced(
    "optimizationBarrier",
    parameter(
      given(({ i }) => i),
      "object",
      "list",
    ),
  ),
  traced(
    "printLayout",
    parameter(given(({ tile: each }) => each)),
    parameter(() => "name", "text", "empty", "undefined"),
  ),
  traced(
    "optimizationBarrier",
    parameter(
      given(({ tile: each }) => each),
      "list",
      "object",
    ),
  ),
  host(
    "tensors",
    parameter(() => 2),
    parameter(() => f32),
    parameter(() => [8], "list", "numbers"),
  ),
  traced(
    "assumeMultipleOf",
    parameter(given(({ tile: each }) => iota(i32, each.shape, { axis: 0 }))),
    parameter(() => 8),
  ),
  traced(
    "assumeBetween",
    parameter(given(({ tile: each }) => iota(i32, each.shape, { axis: 0 }))),
    parameter(() => 0, "zero", "negative", "bigint"),
    parameter(() => 64, "zero", "huge", "bigint"),
  ),
  traced(
    "assumeBelow",
    parameter(given(({ tile: each }) => iota(i32, each.shape, { axis: 0 }))),
    parameter(() => 64, "zero", "negative", "huge"),
  ),
];
