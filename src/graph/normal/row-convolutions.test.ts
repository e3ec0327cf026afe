/** Convolutions by rows mean what they meant, on the evaluator and on the CPU device, whose results of whole numbers are exact. */
import { expect, test } from "vitest";
import { openCpu } from "../../cpu/device/open.ts";
import { Device } from "../../device/device.ts";
import { bf16 } from "../../formats/dtype.ts";
import { fromNumbers, toElements } from "../../formats/hostarray.ts";
import { Random } from "../../support/random.ts";
import { cpuTarget } from "../../targets/target.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import type { GraphModule } from "../ops/node.ts";
import { opsWithin } from "../ops/traverse.ts";
import { runPasses } from "../passes/pass-order.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { planText } from "../plan/text.ts";
import { parseGraph } from "../text/index.ts";
import { rowConvolutionsPass } from "./pass.ts";
import { isByRows } from "./row-convolutions.ts";

interface Case {
  readonly name: string;
  readonly lhs: readonly number[];
  readonly rhs: readonly number[];
  readonly out: readonly number[];
  readonly numbers: string;
  readonly window: string;
  readonly elements?: readonly ["f32" | "bf16", "f32" | "bf16"];
  readonly groups?: number;
}

const last = "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]";
const ofWeights = "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]";

const taken: readonly Case[] = [
  {
    name: "padded",
    lhs: [2, 9, 12, 3],
    rhs: [3, 3, 3, 20],
    out: [2, 9, 12, 20],
    numbers: last,
    window: "pad = [[1, 1], [1, 1]]",
  },
  {
    name: "dilated, with uneven padding and rows of 11",
    lhs: [3, 10, 13, 5],
    rhs: [2, 3, 5, 7],
    out: [3, 10, 11, 7],
    numbers: last,
    window: "pad = [[2, 0], [0, 2]], rhs_dilate = [2, 2]",
  },
  {
    name: "cut, rows in two parts",
    lhs: [1, 6, 132, 4],
    rhs: [3, 3, 4, 9],
    out: [1, 4, 128, 9],
    numbers: last,
    window: "pad = [[-1, 1], [-2, 0]]",
  },
  {
    name: "a gradient of x",
    lhs: [2, 8, 9, 12],
    rhs: [3, 3, 16, 12],
    out: [2, 8, 9, 16],
    numbers: "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
    window: "pad = [[1, 1], [1, 1]]",
  },
  {
    name: "a gradient of w",
    lhs: [3, 8, 10, 6],
    rhs: [3, 8, 10, 17],
    out: [3, 3, 6, 17],
    numbers: ofWeights,
    window: "pad = [[1, 1], [1, 1]]",
  },
  {
    name: "bf16 summed in f32",
    lhs: [2, 7, 10, 8],
    rhs: [3, 3, 8, 16],
    out: [2, 5, 8, 16],
    numbers: last,
    window: "",
    elements: ["bf16", "f32"],
  },
  {
    name: "a gradient of w in bf16",
    lhs: [4, 7, 10, 8],
    rhs: [4, 5, 8, 16],
    out: [3, 3, 8, 16],
    numbers: ofWeights,
    window: "",
    elements: ["bf16", "bf16"],
  },
];

function moduleOf({ lhs, rhs, out, numbers, window, elements = ["f32", "f32"], groups = 1 }: Case) {
  const type = (shape: readonly number[], element: string): string =>
    `tensor<${shape.join("x")}x${element}>`;
  const [left, right] = [type(lhs, elements[0]), type(rhs, elements[0])];
  const result = type(out, elements[1]);
  const [module] = parseGraph(`func.func @main(%x: ${left}, %w: ${right}) -> ${result} {
    %0 = stablehlo.convolution(%x, %w) dim_numbers = ${numbers}, window = {${window}} {batch_group_count = 1 : i64, feature_group_count = ${groups} : i64} : (${left}, ${right}) -> ${result}
    return %0 : ${result} }`);
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

function inputsOf({ lhs, rhs, elements: [element] = ["f32", "f32"] }: Case): readonly Tensor[] {
  const random = new Random(31);
  return [lhs, rhs].map((shape) => {
    const count = shape.reduce((all, extent) => all * extent, 1);
    const numbers = Float32Array.from({ length: count }, () => random.below(5) - 2);
    return element === "f32"
      ? tensor("f32", shape, numbers)
      : tensor("bf16", shape, toElements(fromNumbers(bf16, [count], numbers)));
  });
}

const marked = (module: GraphModule): boolean =>
  [
    ...opsWithin(module.functions.get("main")?.body ?? { parameters: [], ops: [], results: [] }),
  ].some((op) => op.kind === "stablehlo.convolution" && isByRows(op));

async function onCpu(module: GraphModule, inputs: readonly Tensor[], relaxed: boolean) {
  const plan = compilePlan(module, "main", [], { target: cpuTarget });
  const features = { relaxed, keepsLoadsInOrder: relaxed };
  const device = new Device(openCpu({ threads: 1 }, relaxed ? {} : { features }));
  const program = await Program.load(device, plan);
  const [found] = await program.run(inputs);
  program.dispose();
  device.dispose();
  return { found, text: planText(plan) };
}

test.each(taken)("$name", async (each) => {
  const module = moduleOf(each);
  const inputs = inputsOf(each);
  const normal = runPasses(module, [rowConvolutionsPass]);
  expect(marked(normal)).toBe(true);
  const [wanted] = evaluate(module, "main", inputs) as readonly Tensor[];
  expect(evaluate(normal, "main", inputs)).toEqual([wanted]);
  for (const relaxed of [false, true]) {
    const { found, text } = await onCpu(module, inputs, relaxed);
    expect(text).toContain("convolution_rows");
    expect(found).toEqual(wanted);
  }
});

test.each([
  {
    ...taken[0],
    name: "strided",
    out: [2, 5, 12, 20],
    window: "stride = [2, 1], pad = [[1, 1], [1, 1]]",
  },
  { ...taken[0], name: "in groups", rhs: [3, 3, 1, 21], out: [2, 9, 12, 21], groups: 3 },
  {
    ...taken[0],
    name: "of many channels",
    lhs: [1, 3, 3, 256],
    rhs: [3, 3, 256, 128],
    out: [1, 3, 3, 128],
  },
  { ...taken[0], name: "small", lhs: [1, 4, 4, 3], rhs: [3, 3, 3, 2], out: [1, 4, 4, 2] },
] as readonly Case[])("$name: others stay", (each) => {
  expect(marked(runPasses(moduleOf(each), [rowConvolutionsPass]))).toBe(false);
});
