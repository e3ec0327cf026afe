/**
 * Random caches, and what the assembler makes of the kernels.
 *
 *   PAGED_CASES=300 PAGED_DEVICE=gpu PAGED_SEED=7 npx vitest run src/kernels/paged/random.test.ts
 */
import { expect, test } from "vitest";
import { assemblyProblems } from "../../../test/support/clean-assembly.ts";
import { hasPtxas } from "../../../test/ptxas.ts";
import { checkPaged } from "../../../test/support/paged-check.ts";
import type { PagedCase } from "../../../test/support/paged-reference.ts";
import { bf16, f16, f8e4m3fn, f8e5m2 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { pagedAttention } from "./paged.ts";

const count = Number(process.env["PAGED_CASES"] ?? 2);
const seed = Number(process.env["PAGED_SEED"] ?? 1);
const kind = (process.env["PAGED_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";

function randomCase(number: number): PagedCase {
  const random = new Random(number);
  const pick = <T>(...choices: readonly [T, ...T[]]): T =>
    choices[Math.floor(random.uniform() * choices.length)] ?? choices[0];
  const below = (end: number): number => Math.floor(random.uniform() * end);
  const isLarge = kind === "gpu";
  const dtype = pick<DType<"bf16" | "f16">>(bf16, f16);
  const kv = pick(1, 2, 3);
  const d = pick(16, 32, 64, 80, ...(isLarge ? [128, 192, 256] : []));
  const longest = pick(1, 40, isLarge ? 1000 : 150);
  const hasWindow = random.uniform() < 0.3;
  return {
    name: `case ${number}`,
    lengths: Array.from({ length: 1 + below(isLarge ? 20 : 4) }, () => below(longest + 1)),
    s: pick(1, 1, 1, 2, 7, isLarge ? 100 : 9),
    heads: [kv * pick(1, 2, 4, 5, 8), kv, d, pick(d, 64)],
    size: pick(16, 32, 64, 128),
    ...{ dtype, kept: pick<NonNullable<PagedCase["kept"]>>(dtype, dtype, f8e4m3fn, f8e5m2) },
    causal: random.uniform() < 0.6,
    ...(hasWindow && { window: { left: below(100) } }),
    ...(random.uniform() < 0.3 && { softCap: 1 + 4 * random.uniform() }),
    ...(random.uniform() < 0.3 && { scale: random.uniform() }),
    scales: random.uniform() < 0.4,
  };
}

test(
  `random caches are read right on the ${kind}, from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const device = await open(kind);
    for (let number = seed; number < seed + count; number += 1)
      try {
        await checkPaged(device, randomCase(number), number);
      } catch (cause) {
        throw new Error(`seed ${number}: ${JSON.stringify(randomCase(number))}`, { cause });
      }
    device.dispose();
  },
);

const long = { b: 64, s: 1, h: 32, kv: 8, d: 128, e: 128, pages: 16384, most: 256 };

test.skipIf(!hasPtxas).each([
  ["bf16, pages of 16", bf16, { ...long, size: 16 }],
  ["bf16, pages of 64", bf16, { ...long, size: 64 }],
  ["FP8", f8e4m3fn, { ...long, size: 16 }],
  ["many rows", bf16, { ...long, size: 16, s: 512 }],
  // The assembler gave the registers of q to the powers here, when q was in registers.
  ["small heads", bf16, { ...long, h: 4, kv: 2, d: 16, e: 64, size: 128, s: 100 }],
  ["wide heads", bf16, { ...long, d: 256, e: 256, size: 16, s: 512 }],
] as const)("%s: no registers are spilled, no products serialised", (_, kept, sizes) => {
  const op = pagedAttention({ q: bf16, pages: { k: kept, v: kept }, causal: true });
  expect(assemblyProblems(op.kernels(sizes))).toEqual([]);
});
