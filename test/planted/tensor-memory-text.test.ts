/**
 * Each fault of `tensor-memory.ts` is found by the emulator, with a line, or gives other numbers, under every seed; those that do no harm are listed. One in some
 * dozens here, all of them by TILEWRIGHT_CASES=all.
 */
import { expect, test } from "vitest";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import { ptxOf, runEdited } from "../support/edited-kernel.ts";
import { isTaken, takesAll } from "../support/sample.ts";
import { expectSurvivors } from "./survivors.ts";
import type { Reason } from "./survivors.ts";
import { faultsOf, faultyKernels } from "./tensor-memory.ts";
import type { FaultyKernel } from "./tensor-memory.ts";

const target = targets.sm_100a;
const seeds = takesAll ? [1, 2, 3] : [1];

const reasons: readonly Reason[] = [
  [/relinquish\S* 1 (?:left out|late)$/, "no other block is there that waits for columns"],
  [
    /fence\.(?:mbarrier_init\S*|proxy\.async\S* 1) \S/,
    "the block is alone, and the engine sees barriers behind the other fence",
  ],
  [/fence\.proxy\.async\S* \d+ late$/, "behind the barrier, the lane that starts products has it"],
  [/fence\.proxy\.async\S* \d+ early$/, "what it is moved before is no store to shared memory"],
  [/alone: fence\.proxy\.async\S* 3 left out$/, "what was written lies in tensor memory"],
  [/wait::st\S* 1 (?:left out|early)$/, "the next wait of the warp comes before the product"],
  [/wait::ld\S* 3 (?:left out|early)$/, "the next wait of the warp comes before the columns go"],
  [/wait::\S* \d+ late$/, "what it is moved behind leaves these columns alone"],
  [
    /(?:fences \w+|barriers) of point \d+ \((?:tensor memory is allocated|all enter)/,
    "the next point orders the same",
  ],
  [
    /(?:fences \w+|barriers) of point \d+ \((?:barriers are ready|warps begin)/,
    "nothing in tensor memory or shared memory meets here",
  ],
  [
    /(?:fences \w+|barriers) of point \d+ \((?:warps have ended|all have left)/,
    "the end of the kernel orders the same",
  ],
  [
    /loop: (?:fences \w+|barriers) of point \d+ \(nobody uses/,
    "the scope's end before it orders the same",
  ],
  [
    /(?:fences \w+|barriers) of point \d+ \(other lanes may still read a barrier's phase/,
    "no lane falls a whole turn of the barrier behind the others here",
  ],
  [
    /fences before of point \d+ \(lanes may have left/,
    "the warp has only waited since the last point",
  ],
  [
    /fences after of point \d+ \(lanes may have left/,
    "what comes next is in shared memory, or in order by itself",
  ],
  [/barriers of point \d+ \(lanes may have left/, "lanes of these warps went on together"],
  [
    /fences \w+ of point \d+ \(other lanes may (?:still read|have written)/,
    "lanes meet for shared memory, or for columns of their own",
  ],
  [
    /barriers of point \d+ \(other lanes may (?:still read|have written) sums/,
    "lanes come back to columns of their own",
  ],
];

function elements(results: { readonly [name: string]: HostArray } | undefined): string {
  return Object.values(results ?? {})
    .map(({ data }) => data.join(" "))
    .join("\n");
}

/** Whether nothing tells of a fault, under some seed. */
async function survives(
  { definition, inputs }: FaultyKernel,
  text: string,
  right: string,
): Promise<boolean> {
  for (const seed of seeds) {
    try {
      const { findings, results } = await runEdited(definition, inputs, {
        ...{ target, seed, edit: () => text },
      });
      for (const { message, position } of findings)
        expect(position?.line ?? 0, message).toBeGreaterThan(0);
      if (findings.length === 0 && elements(results) === right) return true;
    } catch (error) {
      if (!(error instanceof TilewrightError)) throw error;
      expect(error.position?.line ?? 0, error.message).toBeGreaterThan(0);
    }
  }
  return false;
}

test("faults in PTX are found, or give other numbers", { timeout: 3_600_000 }, async () => {
  const [tried, survived]: [string[], string[]] = [[], []];
  for (const kernel of faultyKernels) {
    const { definition, inputs, name } = kernel;
    const clean = await runEdited(definition, inputs, { target });
    expect(clean.findings).toEqual([]);
    const right = elements(clean.results);
    const faults = faultsOf(ptxOf(definition, target)).filter((_, place) => isTaken(place, 12));
    for (const { name: fault, text } of faults) {
      tried.push(`${name}: ${fault}`);
      if (await survives(kernel, text, right)) survived.push(`${name}: ${fault}`);
    }
  }
  expect(tried.length).toBeGreaterThan(10);
  expectSurvivors("tensor-memory-text", reasons, { tried, survived });
});
