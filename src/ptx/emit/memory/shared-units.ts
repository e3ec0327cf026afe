/**
 * Accesses to windows on shared memory: registers whose bytes follow on, in every lane, or whole matrices, as the
 * kernel's unit says.
 */
import { matrixRows } from "../../../layout/access/ldmatrix.ts";
import type { TileParts } from "../../../layout/access/lane-coordinates.ts";
import type { Runs } from "../../../layout/access/contiguous-registers.ts";
import { runsInMemory, sharedPlaces } from "../../../layout/access/shared-addresses.ts";
import type { SharedPlaces } from "../../../layout/access/shared-addresses.ts";
import type { Unit as ChosenUnit } from "../../../layout/access/unit.ts";
import type { EmitContext } from "../context.ts";
import type { SharedValue } from "../values.ts";
import { TileGuards } from "./guards.ts";
import type { Truth } from "./guards.ts";
import { ThreadCoordinates } from "./thread-coordinates.ts";
import { matrixGroups } from "./matrices.ts";
import type { Gather } from "./gathers.ts";
import { SharedAddresses } from "./shared-addresses.ts";
import type { Access, Unit } from "./units.ts";

interface Request {
  readonly window: SharedValue;
  readonly parts: TileParts;
  readonly always: readonly Truth[];
  /** A mask alone: what index tiles pick is accessed element by element. */
  readonly gather: Gather | undefined;
}

export function sharedAccess(context: EmitContext, request: Request, unit: ChosenUnit): Access {
  const { window, parts } = request;
  const places = sharedPlaces(window, parts);
  if (places === undefined) throw new Error("parts of an address carry into each other");
  const base = {
    space: window.rank === undefined ? "shared" : "shared::cluster",
    readOnly: false,
  } as const;
  if (unit.kind === "matrices") {
    const rows = matrixRows(window.dtype, parts, places);
    if (rows === undefined) throw new Error("the tile does not lie in rows of matrices");
    const groups = () => matrixGroups(context, window, places, rows);
    return { units: () => [], matrices: { transposed: rows.transposed, groups }, ...base };
  }
  const runs = unit.kind === "shared" && runsInMemory(window, parts, places, unit.elements);
  if (!runs) throw new Error(`lanes do not hold runs in shared memory`);
  return { units: () => unitsOf(context, request, places, runs), ...base };
}

function unitsOf(
  context: EmitContext,
  { window, parts, always, gather }: Request,
  places: SharedPlaces,
  runs: Runs,
): readonly Unit[] {
  const lanes = new ThreadCoordinates(context, parts);
  const guards = new TileGuards(context, parts, lanes, { rooms: [], always, gather });
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
