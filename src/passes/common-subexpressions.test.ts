import { expect, test } from "vitest";
import { after, kernelWith } from "../../test/support/ir-text.ts";
import { commonSubexpressions } from "./common-subexpressions.ts";

test("equal ops are computed once, where the first is visible", () => {
  expect(
    after(
      commonSubexpressions,
      `%5 = binary %a, %a {fn = mul} : f32
       %6 = binary %a, %a {fn = mul} : f32
       %7 = if %c then {
         %8 = binary %a, %a {fn = mul} : f32
         %9 = unary %8 {fn = neg} : f32
         yield %9
       } otherwise {
         %10 = unary %6 {fn = neg} : f32
         yield %10
       } : f32
       %11 = unary %5 {fn = neg} : f32
       debug_print %6, %7, %11 {format = "{}{}{}"}`,
    ),
  ).toBe(`%5 = binary %a, %a {fn = mul} : f32
%6 = if %c then {
  %7 = unary %5 {fn = neg} : f32
  yield %7
} otherwise {
  %8 = unary %5 {fn = neg} : f32
  yield %8
} : f32
%9 = unary %5 {fn = neg} : f32
debug_print %5, %6, %9 {format = "{}{}{}"}`);
});

test("an approximation is no accurate result", () => {
  const text = `%5 = unary %a {fn = exp} : f32
%6 = unary %a {fn = exp, approximate = true} : f32
%7 = binary %5, %6 {fn = div, approximate = true} : f32
%8 = binary %5, %6 {fn = div} : f32
debug_print %7, %8 {format = "{}{}"}`;
  expect(after(commonSubexpressions, text)).toBe(text);
});

test("ops differ by attributes, by the order of operands unless it does not matter, and by zero's sign", () => {
  const text = after(
    commonSubexpressions,
    `%5 = constant {value = 0, dtype = f32, shape = []} : f32
     %6 = constant {value = -0, dtype = f32, shape = []} : f32
     %7 = binary %a, %5 {fn = sub} : f32
     %8 = binary %5, %a {fn = sub} : f32
     %9 = binary %a, %5 {fn = add} : f32
     %10 = binary %5, %a {fn = add} : f32
     debug_print %6, %7, %8, %9, %10 {format = "{}{}{}{}{}"}`,
  );
  expect(text).toBe(`%5 = constant {value = 0, dtype = f32, shape = []} : f32
%6 = constant {value = -0, dtype = f32, shape = []} : f32
%7 = binary %a, %5 {fn = sub} : f32
%8 = binary %5, %a {fn = sub} : f32
%9 = binary %a, %5 {fn = add} : f32
debug_print %6, %7, %8, %9, %9 {format = "{}{}{}{}{}"}`);
});

test("loads, accumulators and what warps compute themselves are not merged", () => {
  const kernel = kernelWith(`%5 = load %x : tile<f32, [8]>
    %6 = load %x : tile<f32, [8]>
    store %x, %5
    store %x, %6
    %7 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
    %8 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
    %9 = wgmma_wait %7 {pending = 0, gives = tile} : tile<f32, [64, 8]>
    %10 = wgmma_wait %8 {pending = 0, gives = tile} : tile<f32, [64, 8]>
    %11 = unary %a {fn = neg} : f32
    warps body(%12: i32) {
      %13 = unary %a {fn = neg} : f32
      debug_print %11, %13 {format = "{}{}"}
      yield
    }`);
  expect(commonSubexpressions(kernel)).toBe(kernel);
});

test("windows are merged", () => {
  expect(
    after(
      commonSubexpressions,
      `%5 = slice_ref %x offsets(%b) {sizes = [4], dropped = []} : ref<gmem, f32, [4]>
       %6 = slice_ref %x offsets(%b) {sizes = [4], dropped = []} : ref<gmem, f32, [4]>
       %7 = load %5 : tile<f32, [4]>
       store %6, %7`,
    ),
  ).toBe(`%5 = slice_ref %x offsets(%b) {sizes = [4], dropped = []} : ref<gmem, f32, [4]>
%6 = load %5 : tile<f32, [4]>
store %5, %6`);
});
