/** The report of a launch that cannot go on: where each warp stands. */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { RelatedNote } from "../../support/diagnostics.ts";
import type { Launch } from "./launch.ts";
import type { Group } from "./groups.ts";
import type { WarpState } from "./warp.ts";

const mostNotes = 16;

function lanesText(mask: number): string {
  if (mask === -1) return "all lanes";
  const lanes = Array.from({ length: 32 }, (_, lane) => lane).filter((lane) => (mask >>> lane) & 1);
  return lanes.length === 1 ? `lane ${lanes[0]}` : `lanes ${lanes.join(", ")}`;
}

function standsAt(launch: Launch, warp: WarpState, group: Group): RelatedNote {
  const step = launch.program.steps[group.step];
  const site = launch.site(step?.site ?? 0);
  const who = `warp ${warp.index} of block ${warp.block.index} (${lanesText(group.mask)})`;
  return { message: `${who} waits at ${site.instruction.opcode}`, location: site.location };
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
    message: `${opcode} of warp ${warp.index} of block ${warp.block.index} needs the whole warp`,
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
    warp.groups.all.map((group) => standsAt(launch, warp, group)),
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
