/**
 * Random caches, and what the assembler makes of the kernels.
 *
 *   PAGED_CASES=300 PAGED_DEVICE=gpu PAGED_SEED=7 npx vitest run src/kernels/paged/random.test.ts
 */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { checkPaged } from "../../../test/support/paged-check.ts";
import { randomPaged } from "../../../test/support/random-paged.ts";
import { takesAll } from "../../../test/support/sample.ts";
import { bf16, f8e4m3fn } from "../../formats/dtype.ts";
import { open } from "../../runtime/open.ts";
import { pagedAttention } from "./paged.ts";

const count = Number(process.env["PAGED_CASES"] ?? 2);
const seed = Number(process.env["PAGED_SEED"] ?? 1);
const kind = (process.env["PAGED_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";

test(
  `random caches are read right on the ${kind}, from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const device = await open(kind, { onNotes: () => undefined });
    for (let number = seed; number < seed + count; number += 1)
      try {
        await checkPaged(device, randomPaged(number, kind === "gpu"), number);
      } catch (cause) {
        const text = JSON.stringify(randomPaged(number, kind === "gpu"));
        throw new Error(`seed ${number}: ${text}`, { cause });
      }
    device.dispose();
  },
);

const long = { b: 64, s: 1, h: 32, kv: 8, d: 128, e: 128, pages: 16384, most: 256 };

test.skipIf(!hasPtxas).each([
  ["bf16, pages of 16", bf16, { ...long, size: 16 }],
  ["bf16, pages of 64", bf16, { ...long, size: 64 }],
  ["FP8", f8e4m3fn, { ...long, size: 16 }],
  // Wide heads of as many rows have more to hold.
  ...(takesAll ? [["many rows", bf16, { ...long, size: 16, s: 512 }] as const] : []),
  // The assembler gave the registers of q to the powers here, when q was in registers.
  ["small heads", bf16, { ...long, h: 4, kv: 2, d: 16, e: 64, size: 128, s: 100 }],
  ["wide heads", bf16, { ...long, d: 256, e: 256, size: 16, s: 512 }],
] as const)("%s: no registers are spilled, no products serialised", (_, kept, sizes) => {
  const op = pagedAttention({ q: bf16, pages: { k: kept, v: kept }, causal: true });
  expect(assemblyProblems(op.kernels(sizes))).toEqual([]);
});
