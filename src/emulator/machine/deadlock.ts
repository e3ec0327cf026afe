/** The report of a launch that cannot go on, or that was stopped: where each warp stands. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { RelatedNote } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { ReachedLimit } from "../../support/run-limits.ts";
import { sharedOffsetMask } from "../addresses.ts";
import type { Site } from "../program/program.ts";
import type { Launch } from "./launch.ts";
import type { Group } from "./groups.ts";
import type { WarpState } from "./warp.ts";

const mostNotes = 16;

function lanesText(mask: number): string {
  if (mask === -1) return "all lanes";
  const lanes = Array.from({ length: 32 }, (_, lane) => lane).filter((lane) => (mask >>> lane) & 1);
  return lanes.length === 1 ? `lane ${lanes[0]}` : `lanes ${lanes.join(", ")}`;
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
  const where = barrierText(launch, warp, group, site);
  return { message: `${who} ${verb} at ${instruction.opcode}${where}`, location };
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
function isDivergent({ groups }: WarpState): boolean {
  return groups.all.length > 1 && groups.all.every(({ blockedAt }) => blockedAt >= 0);
}

export function deadlock(warps: readonly WarpState[], launch: Launch): TilewrightError {
  const parted = warps.find(isDivergent);
  const shown = parted === undefined ? warps : [parted, ...warps.filter((each) => each !== parted)];
  const notes = shown.flatMap((warp) =>
    warp.groups.all.map((group) => standsAt(launch, warp, group, "waits")),
  );
  const [first, ...others] = notes;
  const rest = others.length > mostNotes ? others.slice(0, mostNotes) : others;
  return new TilewrightError({
    code: parted === undefined ? "TW8020" : "TW8021",
    message: first?.message ?? "nothing can run",
    location: first?.location,
    notes: rest,
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
