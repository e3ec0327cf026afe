/** What functions of elements cost lanes, as the instructions that are written for them say. */
import { expect, test } from "vitest";
import { parseModule } from "../ir/parser/parser.ts";
import type { AnyOp } from "../ir/node.ts";
import { elementCost } from "./instruction-costs.ts";

function opOf(dtype: string, line: string): AnyOp {
  const [kernel] = parseModule(`kernel @k grid [i = 1] threads [main] (
    input %a "a": ref<gmem, ${dtype}, [8]>, input %b "b": ref<gmem, ${dtype}, [8]>
  ) {
    %x = load %a : tile<${dtype}, [8]>
    %y = load %b : tile<${dtype}, [8]>
    %z = ${line} : tile<${dtype}, [8]>
    yield
  }`).kernels;
  return kernel?.body.ops[2] ?? expect.fail("the kernel has an op");
}

function costOf(dtype: string, line: string, isConstant = false) {
  return elementCost(opOf(dtype, line), () => isConstant) ?? expect.fail("it computes elements");
}

test("an addition is one instruction", () => {
  expect(costOf("f32", "binary %x, %y {fn = add}")).toEqual({ instructions: 1, special: 0 });
  expect(costOf("f64", "binary %x, %y {fn = add}").instructions).toBe(2);
});

test("functions take what is written for them", () => {
  const exp = costOf("f32", "unary %x {fn = exp}");
  expect(exp.instructions).toBeGreaterThan(5);
  const quick = costOf("f32", "unary %x {fn = exp2, approximate = true}");
  expect(quick.special).toBe(1);
  expect(quick.instructions).toBeLessThan(exp.instructions);
  const erf = costOf("f32", "unary %x {fn = erf}");
  expect(erf.instructions).toBeGreaterThan(exp.instructions);
  expect(costOf("f64", "unary %x {fn = exp}").instructions).toBeGreaterThan(exp.instructions);
});

test("a division by what is known is a product and shifts", () => {
  const line = "binary %x, %y {fn = rem}";
  expect(costOf("i32", line, true).instructions).toBeLessThan(costOf("i32", line).instructions / 2);
  expect(costOf("i32", line).instructions).toBeLessThan(costOf("i64", line).instructions);
});

test("what moves elements is no function of them", () => {
  expect(elementCost(opOf("f32", "broadcast %x {shape = [8], axes = [0]}"), () => false)).toBe(
    undefined,
  );
});
