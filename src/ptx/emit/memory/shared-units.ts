/**
 * Accesses to windows on shared memory: registers whose bytes follow on, in every lane, in units of up to
 * 16 bytes; whole matrices where words are all that a lane has side by side.
 */
import type { EmitContext } from "../context.ts";
import type { SharedValue } from "../values.ts";
import { TileGuards } from "./guards.ts";
import type { Truth } from "./guards.ts";
import { matrixAccess } from "./matrices.ts";
import { LaneCoordinates } from "./parts.ts";
import type { AxisParts, TileParts } from "./parts.ts";
import type { Picks } from "./picks.ts";
import { SharedAddresses, sharedPlaces } from "./shared-addresses.ts";
import type { SharedPlaces } from "./shared-addresses.ts";
import { completeRuns } from "./units.ts";
import type { Access, Unit } from "./units.ts";

interface Request {
  readonly window: SharedValue;
  readonly parts: TileParts;
  readonly always: readonly Truth[];
  /** Most elements of a unit. */
  readonly widest: number;
  /** Whether instructions of whole warps will do. */
  readonly matrices: boolean;
  /** A mask alone: what index tiles pick is accessed element by element. */
  readonly picks: Picks | undefined;
}

/** Up to so many elements of 16 bits side by side, matrices move more at once. */
const wordElements = 2;

/** Undefined where addresses must be worked out element by element. */
export function sharedAccess(context: EmitContext, request: Request): Access | undefined {
  const { window, parts, always, widest, picks } = request;
  const places = sharedPlaces(window, parts);
  if (places === undefined) return undefined;
  const matrices = request.matrices && picks === undefined;
  for (let run = widest; run * window.dtype.bits >= 8; run /= 2) {
    const runs = runsInMemory(window, parts, places, run);
    if (runs === undefined || runs.some((members) => picks?.agree(members) === false)) continue;
    return {
      space: window.rank === undefined ? "shared" : "shared::cluster",
      readOnly: false,
      units: () => unitsOf(context, request, places, runs),
      matrices:
        matrices && run <= wordElements && always.every((truth) => truth === true)
          ? matrixAccess(context, window, parts, places)
          : undefined,
    };
  }
  return undefined;
}

/** Registers in aligned runs of neighbouring bytes that are inside the tile together. */
function runsInMemory(
  { dtype }: SharedValue,
  parts: TileParts,
  { ofBits, ofRegister, ofMoves }: SharedPlaces,
  run: number,
): readonly (readonly number[])[] | undefined {
  const width = run * dtype.bits;
  if ([...ofBits, ...ofMoves.flat()].some((part) => part % width !== 0)) return undefined;
  const places = ofRegister.flatMap((bits, register) =>
    bits === undefined
      ? []
      : [
          {
            register,
            group: `${Math.floor(bits / width)}`,
            place: (bits % width) / dtype.bits,
          },
        ],
  );
  const runs = completeRuns(places, run);
  const together = runs?.every((members) =>
    parts.axes.every((axis) => insideTogether(axis, members, run)),
  );
  return together ? runs : undefined;
}

function insideTogether(
  { ofBits, ofRegister, most, extent }: AxisParts,
  members: readonly number[],
  run: number,
): boolean {
  const own = members.map((register) => ofRegister[register] ?? 0);
  const [least, greatest] = [Math.min(...own), Math.max(...own)];
  if (least === greatest || greatest + most < extent) return true;
  const aligned = [...ofBits, least, extent].every((part) => part % run === 0);
  return aligned && greatest - least < run;
}

function unitsOf(
  context: EmitContext,
  { window, parts, always, picks }: Request,
  places: SharedPlaces,
  runs: readonly (readonly number[])[],
): readonly Unit[] {
  const lanes = new LaneCoordinates(context, parts);
  const guards = new TileGuards(context, parts, lanes, { rooms: [], always, picks });
  const addresses = new SharedAddresses(context, window, places);
  const units: Unit[] = [];
  for (const registers of runs) {
    const [first = 0] = registers;
    const guard = guards.of(first);
    if (guard === false) continue;
    units.push({
      registers,
      address: addresses.of((places.ofRegister[first] ?? 0) >> 3),
      guard: guard === true ? undefined : guard,
    });
  }
  return units;
}
