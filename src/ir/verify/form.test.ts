import { describe, expect, test } from "vitest";
import { here, op, region, scalar, testMistakes } from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import { elsewhere, empty, header, kernelOf, stop, there } from "../../../test/ir-kernels.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { verifierCodes } from "../../support/diagnostic-codes/ir/verifier.ts";
import type { AnyOp, Region, Value } from "../node.ts";
import type { OpKind } from "../ops.ts";
import { verifyKernel } from "./index.ts";

/** Verifies a kernel of hand-made ops. */
function verifyOps(...ops: readonly AnyOp[]): void {
  verifyKernel(kernelOf(region([], ops)));
}

const twice = scalar(i32);
const stray = scalar(i32);

const mistakes: readonly Mistake[] = [
  {
    name: "operation that the table does not have",
    code: "TW2001",
    make: () => verifyOps(op("frobnicate" as "block_sync", {}, {}), stop),
    message: "there is no operation frobnicate",
  },
  {
    name: "operand that the operation does not have",
    code: "TW2001",
    make: () => verifyOps(op("block_sync", { source: stray } as object, {}), stop),
    message: "block_sync has no operand source",
    expected: "none",
  },
  {
    name: "operand that is missing",
    code: "TW2001",
    make: () => verifyOps(op("unary", {} as { source: Value }, { fn: "neg" }), stop),
    message: "operand source of unary is missing or not one",
    found: "nothing",
  },
  {
    name: "one operand where there are many",
    code: "TW2001",
    make: () =>
      verifyOps(op("debug_print", { values: stray as unknown as Value[] }, { format: "{}" }), stop),
    message: "operand values of debug_print is missing or not many",
    found: "one",
  },
  {
    name: "region that is missing",
    code: "TW2001",
    make: () => verifyOps(op("scoped", {}, {}, {} as { body: Region }), stop),
    message: "region body of scoped is missing or not one",
  },
  {
    name: "region that the operation does not have",
    code: "TW2001",
    make: () => verifyOps(op("block_sync", {}, {}, { body: empty }), stop),
    message: "block_sync has no region body",
  },
  {
    name: "attribute that the operation does not have",
    code: "TW2001",
    make: () => verifyOps(op("block_sync", {}, { axis: "i" } as object), stop),
    message: "block_sync has no attribute axis",
  },
  {
    name: "word that the attribute does not know",
    code: "TW2001",
    make: () => verifyOps(op("proxy_fence", {}, { space: "peer" as "smem" }), stop),
    message: "attribute space of proxy_fence is not one of smem, gmem",
    found: 'the text "peer"',
  },
  ...(
    [
      ["wait_group", { pending: 1.5, read: false }, "pending", "integer"],
      ["wait_group", { pending: 1, read: 0 }, "read", "flag"],
      ["block_index", { axis: 3 }, "axis", "text"],
      ["iota", { dtype: i32, shape: 4, axis: 0 }, "shape", "integers"],
      ["alloc", { space: "gmem", dtype: f32, shape: ["n"] }, "shape", "sizes"],
      ["alloc", { space: "gmem", dtype: { ...f32 }, shape: [4] }, "dtype", "dtype"],
      ["constant", { value: "1", dtype: f32, shape: [] }, "value", "literal"],
      ["debug_break", { names: [1] }, "names", "texts"],
    ] as const
  ).map(([kind, attributes, name, form]): Mistake => ({
    name: `attribute of ${kind} that is not of form ${form}`,
    code: "TW2001",
    make: () => {
      const operands = kind === "debug_break" ? { values: [] } : {};
      verifyOps(op(kind as OpKind, operands as never, attributes as never), stop);
    },
    message: `attribute ${name} of ${kind} is not ${form}`,
    expected: form,
  })),
  {
    name: "op that is not frozen",
    code: "TW2201",
    make: () => verifyOps({ ...op("block_sync", {}, {}) }, stop),
    message: "block_sync is not frozen",
  },
  {
    name: "list of operands that is not frozen",
    code: "TW2201",
    make: () => {
      const loose = { ...stop, operands: Object.freeze({ values: [] }) };
      verifyOps(Object.freeze(loose) as AnyOp);
    },
    message: "yield is not frozen",
  },
  {
    name: "region that is not frozen",
    code: "TW2201",
    make: () => verifyKernel(kernelOf({ ...empty })),
    message: "a region is not frozen",
    at: header,
  },
  {
    name: "region without a yield",
    code: "TW2202",
    make: () => verifyOps(op("scoped", {}, {}, { body: region([], []) }, [], there), stop),
    message: "a region ends without a yield",
    at: there,
  },
  {
    name: "op after the yield",
    code: "TW2202",
    make: () => verifyOps(op("yield", { values: [] }, {}, {}, [], there), stop),
    message: "a yield stands before the end of its region",
    at: there,
  },
  {
    name: "value defined twice",
    code: "TW2203",
    make: () =>
      verifyOps(
        op("thread_index", {}, {}, {}, [twice]),
        op("thread_index", {}, {}, {}, [twice], there),
        stop,
      ),
    message: `%${twice.id} is defined twice`,
    at: there,
    notes: [["first defined here", here]],
  },
  {
    name: "use before the definition",
    code: "TW2204",
    make: () =>
      verifyOps(
        op("unary", { source: stray }, { fn: "neg" }, {}, [scalar(i32)]),
        op("thread_index", {}, {}, {}, [stray], there),
        stop,
      ),
    message: `unary uses %${stray.id}: i32 where it is not visible`,
    found: "a value defined at kernel.ts:20:5",
    notes: [["defined here", there]],
  },
  {
    name: "value that no operation defines",
    code: "TW2204",
    make: () => verifyOps(op("unary", { source: stray }, { fn: "neg" }, {}, [scalar(i32)]), stop),
    message: `unary uses %${stray.id}: i32 where it is not visible`,
    found: "a value of no operation of this kernel",
  },
  {
    name: "value that leaked out of its region",
    code: "TW2204",
    make: () => {
      const inner = region([], [op("thread_index", {}, {}, {}, [stray], there), stop]);
      verifyOps(
        op("scoped", {}, {}, { body: inner }),
        op("unary", { source: stray }, { fn: "neg" }, {}, [scalar(i32)], elsewhere),
        stop,
      );
    },
    message: `unary uses %${stray.id}: i32 where it is not visible`,
    at: elsewhere,
    notes: [["defined here", there]],
  },
  {
    name: "result of another type",
    code: "TW2205",
    make: () => verifyOps(op("thread_index", {}, {}, {}, [scalar(f32)]), stop),
    message: "results of thread_index have other types than inference gives",
    expected: "(i32)",
    found: "(f32)",
  },
  {
    name: "result too many",
    code: "TW2205",
    make: () => verifyOps(op("block_sync", {}, {}, {}, [scalar(i32)]), stop),
    message: "results of block_sync have other types than inference gives",
    expected: "()",
  },
  {
    name: "operand that inference rejects",
    code: "TW2005",
    make: () => {
      const index = scalar(i32);
      verifyOps(
        op("thread_index", {}, {}, {}, [index]),
        op("unary", { source: index }, { fn: "exp" }, {}, [scalar(i32)], there),
        stop,
      );
    },
    message: "exp is not defined for i32",
    at: there,
  },
];

describe("form, visibility and types", () => testMistakes(mistakes));

test("every code of form, visibility and types has a test", () => {
  const tested = new Set<string>(mistakes.map(({ code }) => code));
  const registered = Object.keys(verifierCodes).filter((code) => /^TW220[1-5]$/.test(code));
  expect(registered.filter((code) => !tested.has(code))).toEqual([]);
});
