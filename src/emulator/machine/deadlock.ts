/**
 * The texts of a deadlock on the emulator, and of a stopped launch: where each warp stands and what it waits for. The simulator's are in
 * `sim/deadlock.ts`.
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { RelatedNote } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { ReachedLimit } from "../../support/run-limits.ts";
import { populationCount } from "../arithmetic/bits.ts";
import { sharedOffsetMask } from "../addresses.ts";
import type { Site } from "../program/program.ts";
import type { Launch } from "./launch.ts";
import type { Group } from "./divergence.ts";
import type { WarpState } from "./warp.ts";

const mostNotes = 16;
const mostPolls = 3;

function lanesText(mask: number): string {
  if (mask === -1) return "all lanes";
  const runs: string[] = [];
  for (let first = 0; first < 32; first++) {
    if (((mask >>> first) & 1) === 0) continue;
    let last = first;
    while (last < 31 && ((mask >>> (last + 1)) & 1) === 1) last += 1;
    runs.push(last > first ? `${first} to ${last}` : `${first}`);
    first = last;
  }
  return `${populationCount(mask) === 1 ? "lane" : "lanes"} ${runs.join(", ")}`;
}

function standsAt(
  launch: Launch,
  warp: WarpState,
  group: Group,
  verb: "waits" | "stands",
): RelatedNote {
  const step = launch.program.steps[group.step];
  const site = launch.site(step?.site ?? 0);
  const who = `${warp.title} (${lanesText(group.mask)})`;
  const { instruction, location } = site;
  const where = isPolling(warp, group)
    ? pollText(launch, warp)
    : barrierText(launch, warp, group, site);
  return { message: `${who} ${verb} at ${instruction.opcode}${where}`, location };
}

/** Whether lanes spin in a loop that polls memory, rather than wait at an instruction. */
function isPolling({ spin, cluster }: WarpState, { blockedAt }: Group): boolean {
  return blockedAt !== cluster.changes && spin.polls.length > 0;
}

/** What lanes poll: semaphores of the program, or whatever lies there. */
function pollText({ naming, heap }: Launch, { spin }: WarpState): string {
  const names = spin.polls.map(({ views, offset }) =>
    views === heap ? naming.global(offset) : naming.shared(offset),
  );
  const shown = [...new Set(names)].slice(0, mostPolls);
  return `, polling ${shown.join(" and ")}`;
}

/** What lanes wait for: of those that wait for others of their block, the others know more. */
function importance(warp: WarpState, group: Group, { barrier }: Site): number {
  if (isPolling(warp, group)) return 0;
  return barrier === undefined ? 2 : 1;
}

/** The mbarrier that lanes wait for. */
function barrierText({ naming }: Launch, warp: WarpState, group: Group, { barrier }: Site): string {
  if (barrier === undefined) return "";
  const { base } = warp;
  warp.base = group.frame.base;
  const lane = 31 - Math.clz32(group.mask & -group.mask);
  const offset = barrier.address(warp, lane) & sharedOffsetMask;
  warp.base = base;
  return `, ${naming.shared(offset)}`;
}

/** Lanes went past an instruction at which others of their warp wait for them. */
export function divergence(
  launch: Launch,
  warp: WarpState,
  waiting: number,
  skipped: number,
): TilewrightError {
  const { step } = warp.groups.current;
  const site = launch.site(launch.program.steps[step]?.site ?? 0);
  const { opcode } = site.instruction;
  return new TilewrightError({
    code: "TW8021",
    message: `${opcode} of ${warp.title} needs the whole warp`,
    location: site.location,
    expected: lanesText(warp.live),
    found: `${lanesText(waiting)}; ${lanesText(skipped)} went past it`,
  });
}

/** Lanes of one warp that wait at different instructions which need all of them. */
function isDivergent({ groups, cluster }: WarpState): boolean {
  return (
    groups.all.length > 1 && groups.all.every(({ blockedAt }) => blockedAt === cluster.changes)
  );
}

/** `blocksToCome` have not started. */
export function deadlock(
  warps: readonly WarpState[],
  launch: Launch,
  blocksToCome: number,
): TilewrightError {
  const parted = warps.find(isDivergent);
  const stands = warps
    .flatMap((warp) => warp.groups.all.map((group) => ({ warp, group })))
    .map(({ warp, group }) => {
      const site = launch.site(launch.program.steps[group.step]?.site ?? 0);
      return { warp, group, rank: warp === parted ? -1 : importance(warp, group, site) };
    })
    .sort((left, right) => left.rank - right.rank);
  const [first, ...others] = stands
    .slice(0, mostNotes + 1)
    .map(({ warp, group }) => standsAt(launch, warp, group, "waits"));
  const unseen = stands.length - mostNotes - 1;
  const more = unseen > 0 ? [{ message: `and ${unseen} more groups of lanes wait` }] : [];
  return new TilewrightError({
    code: parted === undefined ? "TW8020" : "TW8021",
    message: first?.message ?? "nothing can run",
    location: first?.location,
    expected: "somebody who ends each wait",
    found: `${stands.length} groups of lanes that wait`,
    ...(blocksToCome > 0 && {
      found: `${blocksToCome} blocks have not started, since no more fit on the GPU at once`,
      remedy: "let blocks wait only for blocks before them, or launch no more than fit at once",
    }),
    notes: [...others, ...more],
  });
}

/** A launch that came to a limit of its run. */
export function stopped(
  warps: readonly WarpState[],
  launch: Launch,
  { message, expected, found }: ReachedLimit,
): TilewrightError {
  const notes = warps
    .slice(0, mostNotes)
    .flatMap((warp) => warp.groups.all.map((group) => standsAt(launch, warp, group, "stands")));
  const unseen = warps.length - mostNotes;
  if (unseen > 0) notes.push({ message: `and ${unseen} more warps run` });
  const location = notes[0]?.location ?? unknownLocation;
  return new TilewrightError({ code: "TW3022", message, location, expected, found, notes });
}
