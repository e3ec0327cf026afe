/**
 * What one instruction of a lane moves: elements of some registers, side by side in memory from an
 * address on, where a predicate allows it. Every kind of window and layout comes down to a list of these.
 *
 *   bf16, rows of 8 neighbours a lane:   registers 0 … 7    [%d4]         ld.global.v4.b32
 *                                        registers 8 … 15   [%d4+4096]
 *   the last row overhangs:              registers 8 … 15   [%d4+4096] where %p2
 */
import type { AddressOperand, Register } from "../../module.ts";
import type { TileParts } from "./parts.ts";

export interface Unit {
  /** In the order of memory. */
  readonly registers: readonly number[];
  readonly address: AddressOperand;
  /** Undefined where it is always allowed. */
  readonly guard: Register | undefined;
  /** For a lone 4-bit element, which half of the byte it is: a number or a b32. */
  readonly half?: number | Register | undefined;
}

/** The state space as instructions spell it. */
export type Space = "global" | "shared" | "shared::cluster";

/** How a tile's window is accessed. */
export interface Access {
  readonly space: Space;
  /** Loads may go through the read-only path. */
  readonly readOnly: boolean;
  /** The units, right for every window; emits their addresses. */
  readonly units: () => readonly Unit[];
  /** Wider units, for windows that do not overhang at all. */
  readonly whole?: WholeAccess | undefined;
  /** The same by instructions of a whole warp, where that takes fewer. */
  readonly matrices?: MatrixAccess | undefined;
}

/** One, two or four words of every lane, each an 8 × 8 matrix. */
export interface MatrixGroup {
  readonly words: readonly number[];
  readonly address: AddressOperand;
}

export interface MatrixAccess {
  readonly transposed: boolean;
  /** Emits the addresses. */
  readonly groups: () => readonly MatrixGroup[];
}

export interface WholeAccess {
  /** pred, the same in all lanes: whether the window is inside. */
  readonly inside: Register;
  readonly units: () => readonly Unit[];
}

/** The most that a lane moves at once. */
export const widestBits = 128;

/**
 * Registers in runs of `run` neighbours along the axis, each in the order of the coordinate; undefined
 * where lanes or gaps break them.
 */
export function runsAlong(
  { registers, axes }: TileParts,
  axis: number,
  run: number,
): readonly (readonly number[])[] | undefined {
  const along = axes[axis];
  if (along === undefined) return undefined;
  if (along.ofBits.some((part) => part % run !== 0) || along.extent % run !== 0) return undefined;
  const places = Array.from({ length: registers }, (_, register) => {
    const coordinates = axes.map(({ ofRegister }) => ofRegister[register] ?? 0);
    const own = coordinates[axis] ?? 0;
    const group = coordinates.with(axis, Math.floor(own / run)).join();
    return { register, group, place: own % run };
  });
  return completeRuns(places, run);
}

/** A register's run, and its place there. */
export interface RunPlace {
  readonly register: number;
  readonly group: string;
  readonly place: number;
}

/** The registers of each run in their order; undefined where a run lacks some. */
export function completeRuns(
  places: readonly RunPlace[],
  run: number,
): readonly (readonly number[])[] | undefined {
  const runs = new Map<string, Map<number, number>>();
  for (const { register, group, place } of places) {
    const members = runs.get(group) ?? new Map<number, number>();
    runs.set(group, members.set(place, register));
  }
  const found = [...runs.values()].map((members) =>
    Array.from({ length: run }, (_, place) => members.get(place)).filter(
      (register) => register !== undefined,
    ),
  );
  return found.every((members) => members.length === run) ? found : undefined;
}

/** Every register on its own. */
export function singleRuns({ registers }: TileParts): readonly (readonly number[])[] {
  return Array.from({ length: registers }, (_, register) => [register]);
}
