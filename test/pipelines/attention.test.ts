/** Attention with shifted steps is right and clean, and fast kernels stay short. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { bf16 } from "tilewright";
import { checkKernel } from "tilewright/testing";
import { attentionOf, main } from "../../examples/attention.ts";
import { normal } from "../../examples/support/data.ts";
import { open } from "../../src/runtime/open.ts";
import { repositoryRoot } from "../source-files.ts";

const operands = Object.fromEntries(
  ["q", "k", "v"].map((name, seed) => [name, normal(bf16, [1, 256, 128], seed)]),
) as { readonly [name in "q" | "k" | "v"]: ReturnType<typeof normal<"bf16">> };

test.each([false, true])("is clean under two schedules, causal %s", async (causal) => {
  const options = { schedules: 2, seed: 3, dimensions: { processors: 2 } };
  await checkKernel(attentionOf({ causal }), operands, options);
});

test("is right", async () => {
  const device = await open("simulator");
  try {
    const { elements, worst } = await main(device);
    expect(elements).toBe(256 * 128);
    expect(worst).toBeLessThanOrEqual(1);
  } finally {
    device.dispose();
  }
});

/** The lines of an example's kernel: without imports, comments, blank lines and what checks it. */
function linesOf(example: string): number {
  const text = readFileSync(join(repositoryRoot, "examples", `${example}.ts`), "utf8");
  const [kernels = ""] = text
    .replace(/^import [^;]*;$/gms, "")
    .split(/^export async function main/m);
  const code = kernels.replace(/\/\*\*.*?\*\//gs, "").split("\n");
  return code.filter((line) => line.trim() !== "" && !line.trim().startsWith("//")).length;
}

test.each([
  ["matmul", 25],
  ["gemm", 45],
  ["attention", 90],
])("%s has at most %i lines", (example, most) => {
  expect(linesOf(example)).toBeLessThanOrEqual(most);
});
