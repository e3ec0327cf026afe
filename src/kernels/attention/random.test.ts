/**
 * Random attention, forward and backward, and what the assembler makes of the kernels.
 *
 *   ATTENTION_CASES=300 ATTENTION_SECONDS=500 ATTENTION_DEVICE=gpu ATTENTION_SEED=7 npx vitest run src/kernels/attention/random.test.ts
 */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { checkForward, checkGradients } from "../../../test/support/attention-checks.ts";
import { caseText, otherLengths, randomAttention } from "../../../test/support/random-attention.ts";
import type { AttentionCase } from "../../../test/support/attention-reference.ts";
import type { Device } from "../../device/device.ts";
import { bf16, f32, f8e4m3fn } from "../../formats/dtype.ts";
import { array, dim } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { attention } from "./attention.ts";
import { attentionBackward } from "./backward.ts";

const cases = Number(process.env["ATTENTION_CASES"] ?? 2);
const seed = Number(process.env["ATTENTION_SEED"] ?? 1);
const seconds = Number(process.env["ATTENTION_SECONDS"] ?? 500);
const kind = (process.env["ATTENTION_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";
const limits =
  kind === "gpu"
    ? { length: 400, head: 256, products: 4e6 }
    : { length: 90, head: 32, products: 2e5 };

/** What is wrong with a case, forward and backward. */
async function problemsOf(device: Device, one: AttentionCase): Promise<readonly string[]> {
  // The gradients know no scores of one's own without a slope, and no FP8.
  const { sinks: _sinks, slopes: _slopes, scales: _scales, ...known } = one;
  const other = known.dtype?.bits === 8 ? { ...known, dtype: bf16 } : known;
  const problems: string[] = [];
  for (const [pass, check] of [
    ["forward", () => checkForward(device, one)],
    ["backward", () => checkGradients(device, other)],
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
    const random = new Random(seed);
    const problems: string[] = [];
    let one = randomAttention(random, limits);
    let drawn = 0;
    const until = performance.now() + seconds * 1000;
    for (; drawn < cases && performance.now() < until; drawn += 1) {
      one = drawn % 3 === 0 ? randomAttention(random, limits) : otherLengths(random, one);
      problems.push(...(await problemsOf(device, one)));
    }
    device.dispose();
    if (drawn < cases) console.log(`time for ${drawn} of ${cases} cases`);
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
    const bias = array(f32, [dim("b"), dim("h"), dim("s"), dim("t")]);
    const kernels = [
      ...attention({ ...given, logSumExp: true }).kernels(sizes),
      ...attention({ ...narrow, causal: true, logSumExp: true }).kernels(sizes),
      ...attentionBackward(given).kernels(sizes),
      ...attentionBackward({ ...given, bias })
        .kernels(sizes)
        .filter(({ name }) => name === "attention_gradients"),
    ];
    expect(assemblyProblems(kernels)).toEqual([]);
  },
);
