import { describe, expect, test } from "vitest";
import { after, bodyText, kernelWith } from "../../test/support/ir-text.ts";
import { parseModule } from "../ir/parser/parser.ts";
import { foldConstants } from "./fold-constants.ts";

/** The literal and format that the last value becomes when printed; undefined where it stays an op. */
function folded(...lines: readonly string[]): string | undefined {
  const text = after(foldConstants, `${lines.join("\n")}\ndebug_print %r {format = "{}"}`);
  const value = /debug_print (%\d+)/.exec(text)?.[1] ?? expect.fail();
  const pattern = new RegExp(`${value} = constant \\{value = (.*), dtype = (.*), shape`);
  const [, literal, dtype] = pattern.exec(text) ?? [];
  return literal === undefined ? undefined : `${literal} ${dtype}`;
}

function constant(name: string, value: string, dtype: string): string {
  return `%${name} = constant {value = ${value}, dtype = ${dtype}, shape = []} : ${dtype}`;
}

function binary(
  fn: string,
  dtype: string,
  left: string,
  right: string,
  manner = "",
): string | undefined {
  return folded(
    constant("l", left, dtype),
    constant("s", right, dtype),
    `%r = binary %l, %s {fn = ${fn}${manner}} : ${dtype}`,
  );
}

test("tiles and scalars of constants, chains in one go", () => {
  expect(
    after(
      foldConstants,
      `%5 = constant {value = 1, dtype = bf16, shape = [64]} : tile<bf16, [64]>
       %6 = constant {value = 3, dtype = bf16, shape = [64]} : tile<bf16, [64]>
       %7 = binary %5, %6 {fn = div} : tile<bf16, [64]>
       %8 = cast %7 {dtype = f32} : tile<f32, [64]>
       debug_print %8 {format = "{}"}`,
    ),
  ).toBe(`%5 = constant {value = 1, dtype = bf16, shape = [64]} : tile<bf16, [64]>
%6 = constant {value = 3, dtype = bf16, shape = [64]} : tile<bf16, [64]>
%7 = constant {value = 0.333984375, dtype = bf16, shape = [64]} : tile<bf16, [64]>
%8 = constant {value = 0.333984375, dtype = f32, shape = [64]} : tile<f32, [64]>
debug_print %8 {format = "{}"}`);
});

describe("results are those of the format", () => {
  test.each([
    ["add", "i32", "2147483647", "1", "-2147483648 i32"],
    ["mul", "i32", "123456789", "987654321", "-67153019 i32"],
    ["add", "i64", "9223372036854775807n", "1n", "-9223372036854775808n i64"],
    ["sub", "u8", "0", "1", "255 u8"],
    ["add", "f32", "16777216", "1", "16777216 f32"],
    ["add", "f64", "16777216", "1", "16777217 f64"],
    ["add", "f32", "0.1", "0.2", "0.30000001192092896 f32"],
    ["mul", "f32", "-1", "0", "-0 f32"],
    ["sub", "f32", "inf", "inf", "nan f32"],
    ["min", "f32", "0", "-0", "-0 f32"],
    ["and", "bool", "true", "false", "false bool"],
  ])("%s of %s: %s and %s", (fn, dtype, left, right, result) => {
    expect(binary(fn, dtype, left, right)).toBe(result);
  });

  test.each([
    ["add", "f32", "16777216", "1", "rounding = up", "16777218 f32"],
    ["sub", "f64", "1", "1", "rounding = down", "-0 f64"],
    ["div", "f64", "1", "3", "rounding = up", "0.33333333333333337 f64"],
    ["mul", "f32", "1e-38", "0.5", "flushToZero = true", "0 f32"],
  ])("%s of %s: %s and %s, %s", (fn, dtype, left, right, manner, result) => {
    expect(binary(fn, dtype, left, right, `, ${manner}`)).toBe(result);
  });

  test("roots and fused sums, rounded as asked", () => {
    const root = "%r = unary %l {fn = sqrt, rounding = up} : f32";
    expect(folded(constant("l", "2", "f32"), root)).toBe("1.4142136573791504 f32");
    const fused = "%r = fma %l, %l, %z {rounding = down} : f32";
    const [factor, zero] = [constant("l", "4097", "f32"), constant("z", "0", "f32")];
    expect(folded(factor, zero, fused)).toBe("16785408 f32");
  });
});

test("the other elementwise ops", () => {
  expect(folded(constant("s", "-4", "f32"), "%r = unary %s {fn = abs} : f32")).toBe("4 f32");
  expect(folded(constant("s", "nan", "f32"), "%r = classify %s {fn = is_nan} : bool")).toBe(
    "true bool",
  );
  expect(folded(constant("s", "nan", "f32"), "%r = compare %s, %s {predicate = eq} : bool")).toBe(
    "false bool",
  );
  // 134217729² is 18014398777917441; rounding it before the sum would give 0.
  expect(
    folded(
      constant("s", "134217729", "f64"),
      constant("o", "-18014398777917440", "f64"),
      "%r = fma %s, %s, %o : f64",
    ),
  ).toBe("1 f64");
});

test("conversions follow the table", () => {
  const cast = (value: string, from: string, to: string, choices = "") =>
    folded(constant("s", value, from), `%r = cast %s {dtype = ${to}${choices}} : ${to}`);
  expect(cast("1e10", "f32", "i32")).toBe("2147483647 i32");
  expect(cast("nan", "f32", "i32")).toBe("0 i32");
  expect(cast("1000", "f32", "f8e4m3fn")).toBe("448 f8e4m3fn");
  expect(cast("1000", "f32", "f8e4m3fn", ", overflow = nan")).toBe("nan f8e4m3fn");
  expect(cast("-1", "i32", "u8")).toBe("255 u8");
  expect(cast("-1", "i32", "u8", ", overflow = saturate")).toBe("0 u8");
  expect(cast("2.5", "f32", "i32", ", rounding = up")).toBe("3 i32");
});

test("bits are folded where a literal can say them", () => {
  const bits = (value: string, from: string, to: string) =>
    folded(constant("s", value, from), `%r = bitcast %s {dtype = ${to}} : ${to}`);
  expect(bits("1065353216", "i32", "f32")).toBe("1 f32");
  expect(bits("-0", "f32", "i32")).toBe("-2147483648 i32");
  expect(bits("-1", "i4", "u4")).toBe("15 u4");
  expect(bits("16256", "u16", "bf16")).toBe("1 bf16");
  // A NaN that is not the one a literal gives.
  expect(bits("2143289345", "i32", "f32")).toBeUndefined();
});

test("what the launch fixes", () => {
  expect(folded('%r = block_index {axis = "j"} : i32')).toBe("0 i32");
  expect(folded('%r = block_index {axis = "i"} : i32')).toBeUndefined();
  expect(folded('%r = grid_size {axis = "j"} : i32')).toBe("1 i32");
  expect(folded('%r = grid_size {axis = "i"} : i32')).toBeUndefined();
  expect(folded('%r = cluster_rank {axis = "i"} : i32')).toBe("0 i32");
  expect(folded("%r = thread_index : i32")).toBe("0 i32");
});

test("ops on values that are not constant stay", () => {
  const kernel = kernelWith('%5 = binary %a, %a {fn = add} : f32\ndebug_print %5 {format = "{}"}');
  expect(foldConstants(kernel)).toBe(kernel);
  expect(bodyText(kernel)).toContain("binary %a, %a");
});

test("the index along an axis of several blocks is no constant", () => {
  const [kernel] = parseModule(`kernel @k dimensions [] grid [i = 4] threads [main] () {
    %0 = block_index {axis = "i"} : i32
    debug_print %0 {format = "{}"}
    yield
  }`).kernels;
  if (kernel === undefined) throw new Error("the text has a kernel");
  expect(foldConstants(kernel)).toBe(kernel);
});
