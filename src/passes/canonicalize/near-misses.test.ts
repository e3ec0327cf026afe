/** Cases close to those that a rule is about, where a rule that is a little wrong changes the meaning. */
import { describe, expect, test } from "vitest";
import { bodyText, kernelWith } from "../../../test/support/ir-text.ts";
import { deadCode } from "../dead-code.ts";
import { canonicalize } from "./index.ts";

function canonical(...lines: readonly string[]): string {
  const kernel = kernelWith([...lines, 'debug_print %r {format = "{}"}'].join("\n"));
  return bodyText(deadCode(canonicalize(kernel)));
}

const constant = (value: number, dtype = "i32"): string =>
  `constant {value = ${value}, dtype = ${dtype}, shape = []} : ${dtype}`;

describe("comparisons", () => {
  test.each([
    ["eq", "ne"],
    ["ne", "eq"],
    ["lt", "ge"],
    ["le", "gt"],
    ["gt", "le"],
    ["ge", "lt"],
  ])("not %s is %s", (predicate, opposite) => {
    const text = canonical(
      `%1 = ${constant(7)}`,
      `%2 = compare %b, %1 {predicate = ${predicate}} : bool`,
      "%r = unary %2 {fn = not} : bool",
    );
    expect(text).toContain(`{predicate = ${opposite}}`);
    expect(text).not.toContain("not");
  });

  test.each([
    ["eq", "eq"],
    ["ne", "ne"],
    ["lt", "gt"],
    ["le", "ge"],
    ["gt", "lt"],
    ["ge", "le"],
  ])("7 %s b is b %s 7", (predicate, mirrored) => {
    const text = canonical(
      `%1 = ${constant(7)}`,
      `%r = compare %1, %b {predicate = ${predicate}} : bool`,
    );
    expect(text).toMatch(new RegExp(`compare %b, %\\d+ {predicate = ${mirrored}}`));
  });
});

describe("sums and products that are rounded otherwise", () => {
  test.each([
    ["mul", 1, "flushToZero = true"],
    ["add", "-0", "rounding = down"],
    ["sub", 0, "rounding = down"],
    ["div", 1, "flushToZero = true"],
  ])("%s of %s stays with %s", (fn, value, manner) => {
    const text = canonical(
      `%1 = constant {value = ${value}, dtype = f32, shape = []} : f32`,
      `%r = binary %a, %1 {fn = ${fn}, ${manner}} : f32`,
    );
    expect(text).toContain(`{fn = ${fn}, ${manner}}`);
  });

  test("a negation is subtracted in the same manner", () => {
    const text = canonical(
      "%1 = unary %a {fn = neg} : f32",
      "%r = binary %a, %1 {fn = add, rounding = up} : f32",
    );
    expect(text).toContain("binary %a, %a {fn = sub, rounding = up}");
  });
});

describe("branches", () => {
  test("all cases of a switch must agree, not two of three", () => {
    const text = canonical(
      "%r = switch %b cases { yield %a } cases { yield %a } cases { %1 = unary %a {fn = neg} : f32 yield %1 } : f32",
    );
    expect(text).toContain("switch");
  });

  test.each([
    [-1, "neg"],
    [0, "neg"],
    [1, "exp"],
    [2, "sin"],
    [9, "sin"],
  ])("switch on %i takes the nearest case", (index, fn) => {
    const cases = ["neg", "exp", "sin"].map(
      (each) => `cases { %${each} = unary %a {fn = ${each}} : f32 yield %${each} }`,
    );
    const text = canonical(`%1 = ${constant(index)}`, `%r = switch %1 ${cases.join(" ")} : f32`);
    expect(text).toContain(`{fn = ${fn}}`);
    expect(text).not.toContain("switch");
  });
});

describe("loops", () => {
  test("a single trip that yields its index gives the lower bound", () => {
    const text = canonical(
      `%1 = ${constant(5)}`,
      `%2 = ${constant(6)}`,
      `%3 = ${constant(1)}`,
      "%r = loop %1, %2, %3 initial(%b) body(%i: i32, %v: i32) { yield %i } : i32",
    );
    expect(text).toMatch(/^(%\d+) = constant {value = 5, .*\ndebug_print \1 /);
  });

  test("a while that loses its first carry keeps its condition", () => {
    const text = canonical(
      `%1 = ${constant(1)}`,
      `%s, %r = while %a, %b condition(%p: f32, %q: i32) {
        %2 = compare %q, %1 {predicate = lt} : bool
        yield %2
      } body(%t: f32, %u: i32) {
        %3 = unary %t {fn = neg} : f32
        %4 = binary %u, %1 {fn = add} : i32
        yield %3, %4
      } : f32, i32`,
    );
    expect(text).toContain("while %b condition");
    expect(text).not.toContain("neg");
  });
});

describe("masks", () => {
  test.each([
    ["u8", 255, false],
    ["u8", 127, true],
    ["i8", -1, false],
    ["i8", 127, true],
  ])("and of %s with %i", (dtype, mask, stays) => {
    const text = canonical(
      `%1 = cast %b {dtype = ${dtype}} : ${dtype}`,
      `%2 = ${constant(mask, dtype)}`,
      `%r = binary %1, %2 {fn = and} : ${dtype}`,
    );
    expect(text.includes("fn = and")).toBe(stays);
  });
});

describe("windows", () => {
  test.each([
    [0, false],
    [1, true],
  ])("of the whole extent from %i", (offset, stays) => {
    const text = canonical(
      `%1 = ${constant(offset)}`,
      "%2 = slice_ref %x offsets(%1) {sizes = [8], dropped = []} : ref<gmem, f32, [8]>",
      "%r = load %2 : tile<f32, [8]>",
    );
    expect(text.includes("slice_ref")).toBe(stays);
  });
});

test("a loop of two trips is not one of one", () => {
  const kernel = kernelWith(
    `%1 = ${constant(1)}
    %2 = ${constant(3)}
    %r = loop %1, %2, %1 initial(%b) body(%i: i32, %v: i32) { %4 = binary %i, %v {fn = add} : i32 yield %4 } : i32
    debug_print %r {format = "{}"}`,
  );
  expect(canonicalize(kernel)).toBe(kernel);
});

test("a condition that has an effect is kept though it yields false", () => {
  const kernel = kernelWith(`%1 = constant {value = false, dtype = bool, shape = []} : bool
    while condition {
      %2 = unary %a {fn = exp} : f32
      debug_print %2 {format = "{}"}
      yield %1
    } body {
      yield
    }`);
  expect(canonicalize(kernel)).toBe(kernel);
});
