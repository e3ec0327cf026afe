/** Windows that grow: scans of the library from a length on, the same numbers as windows. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { disagreement, evaluate, tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { numbersOf } from "../../evaluate/scalars.ts";
import { allocateTensorData, sizeOf } from "../../ops/index.ts";
import type { ElementType } from "../../ops/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";
import { leastScanned } from "./cumulative.ts";

const seed = 11;
let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

interface Case {
  readonly kind: string;
  readonly element: ElementType;
  readonly init: string;
  readonly shape: readonly number[];
  readonly axis: number;
  readonly isReverse: boolean;
}

function textOf({ kind, element, init, shape, axis, isReverse }: Case): string {
  const extent = shape[axis] ?? 1;
  const type = `tensor<${shape.join("x")}x${element}>`;
  const scalar = `tensor<${element}>`;
  const sizes = shape.map((_, each) => (each === axis ? extent : 1)).join(", ");
  const pads = shape.map((_, each) =>
    each !== axis ? "[0, 0]" : isReverse ? `[0, ${extent - 1}]` : `[${extent - 1}, 0]`,
  );
  return `func.func @main(%x: ${type}) -> ${type} {
    %i = stablehlo.constant dense<${init}> : ${scalar}
    %0 = "stablehlo.reduce_window"(%x, %i) <{padding = dense<[${pads.join(", ")}]> : tensor<${shape.length}x2xi64>, window_dimensions = array<i64: ${sizes}>}> ({
    ^bb0(%a: ${scalar}, %b: ${scalar}):
      %s = stablehlo.${kind} %a, %b : ${scalar}
      stablehlo.return %s : ${scalar}
    }) : (${type}, ${scalar}) -> ${type}
    return %0 : ${type}
  }`;
}

function moduleOf(text: string) {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

function inputOf({ element, shape }: Case): Tensor {
  const random = new Random(seed);
  const lanes = allocateTensorData(element, sizeOf(shape));
  for (let i = 0; i < lanes.length; i++) {
    const number = 0.9 + 0.2 * random.uniform();
    const whole = Math.floor(100 * random.uniform());
    lanes[i] = (element === "f32" ? number : element === "i64" ? BigInt(whole) : whole) as never;
  }
  return tensor(element, shape, lanes);
}

const long = 137;
const plain = { element: "f32", init: "0.0", shape: [2, long], axis: 1, isReverse: false } as const;

const cases: readonly Case[] = [
  { ...plain, kind: "add" },
  { ...plain, kind: "add", isReverse: true },
  { ...plain, kind: "add", init: "0.5" },
  { ...plain, kind: "add", init: "0.5", isReverse: true, shape: [long, 3], axis: 0 },
  { ...plain, kind: "multiply", init: "1.0" },
  { ...plain, kind: "multiply", init: "1.01", isReverse: true },
  { ...plain, kind: "maximum", init: "0xFF800000" },
  { ...plain, kind: "minimum", init: "0.95" },
  { ...plain, kind: "add", element: "i32", init: "3" },
  { ...plain, kind: "multiply", element: "i64", init: "1", shape: [2, long, 2] },
  { ...plain, kind: "minimum", element: "i64", init: "9223372036854775807" },
  { ...plain, kind: "maximum", element: "i32", init: "50" },
];

describe(`on the simulator, seed ${seed}`, () => {
  test.each(cases)("$kind $element $init $shape reverse $isReverse", async (each) => {
    const module = moduleOf(textOf(each));
    const plan = compilePlan(module, "main");
    expect(planText(plan)).toMatch(/scan/);
    const inputs = [inputOf(each)];
    const program = await Program.load(device, plan);
    try {
      const [found] = await program.run(inputs);
      const [ours] = evaluate(module, "main", inputs);
      const [exact] = evaluate(module, "main", inputs, { widened: true });
      expect(disagreement(found as Tensor, ours as Tensor, exact as Tensor)).toBeUndefined();
    } finally {
      program.dispose();
    }
  });
});

test("a product of a stretch may leave the range of f32 where no product of a window does", async () => {
  const each: Case = { ...plain, kind: "multiply", init: "1.0", shape: [long], axis: 0 };
  const lanes = Float32Array.from({ length: long }, (_, i) => (i < 20 ? 1e-2 : i < 40 ? 1e2 : 1));
  const program = await Program.load(device, compilePlan(moduleOf(textOf(each)), "main"));
  try {
    const [found] = await program.run([tensor("f32", [long], lanes)]);
    expect((found as Tensor).data.at(-1)).toBeCloseTo(1, 4);
  } finally {
    program.dispose();
  }
});

test("initial values of bf16 are counted beyond what bf16 counts", async () => {
  const each: Case = { ...plain, kind: "add", element: "bf16", init: "2.0", shape: [300], axis: 0 };
  const program = await Program.load(device, compilePlan(moduleOf(textOf(each)), "main"));
  try {
    const [found] = await program.run([tensor("bf16", [300], new Uint16Array(300))]);
    // Of 300 windows the 258th has 42 places before the array, and the start.
    expect(numbersOf(found as Tensor)[257]).toBe(2 * 43);
  } finally {
    program.dispose();
  }
});

test("windows that are short, or do not grow, stay windows", () => {
  const plans = [
    textOf({ ...plain, kind: "add", shape: [2, leastScanned - 1] }),
    textOf({ ...plain, kind: "add" }).replaceAll(`[${long - 1}, 0]`, `[${long - 2}, 1]`),
    textOf({ ...plain, kind: "add" }).replaceAll("stablehlo.add %a, %b", "stablehlo.add %a, %a"),
  ].map((text) => planText(compilePlan(moduleOf(text), "main")));
  for (const plan of plans) expect(plan).not.toMatch(/scan/);
});
