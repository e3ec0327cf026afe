/** All codes of 16 bits and all pairs of 8 bits, where sequences have the most cases. */
import { expect, test } from "vitest";
import { allElementwise, isExact } from "../../../../test/elementwise-probes.ts";
import type { Elementwise } from "../../../../test/elementwise-probes.ts";
import { findDifferences, probesOf } from "../../../../test/emulated-differences.ts";
import { takesAll } from "../../../../test/support/sample.ts";
import { defaultTarget, targets } from "../../../targets/target.ts";

const all = 2 ** 16;

function select(accepts: (computes: Elementwise) => boolean): readonly Elementwise[] {
  return allElementwise().filter((computes) => isExact(computes) && accepts(computes));
}

test.each(["f16", "bf16"])("functions of every %s", (name) => {
  const list = select((computes) => computes.kind === "unary" && computes.dtype.name === name);
  expect(findDifferences(defaultTarget, probesOf(list, "words"), all)).toEqual([]);
});

test("quotients, remainders and shifts of every pair of i8 and u8", () => {
  const tried: ReadonlySet<string> = new Set(["div", "rem", "shl", "shr"]);
  const list = select(
    (computes) =>
      computes.kind === "binary" &&
      ["i8", "u8"].includes(computes.dtype.name) &&
      tried.has(computes.fn),
  );
  expect(list).toHaveLength(8);
  expect(findDifferences(defaultTarget, probesOf(list, "words"), all)).toEqual([]);
});

// Where an instruction does it, some codes tell as much.
const some = takesAll ? all : all / 8;

test("pairs of powers of two", () => {
  const list = select(
    (computes) =>
      computes.kind !== "select" &&
      computes.kind !== "cast" &&
      computes.dtype.name === "f8e8m0fnu" &&
      !(computes.kind === "unary" && computes.fn !== "sqrt"),
  );
  // Six functions of two, a root, six comparisons and two tests.
  expect(list).toHaveLength(15);
  expect(findDifferences(defaultTarget, probesOf(list, "words"), some)).toEqual([]);
  expect(findDifferences(defaultTarget, probesOf(list, "element"), some / 16)).toEqual([]);
});

test.each([
  [targets.sm_80, all],
  [targets.sm_90a, some],
])("f16 and bf16 as narrower floats on $0.name", (target, size) => {
  const list = select(
    (computes) => computes.kind === "cast" && computes.from.bits === 16 && computes.to.bits < 16,
  ).filter((computes) => computes.kind === "cast" && computes.from.kind === "float");
  expect(findDifferences(target, probesOf(list, "words"), size)).toEqual([]);
});
