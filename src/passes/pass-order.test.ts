import { expect, test } from "vitest";
import { bodyText, kernelWith } from "../../test/support/ir-text.ts";
import { runPasses } from "./pass-order.ts";

const body = `%5 = constant {value = 2, dtype = f32, shape = []} : f32
  %6 = constant {value = 1, dtype = i32, shape = []} : i32
  %7 = binary %6, %6 {fn = add} : i32
  %8 = constant {value = 0, dtype = i32, shape = []} : i32
  %9 = load %x : tile<f32, [8]>
  %10, %11 = loop %8, %7, %6 initial(%9, %b) body(%i: i32, %v: tile<f32, [8]>, %w: i32) {
    %12 = broadcast %5 {shape = [8], axes = []} : tile<f32, [8]>
    %13 = broadcast %5 {shape = [8], axes = []} : tile<f32, [8]>
    %14 = compare %12, %13 {predicate = eq} : tile<bool, [8]>
    %15 = binary %12, %v {fn = mul} : tile<f32, [8]>
    %16 = select %14, %15, %v : tile<f32, [8]>
    %17 = binary %w, %6 {fn = add} : i32
    yield %16, %17
  } : tile<f32, [8]>, i32
  store %x, %10`;

test("constants decide, copies merge, invariants leave, the dead goes", () => {
  expect(bodyText(runPasses(kernelWith(body), { verify: true })))
    .toBe(`%5 = constant {value = 1, dtype = i32, shape = []} : i32
%6 = constant {value = 2, dtype = i32, shape = []} : i32
%7 = constant {value = 0, dtype = i32, shape = []} : i32
%8 = load %x : tile<f32, [8]>
%9 = constant {value = 2, dtype = f32, shape = [8]} : tile<f32, [8]>
%10 = loop %7, %6, %5 initial(%8) body(%11: i32, %12: tile<f32, [8]>) {
  %13 = binary %12, %9 {fn = mul} : tile<f32, [8]>
  yield %13
} : tile<f32, [8]>
store %x, %10`);
});

test("the trace sees each pass that changed something, in order", () => {
  const names: string[] = [];
  runPasses(kernelWith(body), { trace: (name) => names.push(name) });
  expect(names).toEqual([
    "foldConstants",
    "canonicalize",
    "commonSubexpressions",
    "hoistInvariants",
    "deadCode",
    // The comparison of two broadcasts is one of constants now, and decides the selection.
    "foldConstants",
    "canonicalize",
    "deadCode",
  ]);
});

test("what only a dropped operand used goes as well", () => {
  const kernel = kernelWith(`%5 = load %x : tile<f32, [8]>
  %6 = iota {shape = [8], axis = 0, dtype = i32} : tile<i32, [8]>
  %7, %8 = sort %5 payloads(%6) {axis = 0, descending = false} : tile<f32, [8]>, tile<i32, [8]>
  store %x, %7`);
  const after = runPasses(kernel);
  expect(bodyText(after)).not.toContain("iota");
  expect(runPasses(after)).toBe(after);
});

test("a kernel with nothing to do is returned as it is", () => {
  const kernel = kernelWith("%5 = load %x : tile<f32, [8]>\nstore %x, %5");
  expect(runPasses(kernel, { trace: () => expect.fail("no pass changes it") })).toBe(kernel);
});
