/**
 * Random cases of attention, its gradients, paged caches, products in groups, products of matrices, rows, reductions with scans, and
 * order, against float64. A case is known by its kind and its seed, so one that fails is run again by its name:
 *
 *   npm run test:gpu -- --jobs 12 --random 100 --only random      300 of attention, as many of its gradients, 1,000 products of matrices, and 100 of each other kind
 *   npm run test:gpu -- --jobs 14 --random 75 --only "random attention"      300 cases of attention: its results, gradients, sequences packed and by pages
 *   npm run test:gpu -- --jobs 12 --random 200 --only "random r"       200 of rows, 200 of reductions and scans
 *   npm run test:gpu -- --random 17-17 --only "random attention gradients"
 */
import type { Device } from "../../src/device/device.ts";
import { Random } from "../../src/support/random.ts";
import { checkForward, checkGradients } from "../support/attention-checks.ts";
import type { AttentionCase } from "../support/attention-reference.ts";
import { checkPacked } from "../support/packed-attention.ts";
import { checkPaged } from "../support/paged-check.ts";
import {
  checkDot,
  checkOuter,
  checkWeights,
  randomRagged,
  randomRaggedWeights,
} from "../support/ragged-checks.ts";
import {
  attentionSeries,
  caseText,
  randomPacked,
  withGradients,
} from "../support/random-attention.ts";
import { randomPaged } from "../support/random-paged.ts";
import { checkRandomOrder } from "../support/random-order.ts";
import { randomProducts } from "../support/random-products.ts";
import { checkRandomReductions } from "../support/random-reductions.ts";
import { checkRandomRows } from "../support/random-rows.ts";
import type { Check } from "./check.ts";

const limits = { length: 500, head: 256, products: 1e7 };
const packedLimits = { length: 200, head: 128, products: 0 };

/** Ten products of matrices a seed. */
const products = { options: 5, sizes: 2, most: { m: 300, n: 400, k: 700 } };

/** Lengths that options of one seed are tried on: few kernels are made anew for them. */
const lengths = 3;

/** Runs a case, and says which it was where it fails. */
async function named(text: string, check: () => Promise<void>): Promise<void> {
  try {
    await check();
  } catch (cause) {
    const told = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${told}\n     of ${text}`, { cause });
  }
}

async function series(seed: number, check: (one: AttentionCase) => Promise<void>): Promise<void> {
  for (const one of attentionSeries(seed, limits, lengths))
    await named(caseText(one), () => check(one));
}

type Run = (device: Device, seed: number) => Promise<void>;

/** How long kinds take that compile many kernels, or large ones, a seed. */
const works: { readonly [name: string]: number } = {
  "attention gradients": 4,
  "attention with offsets": 3,
  attention: 2,
};

const kinds: { readonly [name: string]: Run } = {
  attention: (device, seed) => series(seed, (one) => checkForward(device, one)),
  "attention gradients": (device, seed) =>
    series(seed, (one) => checkGradients(device, withGradients(one))),
  "attention with offsets": (device, seed) => {
    const one = randomPacked(new Random(seed), packedLimits);
    return named(JSON.stringify(one), () => checkPacked(device, one));
  },
  "attention by pages": (device, seed) => {
    const one = randomPaged(seed, true);
    return named(JSON.stringify(one), () => checkPaged(device, one, seed));
  },
  "products in groups": (device, seed) => {
    const one = randomRagged(seed);
    return named(JSON.stringify(one), () => checkDot(device, one));
  },
  "products in groups with weights": (device, seed) => {
    const one = randomRaggedWeights(seed);
    return named(JSON.stringify(one), () => checkWeights(device, one));
  },
  "outer products in groups": (device, seed) => {
    const one = randomRagged(seed);
    return named(JSON.stringify(one), () => checkOuter(device, one));
  },
  rows: (device, seed) => checkRandomRows(device, seed, true),
  reductions: (device, seed) => checkRandomReductions(device, seed, 2 ** 18),
  order: (device, seed) => checkRandomOrder(device, seed, 2 ** 15),
  // Seeds below these are those of the suite itself.
  matmul: async (device, seed) => {
    const problems = await randomProducts(device, { ...products, seed: 1000 + seed });
    if (problems.length > 0) throw new Error(problems.join("\n     "));
  },
};

/** Every kind, seed by seed: "100" are the first hundred seeds, "41-100" those from the 41st on. */
export function randomChecks(seeds: string): readonly Check[] {
  const numbers = seeds.split("-").map(Number);
  const [first = 1, last = 0] = numbers.length === 1 ? [1, ...numbers] : numbers;
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => first + index).flatMap(
    (seed) =>
      Object.entries(kinds).map(([kind, run]) => ({
        name: `random ${kind}, seed ${seed}`,
        work: works[kind] ?? 1,
        run: (device: Device) => run(device, seed),
      })),
  );
}
