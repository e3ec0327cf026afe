/**
 * Rings of a profiled kernel, as a profile. Every thread's edges are in order, so that a stack pairs them:
 *
 *   begin load 10, end load 30, begin sum 30, begin max 32, …     (load, 10–30), (max, …) within (sum, …)
 *
 * Clocks belong to processors. The launch's timer, read where a thread starts and ends, says how many cycles it has
 * a unit of and when each processor's first thread began, and so brings all clocks onto one axis.
 */
import { headSlots, slotWords } from "../../ir/profile-ring.ts";
import type { Kernel } from "../../ir/node.ts";
import { evaluateSize } from "../../ir/size.ts";
import type { DimensionValues } from "../../ir/size.ts";
import type { ProfiledKernel, ProfileSite } from "../../passes/profile-marks.ts";
import { blockCoordinates } from "../../ptx/print-ring.ts";
import type { ProfileSpan } from "./kernel-profile.ts";

interface Ring {
  readonly words: Uint32Array;
  readonly processor: number;
  readonly edges: number;
  readonly started: Instant;
  readonly ended: Instant;
}

/** One moment by both clocks. */
interface Instant {
  readonly clock: number;
  readonly timer: bigint;
}

/** What rings hold; a launch that has not come to its end may leave some without a word. */
export function readRings(
  words: Uint32Array,
  profiled: ProfiledKernel,
  dimensions: DimensionValues,
): { readonly spans: readonly ProfileSpan[]; readonly lost: number } {
  const { kernel, ringsPerBlock, sites } = profiled;
  const length = ((dimensions.get(profiled.edges) ?? 0) + headSlots) * slotWords;
  const rings = Array.from({ length: words.length / length }, (_, ring) =>
    ringOf(words.subarray(ring * length, (ring + 1) * length)),
  );
  const timeOf = commonTime(rings.filter(({ ended }) => ended.timer > 0n));
  const spans: ProfileSpan[] = [];
  let lost = 0;
  for (const [number, ring] of rings.entries()) {
    const block = placeOfBlock(kernel, dimensions, Math.floor(number / ringsPerBlock));
    const who = agentOf(kernel, number % ringsPerBlock, ringsPerBlock);
    const found = pairEdges(ring, sites);
    lost += found.lost;
    for (const { site, depth, from, to } of found.pairs)
      spans.push({
        name: site.name,
        block,
        ...who,
        depth,
        from: timeOf(ring, from),
        to: timeOf(ring, to),
        position: site.location.position,
      });
  }
  return { spans, lost };
}

function ringOf(words: Uint32Array): Ring {
  const wide = (at: number): bigint => (BigInt(words[at + 1] ?? 0) << 32n) | BigInt(words[at] ?? 0);
  return {
    words,
    processor: words[0] ?? 0,
    edges: words[1] ?? 0,
    started: { clock: Number(wide(2)), timer: wide(slotWords) },
    ended: { clock: Number(wide(2 * slotWords)), timer: wide(slotWords + 2) },
  };
}

/** Places clocks of all processors on one axis, which begins where the first thread did. */
function commonTime(rings: readonly Ring[]): (ring: Ring, clock: number) => number {
  const begin = rings.reduce<bigint | undefined>(
    (least, { started: { timer } }) => (least === undefined || timer < least ? timer : least),
    undefined,
  );
  const rate = clockRate(rings);
  const offsets = new Map<number, { readonly clock: number; readonly at: number }>();
  for (const { processor, started } of rings) {
    const known = offsets.get(processor);
    if (known !== undefined && known.clock <= started.clock) continue;
    const at = Number(started.timer - (begin ?? 0n)) * rate;
    offsets.set(processor, { clock: started.clock, at });
  }
  return ({ processor, started }, clock) => {
    const offset = offsets.get(processor) ?? { clock: started.clock, at: 0 };
    return Math.round(clock - offset.clock + offset.at);
  };
}

/** Clock ticks for one of the timer's, over all that is known. */
function clockRate(rings: readonly Ring[]): number {
  let [ticks, time] = [0, 0];
  for (const { started, ended } of rings) {
    ticks += ended.clock - started.clock;
    time += Number(ended.timer - started.timer);
  }
  return time > 0 ? ticks / time : 1;
}

function placeOfBlock(
  { grid }: Kernel,
  dimensions: DimensionValues,
  block: number,
): readonly number[] {
  const axes = grid.map(({ extent, cluster }) => ({
    extent: evaluateSize(extent, dimensions),
    cluster,
  }));
  return blockCoordinates(axes, block);
}

function agentOf(
  { threads, warps }: Kernel,
  ring: number,
  perBlock: number,
): Pick<ProfileSpan, "thread" | "warp"> {
  if (perBlock === threads.length)
    return { thread: threads[ring] ?? String(ring), warp: undefined };
  return { thread: threads[Math.floor(ring / warps)] ?? "", warp: ring % warps };
}

interface EdgePair {
  readonly site: ProfileSite;
  readonly depth: number;
  readonly from: number;
  readonly to: number;
}

function pairEdges(
  { words, edges }: Ring,
  sites: readonly ProfileSite[],
): { readonly pairs: readonly EdgePair[]; readonly lost: number } {
  const room = words.length / slotWords - headSlots;
  const open: { readonly site: ProfileSite; readonly from: number }[] = [];
  const pairs: EdgePair[] = [];
  let lost = Math.max(0, edges - room);
  for (let edge = lost; edge < edges; edge += 1) {
    const slot = (headSlots + (edge % room)) * slotWords;
    const site = sites[(words[slot] ?? 0) - 1];
    const clock = (words[slot + 2] ?? 0) + (words[slot + 3] ?? 0) * 2 ** 32;
    if (site?.edge === "begin") open.push({ site, from: clock });
    else {
      const begun = open.pop();
      // Its beginning was written over by newer edges.
      if (site === undefined || begun === undefined) lost += 1;
      else pairs.push({ site: begun.site, depth: open.length, from: begun.from, to: clock });
    }
  }
  return { pairs, lost: lost + open.length };
}
