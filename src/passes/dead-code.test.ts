import { expect, test } from "vitest";
import { after, bodyText, kernelWith } from "../../test/support/ir-text.ts";
import { deadCode } from "./dead-code.ts";

test("chains of unused ops, unused loads and allocations go; stores and waits stay", () => {
  expect(
    after(
      deadCode,
      `%5 = load %x : tile<f32, [8]>
       %6 = unary %5 {fn = exp} : tile<f32, [8]>
       %7 = alloc {space = smem, dtype = f32, shape = [8]} : ref<smem, f32, [8]>
       %8 = load %x : tile<f32, [8]>
       store %x, %8
       %9 = atomic %x, %8 {fn = add} : tile<f32, [8]>
       block_sync`,
    ),
  ).toBe(`%5 = load %x : tile<f32, [8]>
store %x, %5
%6 = atomic %x, %5 {fn = add} : tile<f32, [8]>
block_sync`);
});

test("carries that only compute themselves go, the loop stays for its effect", () => {
  expect(
    after(
      deadCode,
      `%5 = constant {value = 0, dtype = i32, shape = []} : i32
       %6, %7, %8 = loop %5, %b, %b initial(%a, %b, %a) body(%i: i32, %p: f32, %q: i32, %r: f32) {
         %9 = binary %q, %q {fn = add} : i32
         %10 = unary %r {fn = neg} : f32
         debug_print %p {format = "{}"}
         yield %10, %9, %r
       } : f32, i32, f32`,
    ),
  ).toBe(`%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6, %7 = loop %5, %b, %b initial(%a, %a) body(%8: i32, %9: f32, %10: f32) {
  %11 = unary %10 {fn = neg} : f32
  debug_print %9 {format = "{}"}
  yield %11, %10
} : f32, f32`);
});

test("what a carry that goes began with goes too", () => {
  expect(
    after(
      deadCode,
      `%5 = unary %a {fn = exp} : f32
       %6 = loop %b, %b, %b initial(%5) body(%i: i32, %p: f32) {
         debug_print %i {format = "{}"}
         %7 = unary %p {fn = neg} : f32
         yield %7
       } : f32`,
    ),
  ).toBe(`loop %b, %b, %b body(%5: i32) {
  debug_print %5 {format = "{}"}
  yield
}`);
});

test("what decides how often a loop runs is needed; the condition of a while too", () => {
  const kernel = kernelWith(`%5, %6 = while %b, %a condition(%7: i32, %8: f32) {
      %9 = compare %7, %b {predicate = lt} : bool
      yield %9
    } body(%10: i32, %11: f32) {
      %12 = binary %10, %b {fn = add} : i32
      %13 = unary %11 {fn = neg} : f32
      yield %12, %13
    } : i32, f32
    debug_print %6 {format = "{}"}`);
  expect(deadCode(kernel)).toBe(kernel);
});

test("ops with regions go where nothing in them has an effect", () => {
  expect(
    after(
      deadCode,
      `%5 = if %c then {
         %6 = load %x : tile<f32, [8]>
         yield %6
       } otherwise {
         %7 = constant {value = 0, dtype = f32, shape = [8]} : tile<f32, [8]>
         yield %7
       } : tile<f32, [8]>
       scoped body {
         %8 = alloc {space = smem, dtype = f32, shape = [8]} : ref<smem, f32, [8]>
         %9 = load %8 : tile<f32, [8]>
         yield
       }
       while condition { yield %c } body { yield }`,
    ),
  ).toBe("");
});

test("what a loop breaks by stays, and the carry that it is made of", () => {
  const kernel = kernelWith(`%5 = constant {value = 0, dtype = i32, shape = []} : i32
    %6, %7, %8 = loop %5, %b, %b initial(%a, %b, %a) {breaks = true} body(%i: i32, %p: f32, %q: i32, %r: f32) {
      %9 = binary %q, %q {fn = add} : i32
      %10 = compare %9, %i {predicate = gt} : bool
      %11 = unary %r {fn = neg} : f32
      debug_print %p {format = "{}"}
      yield %p, %9, %11, %10
    } : f32, i32, f32`);
  expect(bodyText(deadCode(kernel))).toBe(`%5 = constant {value = 0, dtype = i32, shape = []} : i32
%6, %7 = loop %5, %b, %b initial(%a, %b) {breaks = true} body(%8: i32, %9: f32, %10: i32) {
  %11 = binary %10, %10 {fn = add} : i32
  %12 = compare %11, %8 {predicate = gt} : bool
  debug_print %9 {format = "{}"}
  yield %9, %11, %12
} : f32, i32`);
});

test("unused results of branches go, used ones stay", () => {
  expect(
    after(
      deadCode,
      `%5, %6 = switch %b cases {
         %7 = unary %a {fn = exp} : f32
         yield %7, %b
       } cases {
         yield %a, %b
       } : f32, i32
       %8 = scoped body {
         %9 = unary %a {fn = sqrt} : f32
         debug_print %9 {format = "{}"}
         yield %9
       } : f32
       debug_print %6 {format = "{}"}`,
    ),
  ).toBe(`%5 = switch %b cases {
  yield %b
} cases {
  yield %b
} : i32
scoped body {
  %6 = unary %a {fn = sqrt} : f32
  debug_print %6 {format = "{}"}
  yield
}
debug_print %5 {format = "{}"}`);
});

test("an accumulator that is waited for stays, through a loop", () => {
  const kernel =
    kernelWith(`%0 = alloc {space = smem, dtype = bf16, shape = [64, 16]} : ref<smem, bf16, [64, 16]>
    %1 = alloc {space = smem, dtype = bf16, shape = [16, 8]} : ref<smem, bf16, [16, 8]>
    %2 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
    %3 = loop %b, %b, %b initial(%2) body(%4: i32, %5: inflight<f32, [64, 8]>) {
      %6 = wgmma %5, %0, %1 : inflight<f32, [64, 8]>
      yield %6
    } : inflight<f32, [64, 8]>
    %7 = wgmma_wait %3 {pending = 0, gives = tile} : tile<f32, [64, 8]>`);
  expect(deadCode(kernel)).toBe(kernel);
});
