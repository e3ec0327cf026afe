import { describe, expect, test } from "vitest";
import { after, bodyText, kernelWith } from "../../../test/support/ir-text.ts";
import { rewriteKernel } from "../../ir/rewrite/engine.ts";
import { deadCode } from "../dead-code.ts";
import { canonicalizationRules, canonicalize } from "./index.ts";

const zero = "constant {value = 0, dtype = i32, shape = []} : i32";
const one = "constant {value = 1, dtype = i32, shape = []} : i32";
const yes = "constant {value = true, dtype = bool, shape = []} : bool";
const no = "constant {value = false, dtype = bool, shape = []} : bool";

interface Case {
  /** The rule that is applied, alone. */
  readonly rule: string;
  /** Ops before and, without the dead ones, after; both are followed by a print of `%r`. */
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly printed: string;
}

function rewrites(
  rule: string,
  before: readonly string[],
  result: readonly string[],
  printed: string,
): Case {
  return { rule, before, after: result, printed };
}

const cases: readonly Case[] = [
  rewrites(
    "arithmetic: constant to the right",
    [`%1 = ${one}`, "%r = binary %1, %b {fn = mul} : i32"],
    [`%5 = ${one}`, "%6 = binary %b, %5 {fn = mul} : i32"],
    "%6",
  ),
  rewrites(
    "arithmetic: neutral right operand",
    [`%1 = ${zero}`, "%r = binary %b, %1 {fn = add} : i32"],
    [],
    "%b",
  ),
  rewrites(
    "arithmetic: absorbing right operand",
    [`%1 = ${zero}`, "%r = binary %b, %1 {fn = mul} : i32"],
    [`%5 = ${zero}`],
    "%5",
  ),
  rewrites(
    "arithmetic: remainder by one",
    [`%1 = ${one}`, "%r = binary %b, %1 {fn = rem} : i32"],
    [`%5 = ${zero}`],
    "%5",
  ),
  rewrites(
    "arithmetic: equal operands",
    ["%r = binary %b, %b {fn = sub} : i32"],
    [`%5 = ${zero}`],
    "%5",
  ),
  rewrites(
    "arithmetic: constants together",
    [
      `%1 = ${one}`,
      "%2 = constant {value = 7, dtype = i32, shape = []} : i32",
      "%3 = binary %b, %1 {fn = add} : i32",
      "%r = binary %3, %2 {fn = add} : i32",
    ],
    [
      `%5 = ${one}`,
      "%6 = constant {value = 7, dtype = i32, shape = []} : i32",
      "%7 = binary %5, %6 {fn = add} : i32",
      "%8 = binary %b, %7 {fn = add} : i32",
    ],
    "%8",
  ),
  rewrites(
    "arithmetic: adding a negation",
    ["%1 = unary %a {fn = neg} : f32", "%r = binary %a, %1 {fn = add} : f32"],
    ["%5 = binary %a, %a {fn = sub} : f32"],
    "%5",
  ),
  rewrites(
    "arithmetic: function twice",
    ["%1 = unary %a {fn = neg} : f32", "%r = unary %1 {fn = neg} : f32"],
    [],
    "%a",
  ),
  rewrites(
    "arithmetic: rounding of an integral number",
    ["%1 = unary %a {fn = floor} : f32", "%r = unary %1 {fn = round} : f32"],
    ["%5 = unary %a {fn = floor} : f32"],
    "%5",
  ),
  rewrites(
    "arithmetic: magnitude of a magnitude",
    ["%1 = unary %a {fn = abs} : f32", "%r = unary %1 {fn = abs} : f32"],
    ["%5 = unary %a {fn = abs} : f32"],
    "%5",
  ),
  rewrites(
    "arithmetic: magnitude of a negation",
    ["%1 = unary %a {fn = neg} : f32", "%r = unary %1 {fn = abs} : f32"],
    ["%5 = unary %a {fn = abs} : f32"],
    "%5",
  ),
  rewrites(
    "arithmetic: opposite of a comparison",
    ["%1 = compare %b, %b {predicate = le} : bool", "%r = unary %1 {fn = not} : bool"],
    ["%5 = compare %b, %b {predicate = gt} : bool"],
    "%5",
  ),
  rewrites(
    "comparison: constant to the right",
    [`%1 = ${one}`, "%r = compare %1, %b {predicate = lt} : bool"],
    [`%5 = ${one}`, "%6 = compare %b, %5 {predicate = gt} : bool"],
    "%6",
  ),
  rewrites(
    "comparison: equal operands",
    ["%r = compare %b, %b {predicate = le} : bool"],
    [`%5 = ${yes}`],
    "%5",
  ),
  rewrites(
    "comparison: unsigned against zero",
    [
      "%1 = cast %b {dtype = u32} : u32",
      "%2 = constant {value = 0, dtype = u32, shape = []} : u32",
      "%r = compare %1, %2 {predicate = lt} : bool",
    ],
    [`%5 = ${no}`],
    "%5",
  ),
  rewrites(
    "comparison: bool against a constant",
    [`%1 = ${no}`, "%r = compare %c, %1 {predicate = eq} : bool"],
    ["%5 = unary %c {fn = not} : bool"],
    "%5",
  ),
  rewrites(
    "selection: constant condition",
    [`%1 = ${no}`, `%2 = ${one}`, "%r = select %1, %2, %b : i32"],
    [],
    "%b",
  ),
  rewrites("selection: equal choices", ["%r = select %c, %b, %b : i32"], [], "%b"),
  rewrites(
    "selection: condition itself",
    [`%1 = ${yes}`, `%2 = ${no}`, "%r = select %c, %1, %2 : bool"],
    [],
    "%c",
  ),
  rewrites(
    "selection: negated condition",
    ["%1 = unary %c {fn = not} : bool", `%2 = ${one}`, "%r = select %1, %2, %b : i32"],
    [`%5 = ${one}`, "%6 = select %c, %b, %5 : i32"],
    "%6",
  ),
  rewrites(
    "conversion: to the same format",
    ["%r = cast %a {dtype = f32, rounding = up} : f32"],
    [],
    "%a",
  ),
  rewrites(
    "conversion: through a wider format",
    ["%1 = cast %a {dtype = f64} : f64", "%r = cast %1 {dtype = bf16, rounding = zero} : bf16"],
    ["%5 = cast %a {dtype = bf16, rounding = zero} : bf16"],
    "%5",
  ),
  rewrites(
    "conversion: bits of the same format",
    ["%r = bitcast %a {dtype = f32} : f32"],
    [],
    "%a",
  ),
  rewrites(
    "conversion: there and back",
    [
      "%1 = reshape %a {shape = [1]} : tile<f32, [1]>",
      "%2 = bitcast_width %1 {dtype = u8} : tile<u8, [4]>",
      "%r = bitcast_width %2 {dtype = f32} : tile<f32, [1]>",
    ],
    ["%5 = reshape %a {shape = [1]} : tile<f32, [1]>"],
    "%5",
  ),
  rewrites(
    "conversion: bits of bits",
    ["%1 = bitcast %b {dtype = f32} : f32", "%r = bitcast %1 {dtype = u32} : u32"],
    ["%5 = bitcast %b {dtype = u32} : u32"],
    "%5",
  ),
  rewrites(
    "tile: array of a known index",
    [
      `%1 = ${zero}`,
      '%2 = select_ref %1 refs(%x) {name = "list"} : ref<gmem, f32, [8]>',
      "%r = load %2 : tile<f32, [8]>",
    ],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "tile: broadcast of a constant",
    [`%1 = ${one}`, "%r = broadcast %1 {shape = [2, 4], axes = []} : tile<i32, [2, 4]>"],
    ["%5 = constant {value = 1, dtype = i32, shape = [2, 4]} : tile<i32, [2, 4]>"],
    "%5",
  ),
  rewrites(
    "tile: broadcast to the same shape",
    [
      "%1 = load %x : tile<f32, [8]>",
      "%r = broadcast %1 {shape = [8], axes = [0]} : tile<f32, [8]>",
    ],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "tile: broadcast twice",
    [
      "%1 = load %x : tile<f32, [8]>",
      "%2 = broadcast %1 {shape = [8, 1], axes = [0]} : tile<f32, [8, 1]>",
      "%r = broadcast %2 {shape = [2, 8, 4], axes = [1, 2]} : tile<f32, [2, 8, 4]>",
    ],
    [
      "%5 = load %x : tile<f32, [8]>",
      "%6 = broadcast %5 {shape = [2, 8, 4], axes = [1]} : tile<f32, [2, 8, 4]>",
    ],
    "%6",
  ),
  rewrites(
    "tile: reshape of a constant",
    [
      "%1 = constant {value = 2, dtype = f32, shape = [8]} : tile<f32, [8]>",
      "%r = reshape %1 {shape = [2, 4]} : tile<f32, [2, 4]>",
    ],
    ["%5 = constant {value = 2, dtype = f32, shape = [2, 4]} : tile<f32, [2, 4]>"],
    "%5",
  ),
  rewrites(
    "tile: reshape to the same shape",
    ["%1 = load %x : tile<f32, [8]>", "%r = reshape %1 {shape = [8]} : tile<f32, [8]>"],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "tile: reshape twice",
    [
      "%1 = load %x : tile<f32, [8]>",
      "%2 = reshape %1 {shape = [2, 4]} : tile<f32, [2, 4]>",
      "%r = reshape %2 {shape = [4, 2]} : tile<f32, [4, 2]>",
    ],
    ["%5 = load %x : tile<f32, [8]>", "%6 = reshape %5 {shape = [4, 2]} : tile<f32, [4, 2]>"],
    "%6",
  ),
  rewrites(
    "tile: transpose of a constant",
    [
      "%1 = constant {value = 2, dtype = f32, shape = [2, 4]} : tile<f32, [2, 4]>",
      "%r = transpose %1 {permutation = [1, 0]} : tile<f32, [4, 2]>",
    ],
    ["%5 = constant {value = 2, dtype = f32, shape = [4, 2]} : tile<f32, [4, 2]>"],
    "%5",
  ),
  rewrites(
    "tile: transpose of nothing",
    ["%1 = load %x : tile<f32, [8]>", "%r = transpose %1 {permutation = [0]} : tile<f32, [8]>"],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "tile: transpose twice",
    [
      "%1 = iota {dtype = i32, shape = [2, 3, 4], axis = 0} : tile<i32, [2, 3, 4]>",
      "%2 = transpose %1 {permutation = [1, 2, 0]} : tile<i32, [3, 4, 2]>",
      "%r = transpose %2 {permutation = [0, 2, 1]} : tile<i32, [3, 2, 4]>",
    ],
    [
      "%5 = iota {dtype = i32, shape = [2, 3, 4], axis = 0} : tile<i32, [2, 3, 4]>",
      "%6 = transpose %5 {permutation = [1, 0, 2]} : tile<i32, [3, 2, 4]>",
    ],
    "%6",
  ),
  rewrites(
    "tile: slice of a constant",
    [
      "%1 = constant {value = 2, dtype = f32, shape = [8]} : tile<f32, [8]>",
      "%r = slice %1 {starts = [2], sizes = [4]} : tile<f32, [4]>",
    ],
    ["%5 = constant {value = 2, dtype = f32, shape = [4]} : tile<f32, [4]>"],
    "%5",
  ),
  rewrites(
    "tile: slice of the whole",
    ["%1 = load %x : tile<f32, [8]>", "%r = slice %1 {starts = [0], sizes = [8]} : tile<f32, [8]>"],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "tile: slice twice",
    [
      "%1 = load %x : tile<f32, [8]>",
      "%2 = slice %1 {starts = [1], sizes = [6]} : tile<f32, [6]>",
      "%r = slice %2 {starts = [2], sizes = [3]} : tile<f32, [3]>",
    ],
    ["%5 = load %x : tile<f32, [8]>", "%6 = slice %5 {starts = [3], sizes = [3]} : tile<f32, [3]>"],
    "%6",
  ),
  rewrites(
    "tile: concatenation of one tile",
    ["%1 = load %x : tile<f32, [8]>", "%r = concatenate %1 {axis = 0} : tile<f32, [8]>"],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "tile: count of one",
    ["%r = iota {dtype = i64, shape = [1, 8], axis = 0} : tile<i64, [1, 8]>"],
    ["%5 = constant {value = 0n, dtype = i64, shape = [1, 8]} : tile<i64, [1, 8]>"],
    "%5",
  ),
  rewrites(
    "window: slice of the whole",
    [
      `%1 = ${zero}`,
      "%2 = slice_ref %x offsets(%1) {sizes = [8], dropped = []} : ref<gmem, f32, [8]>",
      "%r = load %2 : tile<f32, [8]>",
    ],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "window: transpose of nothing",
    [
      "%1 = transpose_ref %x {permutation = [0]} : ref<gmem, f32, [8]>",
      "%r = load %1 : tile<f32, [8]>",
    ],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "window: transpose twice",
    [
      "%1 = reshape_ref %x {shape = [2, 4]} : ref<gmem, f32, [2, 4]>",
      "%2 = transpose_ref %1 {permutation = [1, 0]} : ref<gmem, f32, [4, 2]>",
      "%3 = transpose_ref %2 {permutation = [1, 0]} : ref<gmem, f32, [2, 4]>",
      "%r = load %3 : tile<f32, [2, 4]>",
    ],
    [
      "%5 = reshape_ref %x {shape = [2, 4]} : ref<gmem, f32, [2, 4]>",
      "%6 = transpose_ref %5 {permutation = [0, 1]} : ref<gmem, f32, [2, 4]>",
      "%7 = load %6 : tile<f32, [2, 4]>",
    ],
    "%7",
  ),
  rewrites(
    "window: reshape to the same shape",
    ["%1 = reshape_ref %x {shape = [8]} : ref<gmem, f32, [8]>", "%r = load %1 : tile<f32, [8]>"],
    ["%5 = load %x : tile<f32, [8]>"],
    "%5",
  ),
  rewrites(
    "control: if on a constant",
    [
      `%1 = ${no}`,
      "%r = if %1 then { yield %a } otherwise { %2 = unary %a {fn = exp} : f32 yield %2 } : f32",
    ],
    ["%5 = unary %a {fn = exp} : f32"],
    "%5",
  ),
  rewrites(
    "control: switch on a constant",
    [
      "%1 = constant {value = 9, dtype = i32, shape = []} : i32",
      "%r = switch %1 cases { yield %a } cases { %2 = unary %a {fn = exp} : f32 yield %2 } : f32",
    ],
    ["%5 = unary %a {fn = exp} : f32"],
    "%5",
  ),
  rewrites(
    "control: loop of no trip",
    [
      `%1 = ${one}`,
      "%r = loop %1, %1, %b initial(%a) body(%i: i32, %v: f32) { %2 = unary %v {fn = exp} : f32 yield %2 } : f32",
    ],
    [],
    "%a",
  ),
  rewrites(
    "control: loop of one trip",
    [
      `%1 = ${one}`,
      "%2 = constant {value = 3, dtype = i32, shape = []} : i32",
      "%3 = constant {value = 2, dtype = i32, shape = []} : i32",
      "%r = loop %1, %2, %3 initial(%b) body(%i: i32, %v: i32) { %4 = binary %i, %v {fn = add} : i32 yield %4 } : i32",
    ],
    [`%5 = ${one}`, "%6 = binary %5, %b {fn = add} : i32"],
    "%6",
  ),
  rewrites(
    "control: loop of one trip",
    [
      `%1 = ${one}`,
      "%2 = constant {value = 2, dtype = i32, shape = []} : i32",
      "%r = loop %1, %2, %1 initial(%a) {breaks = true} body(%i: i32, %v: f32) { %4 = unary %v {fn = exp} : f32 yield %4, %c } : f32",
    ],
    ["%5 = unary %a {fn = exp} : f32"],
    "%5",
  ),
  rewrites(
    "control: break of a loop that never comes",
    [
      `%1 = ${no}`,
      "%r = loop %b, %b, %b initial(%a) {breaks = true, depth = 2} body(%i: i32, %v: f32) { %4 = unary %v {fn = exp} : f32 yield %4, %1 } : f32",
    ],
    [
      "%5 = loop %b, %b, %b initial(%a) {depth = 2} body(%6: i32, %7: f32) {",
      "  %8 = unary %7 {fn = exp} : f32",
      "  yield %8",
      "} : f32",
    ],
    "%5",
  ),
  rewrites(
    "control: break of a while that never comes",
    [
      `%1 = ${no}`,
      "%r = while %a {breaks = true} condition(%2: f32) { yield %c } body(%3: f32) { %4 = unary %3 {fn = exp} : f32 yield %4, %1 } : f32",
    ],
    [
      "%5 = while %a condition(%6: f32) {",
      "  yield %c",
      "} body(%7: f32) {",
      "  %8 = unary %7 {fn = exp} : f32",
      "  yield %8",
      "} : f32",
    ],
    "%5",
  ),
  rewrites(
    "control: while that never runs",
    [
      `%1 = ${no}`,
      "%r = while %a condition(%2: f32) { yield %1 } body(%3: f32) { %4 = unary %3 {fn = exp} : f32 yield %4 } : f32",
    ],
    [],
    "%a",
  ),
  rewrites(
    "control: fixed carry of a loop",
    [
      "%s, %r = loop %b, %b, %b initial(%b, %a) body(%i: i32, %v: i32, %w: f32) {",
      "  %1 = cast %v {dtype = f32} : f32",
      "  %2 = binary %w, %1 {fn = add} : f32",
      "  yield %v, %2",
      "} : i32, f32",
    ],
    [
      "%5 = loop %b, %b, %b initial(%a) body(%6: i32, %7: f32) {",
      "  %8 = cast %b {dtype = f32} : f32",
      "  %9 = binary %7, %8 {fn = add} : f32",
      "  yield %9",
      "} : f32",
    ],
    "%5",
  ),
  rewrites(
    "control: fixed carry of a while",
    [
      "%r, %s = while %a, %c condition(%1: f32, %2: bool) { yield %2 } body(%3: f32, %4: bool) {",
      "  %6 = unary %3 {fn = neg} : f32",
      "  yield %6, %c",
      "} : f32, bool",
    ],
    [
      "%5 = while %a condition(%6: f32) {",
      "  yield %c",
      "} body(%7: f32) {",
      "  %8 = unary %7 {fn = neg} : f32",
      "  yield %8",
      "} : f32",
    ],
    "%5",
  ),
  rewrites(
    "control: fixed result of an if",
    ["%r = if %c then { yield %a } otherwise { yield %a } : f32"],
    [],
    "%a",
  ),
  rewrites(
    "control: fixed result of a switch",
    [
      "%s, %r = switch %b cases { %1 = unary %a {fn = neg} : f32 yield %1, %a } cases { yield %a, %a } : f32, f32",
    ],
    [],
    "%a",
  ),
  rewrites(
    "control: assertion of true",
    [`%1 = ${yes}`, 'assert %1 {message = "no"}', "%r = unary %a {fn = neg} : f32"],
    ["%5 = unary %a {fn = neg} : f32"],
    "%5",
  ),
];

function printing(lines: readonly string[], value: string): string {
  return [...lines, `debug_print ${value} {format = "{}"}`].join("\n");
}

describe("each rule, alone", () => {
  test.each(cases)("$rule", ({ rule, before, after: result, printed }) => {
    const rules = canonicalizationRules.filter(({ name }) => name === rule);
    const kernel = rewriteKernel(kernelWith(printing(before, "%r")), rules);
    expect(bodyText(deadCode(kernel))).toBe(printing(result, printed));
  });

  test("no rule is without a case", () => {
    const tested = new Set(cases.map(({ rule }) => rule));
    expect(
      canonicalizationRules.map(({ name }) => name).filter((name) => !tested.has(name)),
    ).toEqual([]);
  });
});

describe("floats keep their values", () => {
  const binary = (fn: string, literal: string) =>
    after(
      canonicalize,
      printing(
        [
          `%1 = constant {value = ${literal}, dtype = f32, shape = []} : f32`,
          `%r = binary %a, %1 {fn = ${fn}} : f32`,
        ],
        "%r",
      ),
    );

  test.each([
    ["add", "-0"],
    ["sub", "0"],
    ["mul", "1"],
    ["div", "1"],
  ])("%s %s changes nothing", (fn, literal) => {
    expect(binary(fn, literal)).toContain("debug_print %a");
  });

  test.each([
    ["add", "0"],
    ["sub", "-0"],
    ["mul", "0"],
    ["mul", "-1"],
  ])("%s %s does", (fn, literal) => {
    expect(binary(fn, literal)).toContain(`binary %a, %5 {fn = ${fn}}`);
  });

  test.each([
    ["inf - inf is not 0", ["%r = binary %a, %a {fn = sub} : f32"]],
    ["NaN is not equal to itself", ["%r = compare %a, %a {predicate = eq} : bool"]],
    ["nor less or equal", ["%r = compare %a, %a {predicate = le} : bool"]],
    [
      "not less is not greater or equal",
      [
        "%1 = unary %a {fn = exp} : f32",
        "%2 = compare %a, %1 {predicate = lt} : bool",
        "%r = unary %2 {fn = not} : bool",
      ],
    ],
    [
      "each of two additions rounds",
      [
        "%1 = constant {value = 1, dtype = f32, shape = []} : f32",
        "%2 = binary %a, %1 {fn = add} : f32",
        "%r = binary %2, %1 {fn = add} : f32",
      ],
    ],
  ])("%s", (_, lines) => {
    const kernel = kernelWith(printing(lines, "%r"));
    expect(canonicalize(kernel)).toBe(kernel);
  });
});

test("a value from inside the only case is not one from outside", () => {
  const rules = canonicalizationRules.filter(({ name }) => /fixed result of a switch/.test(name));
  const kernel = kernelWith(
    printing(["%r = switch %b cases { %1 = unary %a {fn = neg} : f32 yield %1 } : f32"], "%r"),
  );
  expect(rewriteKernel(kernel, rules)).toBe(kernel);
});
