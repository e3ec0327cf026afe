/** Convolutions of few channels, as products of their patches, are the same convolutions: over whole numbers, whose sums are exact. */
import { expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { opsWithin } from "../ops/traverse.ts";
import { runPasses } from "../passes/pass-order.ts";
import { parseGraph } from "../text/index.ts";
import { patchesPass } from "./pass.ts";

interface Case {
  readonly name: string;
  readonly lhs: readonly number[];
  readonly rhs: readonly number[];
  readonly out: readonly number[];
  readonly numbers: string;
  readonly window: string;
  /** Groups of the batch and of the features; 1 unless there are. */
  readonly groups?: number;
  readonly featureGroups?: number;
}

const cases: readonly Case[] = [
  {
    name: "three channels, strides and padding",
    lhs: [2, 20, 17, 3],
    rhs: [7, 5, 3, 96],
    out: [2, 10, 8, 96],
    numbers: "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
    window: "stride = [2, 2], pad = [[2, 3], [1, 1]]",
  },
  {
    name: "the gradient of its kernel",
    lhs: [8, 20, 17, 3],
    rhs: [8, 10, 8, 64],
    out: [7, 5, 3, 64],
    numbers: "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
    window: "pad = [[2, 3], [1, 1]], rhs_dilate = [2, 2]",
  },
  {
    name: "windows side by side",
    lhs: [3, 32, 24, 8],
    rhs: [64, 8, 8, 8],
    out: [3, 64, 4, 3],
    numbers: "[b, 0, 1, f]x[o, 0, 1, i]->[b, f, 0, 1]",
    window: "stride = [8, 8]",
  },
  {
    name: "the gradient of their kernel",
    lhs: [3, 32, 24, 8],
    rhs: [3, 4, 3, 64],
    out: [8, 8, 8, 64],
    numbers: "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
    window: "rhs_dilate = [8, 8]",
  },
  {
    name: "one axis, dilated taps, padding that cuts",
    lhs: [4, 400, 2],
    rhs: [9, 2, 48],
    out: [4, 381, 48],
    numbers: "[b, 0, f]x[0, i, o]->[b, 0, f]",
    window: "pad = [[-1, -2]], rhs_dilate = [2]",
  },
  {
    name: "the gradient of a depthwise kernel, strided and padded",
    lhs: [4, 17, 20, 24],
    rhs: [4, 9, 10, 24],
    out: [3, 3, 1, 24],
    numbers: "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
    window: "pad = [[1, 1], [0, 1]], rhs_dilate = [2, 2]",
    groups: 24,
  },
  {
    name: "depthwise, strided, dilated and padded",
    lhs: [3, 17, 20, 24],
    rhs: [3, 5, 1, 24],
    out: [3, 9, 13, 24],
    numbers: "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
    window: "stride = [2, 1], pad = [[2, 2], [3, -2]], rhs_dilate = [2, 2]",
    featureGroups: 24,
  },
  {
    name: "depthwise, channels first",
    lhs: [3, 24, 30],
    rhs: [24, 1, 4],
    out: [24, 3, 27],
    numbers: "[b, f, 0]x[o, i, 0]->[f, b, 0]",
    window: "",
    featureGroups: 24,
  },
  {
    name: "the gradient of a grouped kernel, channels first",
    lhs: [8, 12, 40],
    rhs: [8, 18, 39],
    out: [4, 18, 2],
    numbers: "[f, b, 0]x[i, o, 0]->[b, f, 0]",
    window: "",
    groups: 3,
  },
];

function textOf({ lhs, rhs, out, numbers, window, groups = 1, featureGroups = 1 }: Case): string {
  const [left, right, result] = [lhs, rhs, out].map((shape) => `tensor<${shape.join("x")}xf32>`);
  return `func.func @main(%x: ${left}, %w: ${right}) -> ${result} {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = ${numbers}, window = {${window}} {batch_group_count = ${groups} : i64, feature_group_count = ${featureGroups} : i64} : (${left}, ${right}) -> ${result}
    return %0 : ${result} }`;
}

test.each(cases)("$name", (each) => {
  const random = new Random(9);
  const [module] = parseGraph(textOf(each));
  if (module === undefined) throw new Error("the text has a program");
  const normal = runPasses(module, [patchesPass]);
  const kinds = [
    ...opsWithin(normal.functions.get("main")?.body ?? { parameters: [], ops: [], results: [] }),
  ];
  expect(kinds.map(({ kind }) => kind)).not.toContain("stablehlo.convolution");
  const inputs = [each.lhs, each.rhs].map((shape) =>
    tensor(
      "f32",
      shape,
      Float32Array.from(
        { length: shape.reduce((all, extent) => all * extent, 1) },
        () => random.below(9) - 4,
      ),
    ),
  );
  const [wanted] = evaluate(module, "main", inputs) as readonly Tensor[];
  const [found] = evaluate(normal, "main", inputs) as readonly Tensor[];
  expect(found).toEqual(wanted);
});
