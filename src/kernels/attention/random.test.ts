/**
 * Random attention, forward and backward, and what the assembler makes of the kernels. The device suite runs more of them, and on a GPU.
 *
 *   ATTENTION_CASES=30 ATTENTION_SEED=7 npx vitest run src/kernels/attention/random.test.ts
 */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { checkForward, checkGradients } from "../../../test/support/attention-checks.ts";
import {
  attentionSeries,
  caseText,
  withGradients,
} from "../../../test/support/random-attention.ts";
import { takesAll } from "../../../test/support/sample.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f8e4m3fn } from "../../formats/dtype.ts";
import { tensor, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";

const cases = Number(process.env["ATTENTION_CASES"] ?? 2);
const seed = Number(process.env["ATTENTION_SEED"] ?? 1);
const kind = (process.env["ATTENTION_DEVICE"] ?? "emulator") as "emulator" | "simulator";
const limits = { length: 90, head: 32, products: 2e5 };

/** What is wrong with a case, forward and backward. */
async function problemsOf(device: Device, one: AttentionCase): Promise<readonly string[]> {
  const problems: string[] = [];
  for (const [pass, check] of [
    ["forward", () => checkForward(device, one)],
    ["backward", () => checkGradients(device, withGradients(one))],
  ] as const)
    try {
      await check();
    } catch (error) {
      problems.push(`${pass}: ${caseText(one)}: ${String(error)}`);
    }
  return problems;
}

test(
  `random attention is right on the ${kind}, from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const device = await open(kind, { onNotes: () => undefined });
    const problems: string[] = [];
    for (let drawn = 0; drawn < cases; drawn += 3)
      for (const one of attentionSeries(seed + drawn, limits, Math.min(3, cases - drawn)))
        problems.push(...(await problemsOf(device, one)));
    device.dispose();
    expect(problems).toEqual([]);
  },
);

test.skipIf(!hasPtxas)(
  "no registers are spilled, no products serialised",
  { timeout: 600_000 },
  () => {
    const given = { q: bf16, k: bf16, v: bf16, causal: true };
    const sizes = { b: 4, s: 4096, t: 4096, h: 16, kv: 2, d: 128, e: 128 };
    const narrow = { q: f8e4m3fn, k: f8e4m3fn, v: f8e4m3fn, out: bf16, scales: true };
    const bias = tensor(f32, [dim("b"), dim("h"), dim("s"), dim("t")]);
    const kernels = [
      // Kernels of packed sequences have more to hold than these, those with dropout more than those of wide heads: both are
      // assembled with the tests of theirs.
      ...(takesAll ? attention({ ...given, logSumExp: true }).kernels(sizes) : []),
      ...(takesAll ? attentionBackward(given).kernels(sizes) : []),
      ...(takesAll ? attentionBackward(given).kernels({ ...sizes, d: 256, e: 256 }) : []),
      ...attention({ ...given, causal: false, logSumExp: true }).kernels(sizes),
      ...attention({ ...narrow, causal: true, logSumExp: true }).kernels(sizes),
      ...attentionBackward({ ...given, bias })
        .kernels(sizes)
        .filter(({ name }) => name === "attention_gradients"),
    ];
    expect(assemblyProblems(kernels)).toEqual([]);
  },
);
