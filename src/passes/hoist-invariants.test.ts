import { expect, test } from "vitest";
import { after, kernelWith } from "../../test/support/ir-text.ts";
import { hoistInvariants } from "./hoist-invariants.ts";

test("what does not depend on the loop moves out, through nested loops, in order", () => {
  expect(
    after(
      hoistInvariants,
      `loop %b, %b, %b body(%5: i32) {
         %6 = binary %5, %b {fn = add} : i32
         loop %b, %b, %b body(%7: i32) {
           %8 = unary %a {fn = neg} : f32
           %9 = unary %8 {fn = exp} : f32
           %10 = binary %6, %b {fn = mul} : i32
           %11 = binary %7, %10 {fn = mul} : i32
           debug_print %9, %11 {format = "{}{}"}
           yield
         }
         yield
       }`,
    ),
  ).toBe(`%5 = unary %a {fn = neg} : f32
%6 = unary %5 {fn = exp} : f32
loop %b, %b, %b body(%7: i32) {
  %8 = binary %7, %b {fn = add} : i32
  %9 = binary %8, %b {fn = mul} : i32
  loop %b, %b, %b body(%10: i32) {
    %11 = binary %10, %9 {fn = mul} : i32
    debug_print %6, %11 {format = "{}{}"}
    yield
  }
  yield
}`);
});

test("conditions of while are searched too", () => {
  expect(
    after(
      hoistInvariants,
      `while condition {
         %5 = unary %c {fn = not} : bool
         yield %5
       } body {
         %6 = unary %a {fn = neg} : f32
         debug_print %6 {format = "{}"}
         yield
       }`,
    ),
  ).toBe(`%5 = unary %c {fn = not} : bool
%6 = unary %a {fn = neg} : f32
while condition {
  yield %5
} body {
  debug_print %6 {format = "{}"}
  yield
}`);
});

test("loads, carries, branches and accumulators stay", () => {
  const kernel = kernelWith(`%5 = loop %b, %b, %b initial(%a) body(%6: i32, %7: f32) {
      %8 = load %x : tile<f32, [8]>
      store %x, %8
      %9 = unary %7 {fn = neg} : f32
      if %c then {
        %10 = unary %a {fn = exp} : f32
        debug_print %10 {format = "{}"}
        yield
      } otherwise {
        yield
      }
      %11 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
      %12 = wgmma_wait %11 {pending = 0, gives = tile} : tile<f32, [64, 8]>
      yield %9
    } : f32`);
  expect(hoistInvariants(kernel)).toBe(kernel);
});
