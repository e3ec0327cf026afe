/** Each pass on a program: text in, text out. */
import { describe, expect, test } from "vitest";
import { parseGraph, printGraph } from "../text/index.ts";
import type { PrintOptions } from "../text/index.ts";
import { verifyGraph } from "../verify/index.ts";
import { csePass } from "./cse.ts";
import { dcePass } from "./dce.ts";
import { inlinePass } from "./inline.ts";
import type { GraphPass } from "./pass.ts";

function after(pass: GraphPass, text: string, options?: PrintOptions): readonly string[] {
  return parseGraph(text, "test.mlir").flatMap((module) => {
    const result = pass.run(module);
    verifyGraph(result);
    return printGraph(result, options)
      .split("\n")
      .map((line) => line.trim());
  });
}

describe("inline", () => {
  test("puts bodies where they are called, with names, and drops what nobody calls", () => {
    const lines = after(
      inlinePass,
      `func.func public @main(%x: tensor<f32>) -> tensor<f32> {
         %0 = call @f(%x) : (tensor<f32>) -> tensor<f32> loc("layer1")
         %1 = call @f(%0) : (tensor<f32>) -> tensor<f32> loc("layer2")
         return %1 : tensor<f32> }
       func.func private @f(%x: tensor<f32>) -> tensor<f32> {
         %0 = call @g(%x) : (tensor<f32>) -> tensor<f32> loc("inner")
         return %0 : tensor<f32> }
       func.func private @g(%x: tensor<f32>) -> tensor<f32> {
         %0 = stablehlo.sine %x : tensor<f32> loc("sin")
         return %0 : tensor<f32> }`,
      { locations: true },
    );
    expect(
      lines.filter((line) => line.includes("sine")).map((line) => /loc\("([^"]*)"/.exec(line)?.[1]),
    ).toEqual(["layer1/inner/sin", "layer2/inner/sin"]);
    expect(lines.filter((line) => line.includes("func.func"))).toHaveLength(1);
  });
});

describe("dce", () => {
  test("removes what nobody uses, and keeps checks and captures", () => {
    const lines = after(
      dcePass,
      `func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
         %0 = stablehlo.sine %x : tensor<f32>
         %1 = stablehlo.cosine %x : tensor<f32>
         %2 = stablehlo.tanh %0 : tensor<f32>
         %3 = "stablehlo.if"(%p) ({
           %4 = stablehlo.negate %x : tensor<f32>
           stablehlo.return %1 : tensor<f32>
         }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
         check.expect_eq %x, %x : tensor<f32>
         return %3 : tensor<f32> }`,
    );
    expect(lines.filter((line) => /stablehlo\.(sine|tanh|negate)/.test(line))).toEqual([]);
    expect(lines).toContain("%0 = stablehlo.cosine %arg0 : tensor<f32>");
    expect(lines).toContain("check.expect_eq %arg0, %arg0 : tensor<f32>");
  });
});

describe("cse", () => {
  test("merges equal ops, also with those around a region, and not across kinds of constants", () => {
    const lines = after(
      csePass,
      `func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
         %a = stablehlo.constant dense<0.0> : tensor<f32>
         %b = stablehlo.constant dense<-0.0> : tensor<f32>
         %c = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.add %x, %a : tensor<f32>
         %1 = stablehlo.add %x, %c : tensor<f32>
         %2 = stablehlo.add %x, %b : tensor<f32>
         %3 = "stablehlo.if"(%p) ({
           %4 = stablehlo.add %x, %a : tensor<f32>
           stablehlo.return %4 : tensor<f32>
         }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
         return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32> }`,
    );
    expect(lines.filter((line) => line.includes("stablehlo.add"))).toHaveLength(2);
    expect(lines).toContain("stablehlo.return %2 : tensor<f32>");
    expect(lines).toContain(
      "return %2, %2, %3, %4 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>",
    );
  });
});
