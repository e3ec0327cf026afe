/** Graphs that compute the same have one text, others have their own. */
import { expect, test } from "vitest";
import { parseGraph } from "../text/index.ts";
import { structureText } from "./structure.ts";

function textOf(program: string): string {
  const [module] = parseGraph(`func.func @main${program}`, "structure.mlir");
  const main = module?.functions.get("main");
  if (main === undefined) throw new Error("the text has a program");
  return structureText(main.body);
}

const sum = `(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<2.0> : tensor<4xf32>
  %0 = stablehlo.multiply %y, %c : tensor<4xf32>
  %1 = stablehlo.add %x, %0 : tensor<4xf32>
  return %1 : tensor<4xf32> }`;

test("names and the identity of values do not matter", () => {
  expect(textOf(sum)).toBe(textOf(sum));
  expect(textOf(sum.replaceAll("%0", "%other").replaceAll("%x", "%z"))).toBe(textOf(sum));
});

test.each([
  ["a constant", sum.replace("2.0", "3.0")],
  ["the sign of zero", sum.replace("2.0", "-0.0")],
  ["an op", sum.replace("stablehlo.add", "stablehlo.subtract")],
  ["the order of operands", sum.replace("add %x, %0", "add %0, %x")],
  ["which argument is used", sum.replace("multiply %y", "multiply %x")],
  ["a type", sum.replaceAll("4xf32", "5xf32")],
  ["what is returned", sum.replace("return %1", "return %0")],
  ["an argument that nobody uses", sum.replace(") ->", ", %z: tensor<f32>) ->")],
])("%s does", (_, program) => {
  expect(textOf(program)).not.toBe(textOf(sum));
});

const loop = (limit: string, step: string): string => `(%x: tensor<i32>) -> tensor<i32> {
  %r = stablehlo.while(%i = %x) : tensor<i32>
    cond {
      %l = stablehlo.constant dense<${limit}> : tensor<i32>
      %p = stablehlo.compare LT, %i, %l : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %s = stablehlo.constant dense<${step}> : tensor<i32>
      %n = stablehlo.add %i, %s : tensor<i32>
      stablehlo.return %n : tensor<i32>
    }
  return %r : tensor<i32> }`;

test("what regions do does", () => {
  const texts = [loop("3", "1"), loop("4", "1"), loop("3", "2")].map(textOf);
  expect(new Set(texts).size).toBe(3);
  expect(textOf(loop("3", "1"))).toBe(texts[0]);
});
