/**
 * Notes on launches that take much longer than what they compute needs.
 *
 *   TW7515: reduce_columns is estimated at 31.2 µs, 12.5 times its roofline: jit(step)/layer3/norm/reduce_sum
 *     at step.mlir:117:5
 *     because:  24 blocks keep 24 of 132 processors busy
 */
import type { Bound } from "../../ir/cost/index.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
import { codes } from "../../support/diagnostic-codes/index.ts";
import type { StepCost } from "./costs.ts";

/** Times a roofline from which on a launch is told of. */
const mostTimes = 3;
/** Microseconds besides those of launching that are worth telling of. */
const leastBesides = 2.5;

/** Whether a launch takes much longer than it has to; how many launches it is does not matter. */
export function isSlow({ roofline, estimate, launchTime }: StepCost): boolean {
  return estimate > mostTimes * roofline && estimate - launchTime > leastBesides;
}

const reasons: { readonly [B in Bound]: string } = {
  memory: "it moves more bytes of memory than it has to",
  cache: "it reads again and again what is in the cache of all processors",
  shared:
    "shared memory and the caches of processors are busy longest: it reads elements far apart, or the same ones often",
  instructions: "lanes execute more instructions for an element than memory takes time to move it",
  special: "functions of the special unit take longer than memory",
  products: "its products take longer than at the rate of their formats",
  atomics: "atomic updates take longest",
  latency:
    "its blocks wait for one load after the other, and there are too few of them to wait side by side",
  launch: "it is several launches",
};

function blocksText(blocks: readonly number[]): string {
  const counts = [...new Set(blocks)].map((count) => `${count}`).join(", ");
  return `${counts} ${blocks.length === 1 && blocks[0] === 1 ? "block" : "blocks"}`;
}

/** What there is to say of launches, each said once. */
export function costNotes(costs: readonly StepCost[]): readonly PerformanceNote[] {
  const seen = new Set<string>();
  return costs.filter(isSlow).flatMap((cost): readonly PerformanceNote[] => {
    const { kernel, name, roofline, estimate, bound, blocks, unknownLoops, location } = cost;
    const times = (estimate / roofline).toFixed(1);
    const key = `${kernel} ${roofline.toFixed(1)} ${times} ${bound} ${blocks.join()}`;
    if (seen.has(key)) return [];
    seen.add(key);
    const named = name === "" ? "" : `: ${name}`;
    const loops =
      unknownLoops === 0 ? "" : `, with ${unknownLoops} loops of unknown length counted once`;
    return [
      {
        code: "TW7515",
        message: `${kernel} is estimated at ${estimate.toFixed(1)} µs, ${times} times its roofline${named}`,
        because: `${reasons[bound]} (${blocksText(blocks)}${loops})`,
        remedy: codes.TW7515.remedy,
        position: location.position,
      },
    ];
  });
}
