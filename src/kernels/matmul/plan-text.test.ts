/**
 * What tells plans of products apart before their kernels are traced: plans of one text have the same launches, whatever was made
 * in between, and launches that differ have different texts.
 */
import { describe, expect, test } from "vitest";
import { bf16, f16, f32, f8e4m3fn, i8 } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { printKernel } from "../../ir/printer.ts";
import { array, dim } from "../../lang/index.ts";
import { targets } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { matmul } from "./matmul.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const byColumns = { strides: [1, k] } as const;

const specs = {
  bf16: () => matmul({ a: bf16, b: bf16 }),
  f16: () => matmul({ a: f16, b: f16 }),
  "into f32": () => matmul({ a: bf16, b: bf16, out: f32 }),
  "b by columns": () => matmul({ a: bf16, b: array(bf16, [k, n], byColumns) }),
  "f32 in tf32": () => matmul({ a: f32, b: f32, precision: "tf32" }),
  "f32 in parts": () => matmul({ a: f32, b: f32, precision: "tf32x3" }),
  f8: () => matmul({ a: f8e4m3fn, b: f8e4m3fn, accumulation: "fast" }),
  i8: () => matmul({ a: i8, b: i8 }),
  "known n": () => matmul({ a: array(bf16, [m, 512]), b: array(bf16, [512, 1024]) }),
  plain: () =>
    matmul({
      ...{ a: bf16, b: bf16 },
      configuration: { kernel: "plain", rows: 64, columns: 64, depth: 32, split: 1 },
    }),
  "plain, split": () =>
    matmul({
      ...{ a: bf16, b: bf16 },
      configuration: { kernel: "plain", rows: 64, columns: 64, depth: 32, split: 4 },
    }),
};

const sizes = [
  { m: 4096, n: 4096, k: 4096 },
  { m: 16, n: 1024, k: 512 },
  { m: 100, n: 1024, k: 512 },
];

/** The launches of a plan in words: kernels, what they are given, and the memory between them. */
function launchesText(operation: Operation, dimensions: object, target: Target): string {
  const plan = operation.plan({ ...dimensions }, target);
  const launches = plan.launches.map(({ kernel, arguments: given, dimensions: own }) =>
    [printKernel(kernel.kernel), JSON.stringify(given), JSON.stringify(own)].join("\n"),
  );
  return [...launches, JSON.stringify(plan.scratch, (_, value: unknown) => value)].join("\n");
}

describe("plans of matmul", () => {
  test("have one text for one list of launches", () => {
    const known = new Map<string, string>();
    let shared = 0;
    for (let round = 0; round < 2; round += 1)
      for (const make of Object.values(specs))
        for (const each of sizes) {
          const operation = make() as unknown as Operation;
          const names = operation.kernel.dimensions.map(({ name }) => name);
          const dimensions = Object.fromEntries(
            Object.entries(each).filter(([name]) => names.includes(name)),
          );
          const { text } = operation.plan(dimensions, targets.sm_90a);
          if (text === undefined) throw new Error("nothing here is a function");
          const launches = launchesText(operation, dimensions, targets.sm_90a);
          if (known.has(text)) shared += 1;
          expect(known.get(text) ?? launches).toBe(launches);
          known.set(text, launches);
        }
    // The second round makes everything again.
    expect(shared).toBeGreaterThanOrEqual(known.size);
    expect(known.size).toBeGreaterThan(25);
  });

  test("have none where a function is traced into them", () => {
    const operation = matmul({ a: bf16, b: bf16, epilogue: ({ sums }) => sums.mul(2).cast(bf16) });
    expect(operation.plan({ m: 64, n: 64, k: 64 }).text).toBeUndefined();
    expect(matmul({ a: bf16, b: bf16 }).plan({ m: 64, n: 64, k: 64 }).text).toBeDefined();
  });

  test("have another text for another choice", () => {
    const operation = matmul({ a: bf16, b: bf16 });
    const dimensions = { m: 64, n: 64, k: 64 };
    const choice = { kernel: "plain", rows: 64, columns: 64, depth: 32, split: 2 };
    const [own, chosen] = [operation, operation.with(choice)].map((each) => each.plan(dimensions));
    expect(chosen?.text).toBeDefined();
    expect(chosen?.text).not.toBe(own?.text);
  });
});
