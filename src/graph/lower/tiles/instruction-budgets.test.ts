/**
 * What activations cost as JAX prints them: instructions of a lane for each element, conversions, loads and stores among them. A map of bf16 has 24 and one
 * of f32 48 while memory is busy with the element.
 */
import { expect, test } from "vitest";
import { lower } from "../../../lower/stages.ts";
import { printPtx } from "../../../ptx/printer.ts";
import { defaultTarget } from "../../../targets/target.ts";
import { compilePlan } from "../../plan/compile.ts";
import { parseGraph } from "../../text/index.ts";

const count = 1 << 20;

/** Ops of one operand each by their names, and constants by their value. */
function program(element: string, lines: readonly string[]): string {
  const type = `tensor<${count}x${element}>`;
  const body = lines.map((line, i) => {
    const [kind = "", ...operands] = line.split(" ");
    const names = operands.map((each) =>
      each === "x" ? "%x" : Number.isNaN(Number(each)) ? each : `%c${each.replace(/\W/g, "_")}`,
    );
    const isArrow = kind.startsWith("chlo");
    return `%${i} = ${kind} ${names.join(", ")} : ${isArrow ? `${type} -> ${type}` : type}`;
  });
  const constants = new Set(
    lines.flatMap((line) =>
      line
        .split(" ")
        .slice(1)
        .filter((each) => !Number.isNaN(Number(each))),
    ),
  );
  const splats = Array.from(
    constants,
    (each) =>
      `%c${each.replace(/\W/g, "_")} = stablehlo.constant dense<${Number(each).toExponential()}> : ${type}`,
  );
  return `func.func @main(%x: ${type}) -> ${type} {
    ${[...splats, ...body].join("\n")}
    return %${lines.length - 1} : ${type} }`;
}

function instructionsOf(text: string): number {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  const { steps } = compilePlan(module, "main");
  const [step] = steps;
  if (step?.kind !== "launch" || steps.length > 1) throw new Error("the program is one launch");
  const executable = lower(step.kernel.kernel, defaultTarget);
  const lines = printPtx(executable.module)
    .split("\n")
    .filter(
      (line) => /^\s+(@!?%p\d+ )?[a-z]\w*\./.test(line) && !/^\s+(\.|bra|abs|neg|mov)/.test(line),
    );
  const elements = count / Number(executable.blocks) / executable.threadsPerBlock;
  return Math.ceil(lines.length / elements);
}

const activations: readonly (readonly [
  name: string,
  lines: readonly string[],
  bf16: number,
  f32: number,
])[] = [
  [
    "gelu, exact",
    [
      "stablehlo.multiply 0.5 x",
      "stablehlo.negate x",
      "stablehlo.multiply %1 0.7070310",
      "chlo.erfc %2",
      "stablehlo.multiply %0 %3",
    ],
    20,
    56,
  ],
  [
    "gelu, by tanh",
    [
      "stablehlo.multiply x x",
      "stablehlo.multiply %0 x",
      "stablehlo.multiply 0.0446777 %1",
      "stablehlo.add x %2",
      "stablehlo.multiply 0.796875 %3",
      "stablehlo.tanh %4",
      "stablehlo.add 1.0 %5",
      "stablehlo.multiply 0.5 %6",
      "stablehlo.multiply x %7",
    ],
    10,
    54,
  ],
  ["silu", ["stablehlo.logistic x", "stablehlo.multiply x %0"], 9, 36],
  [
    "its derivative",
    [
      "stablehlo.logistic x",
      "stablehlo.subtract 1.0 %0",
      "stablehlo.multiply x %1",
      "stablehlo.add 1.0 %2",
      "stablehlo.multiply %0 %3",
    ],
    12,
    40,
  ],
  [
    "softplus",
    [
      "stablehlo.abs x",
      "stablehlo.negate %0",
      "stablehlo.exponential %1",
      "stablehlo.log_plus_one %2",
      "stablehlo.maximum x 0.0",
      "stablehlo.add %4 %3",
    ],
    19,
    64,
  ],
];

test.each(activations)("%s", (_, lines, bf16, f32) => {
  const found = {
    bf16: instructionsOf(program("bf16", lines)),
    f32: instructionsOf(program("f32", lines)),
  };
  expect(found.bf16).toBeLessThanOrEqual(bf16);
  expect(found.f32).toBeLessThanOrEqual(f32);
});
