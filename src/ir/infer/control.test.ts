import { describe, expect, test } from "vitest";
import {
  barrier,
  infer,
  ref,
  region,
  regionOf,
  scalar,
  testMistakes,
  tile,
} from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import { bf16, bool, f32, i32, i64, u32 } from "../../formats/dtype.ts";
import { controlCodes } from "../../support/diagnostic-codes/ir/control.ts";
import type { Region, Value } from "../node.ts";
import { barrierType, refType, scalarType, tileType } from "../types.ts";
import type { Type } from "../types.ts";

const index = scalarType(i32);
const sum = tileType(f32, [64]);
const narrow = tileType(bf16, [64]);
const buffer = refType("smem", f32, [64]);

const zero = scalar(i32);
const flag = scalar(bool);
const empty = regionOf([], []);

function loop(initial: readonly Value[], body: Region): unknown {
  return infer("loop", { lower: zero, upper: zero, step: zero, initial }, {}, { body });
}

function branch(then: readonly Type[], otherwise: readonly Type[]): unknown {
  return infer(
    "if",
    { condition: flag },
    {},
    { then: regionOf([], then), otherwise: regionOf([], otherwise) },
  );
}

const mistakes: readonly Mistake[] = [
  {
    name: "loop to a float",
    code: "TW2090",
    make: () =>
      infer(
        "loop",
        { lower: zero, upper: scalar(f32), step: zero, initial: [] },
        {},
        { body: regionOf([index], []) },
      ),
    message: "bounds of a loop must be scalars of one type, i32 or i64",
    expected: "i32",
    found: "end of f32",
  },
  {
    name: "loop with a step of another type",
    code: "TW2090",
    make: () =>
      infer(
        "loop",
        { lower: scalar(i64), upper: scalar(i64), step: zero, initial: [] },
        {},
        { body: regionOf([scalarType(i64)], []) },
      ),
    message: "bounds of a loop must be scalars of one type, i32 or i64",
    expected: "i64",
    found: "step of i32",
  },
  {
    name: "loop to a tile",
    code: "TW2002",
    make: () =>
      infer(
        "loop",
        { lower: zero, upper: tile(i32, 4), step: zero, initial: [] },
        {},
        { body: regionOf([index], []) },
      ),
    message: "the end of loop must be a scalar",
  },
  {
    name: "body without the index",
    code: "TW2001",
    make: () => loop([], empty),
    message: "region body of loop takes other parameters than it is given",
    expected: "(i32)",
    found: "()",
  },
  {
    name: "carry that changes its type",
    code: "TW2092",
    make: () => loop([zero, tile(f32, 64)], regionOf([index, index, sum], [index, narrow])),
    message: "carry 1 of loop changes its type",
    expected: "tile<f32, [64]>, as it begins",
    found: "tile<bf16, [64]>",
  },
  {
    name: "carry of while that changes its type",
    code: "TW2092",
    make: () =>
      infer(
        "while",
        { initial: [zero] },
        {},
        { condition: regionOf([index], [scalarType(bool)]), body: regionOf([index], [sum]) },
      ),
    message: "carry 0 of whileLoop changes its type",
  },
  {
    name: "carry that is dropped",
    code: "TW2093",
    make: () => loop([tile(f32, 64)], regionOf([index, sum], [])),
    message: "the body of loop yields another number of values than it carries",
    expected: "1 value",
    found: "0 values",
  },
  {
    name: "condition of while that yields a number",
    code: "TW2094",
    make: () =>
      infer(
        "while",
        { initial: [zero] },
        {},
        { condition: regionOf([index], [index]), body: regionOf([index], [index]) },
      ),
    message: "the condition of while must yield one bool scalar",
    found: "(i32)",
  },
  {
    name: "loop that breaks by a number",
    code: "TW2094",
    make: () =>
      infer(
        "loop",
        { lower: zero, upper: zero, step: zero, initial: [] },
        { breaks: true },
        { body: regionOf([index], [index]) },
      ),
    message: "the body of loop must yield last whether the loop ends",
    expected: "(…, bool)",
    found: "(i32)",
  },
  {
    name: "loop that breaks and drops its carry",
    code: "TW2093",
    make: () =>
      infer(
        "loop",
        { lower: zero, upper: zero, step: zero, initial: [tile(f32, 64)] },
        { breaks: true },
        { body: regionOf([index, sum], [scalarType(bool)]) },
      ),
    message: "the body of loop yields another number of values than it carries",
    found: "0 values",
  },
  {
    name: "branches of different types",
    code: "TW2095",
    make: () => branch([sum], [narrow]),
    message: "branches of when yield different types",
    expected: "(tile<f32, [64]>), as the first branch",
    found: "(tile<bf16, [64]>) from branch 1",
  },
  {
    name: "branch that yields nothing",
    code: "TW2095",
    make: () => branch([sum], []),
    message: "branches of when yield different types",
  },
  {
    name: "cases of different types",
    code: "TW2095",
    make: () =>
      infer("switch", { index: zero }, {}, { cases: [empty, empty, regionOf([], [sum])] }),
    message: "branches of switchCase yield different types",
    found: "(tile<f32, [64]>) from branch 2",
  },
  {
    name: "branch by a number",
    code: "TW2006",
    make: () => infer("if", { condition: zero }, {}, { then: empty, otherwise: empty }),
    message: "the condition of when must be bool",
  },
  {
    name: "branch by a tile",
    code: "TW2002",
    make: () => infer("if", { condition: tile(bool, 4) }, {}, { then: empty, otherwise: empty }),
    message: "the condition of when must be a scalar",
  },
  {
    name: "switch without cases",
    code: "TW2097",
    make: () => infer("switch", { index: zero }, {}, { cases: [] }),
    message: "switchCase has no cases",
  },
  {
    name: "memory that leaks out of its scope",
    code: "TW2098",
    make: () => infer("scoped", {}, {}, { body: regionOf([], [buffer]) }),
    message: "ref<smem, f32, [64]> cannot be a result of scoped",
    remedy: "load the contents",
  },
  {
    name: "barrier that leaks out of its scope",
    code: "TW2098",
    make: () => infer("scoped", {}, {}, { body: regionOf([], [barrierType(1, 1)]) }),
    message: "barrier<1, arrivals=1> cannot be a result of scoped",
  },
  {
    name: "carried memory",
    code: "TW2098",
    make: () => loop([ref("smem", f32, 64)], regionOf([index, buffer], [buffer])),
    message: "ref<smem, f32, [64]> cannot be a result of loop",
  },
  {
    name: "memory chosen by a branch",
    code: "TW2098",
    make: () => branch([buffer], [buffer]),
    message: "ref<smem, f32, [64]> cannot be a result of when",
  },
  {
    name: "program thread that does not exist",
    code: "TW2099",
    make: () => infer("on_threads", {}, { threads: [0, 2] }, { body: empty }),
    message: "on_threads names program threads [0, 2] of 2",
    expected: "different numbers from 0 to 1, at least one",
  },
  {
    name: "program thread named twice",
    code: "TW2099",
    make: () => infer("on_threads", {}, { threads: [1, 1] }, { body: empty }),
    message: "on_threads names program threads [1, 1] of 2",
  },
  {
    name: "no program thread",
    code: "TW2099",
    make: () => infer("on_threads", {}, { threads: [] }, { body: empty }),
    message: "on_threads names program threads [] of 2",
  },
  {
    name: "result of some threads",
    code: "TW2100",
    make: () => infer("on_threads", {}, { threads: [0] }, { body: regionOf([], [sum]) }),
    message: "the body of a thread's code cannot yield values",
    found: "(tile<f32, [64]>)",
  },
  {
    name: "result of warps",
    code: "TW2100",
    make: () => infer("warps", {}, {}, { body: regionOf([index], [index]) }),
    message: "the body of warps cannot yield values",
  },
  {
    name: "warps without their index",
    code: "TW2001",
    make: () => infer("warps", {}, {}, { body: empty }),
    message: "region body of warps takes other parameters than it is given",
  },
  {
    name: "format that takes fewer values",
    code: "TW2101",
    make: () => infer("debug_print", { values: [zero, zero] }, { format: "i = {}" }),
    message: "the format takes another number of values than it is given",
    expected: '1 value for "i = {}"',
    found: "2 values",
  },
  {
    name: "print of a barrier",
    code: "TW2002",
    make: () => infer("debug_print", { values: [barrier()] }, { format: "{}" }),
    message: "a value of debugPrint must be a tile or a scalar",
  },
  {
    name: "profile that is written into no ring",
    code: "TW2103",
    make: () => infer("profile_mark", { ring: ref("gmem", f32, 4) }, { edge: "open", name: "k" }),
    message: "a profile's rings are an array of their own form",
    expected: "ref<gmem, u32, [rings, slots, 4]>",
    found: "ref<gmem, f32, [4]>",
  },
  {
    name: "profile of a scope without a number",
    code: "TW2103",
    make: () =>
      infer("profile_mark", { ring: ref("gmem", u32, 1, 19, 4) }, { edge: "begin", name: "load" }),
    message: "marks of scopes in a ring have a number, and no others",
    expected: "a site",
    found: "none",
  },
  {
    name: "breakpoint with a name missing",
    code: "TW2102",
    make: () => infer("debug_break", { values: [zero] }, { names: [] }),
    message: "debug_break needs one name for each value",
    expected: "1 names",
    found: "0 names",
  },
];

describe("control", () => testMistakes(mistakes));

test("a region without its yield is an error of whoever built it, not a diagnostic", () => {
  expect(() => loop([], region([zero], []))).toThrow("a region ends with yield");
});

test("every code of control has a test", () => {
  const tested = new Set<string>(mistakes.map(({ code }) => code));
  expect(Object.keys(controlCodes).filter((code) => !tested.has(code))).toEqual([]);
});
