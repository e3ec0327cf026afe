/**
 * Registers whose elements lie side by side in memory, in every lane: what one instruction can move.
 *
 *   bf16, rows of 8 neighbours a lane      runs of 8 along the row: registers 0 … 7, registers 8 … 15
 */
import type { TileParts } from "./lane-coordinates.ts";

/** Lists of registers, one for each instruction. */
export type Runs = readonly (readonly number[])[];

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
): Runs | undefined {
  const along = axes[axis];
  if (along === undefined) return undefined;
  if (along.ofBits.some((part) => part % run !== 0) || along.extent % run !== 0) return undefined;
  const radices = axes.map(({ ofRegister }) => Math.max(...ofRegister) + 1);
  const places = Array.from({ length: registers }, (_, register) => {
    const own = along.ofRegister[register] ?? 0;
    const group = axes.reduce((number, { ofRegister }, position) => {
      const part = position === axis ? Math.floor(own / run) : (ofRegister[register] ?? 0);
      return number * (radices[position] ?? 1) + part;
    }, 0);
    return { register, group, place: own % run };
  });
  return completeRuns(places, run);
}

/** A register's run, and its place there. */
export interface RunPlace {
  readonly register: number;
  readonly group: number;
  readonly place: number;
}

/** The registers of each run in their order; undefined where a run lacks some. */
export function completeRuns(places: readonly RunPlace[], run: number): Runs | undefined {
  const runs = new Map<number, Map<number, number>>();
  for (const { register, group, place } of places) {
    const members = runs.get(group) ?? new Map<number, number>();
    runs.set(group, members.set(place, register));
  }
  const found: (readonly number[])[] = [];
  for (const members of runs.values()) {
    const registers: number[] = [];
    for (let place = 0; place < run; place += 1) {
      const register = members.get(place);
      if (register === undefined) return undefined;
      registers.push(register);
    }
    found.push(registers);
  }
  return found;
}

/** Every register on its own. */
export function singleRuns({ registers }: Pick<TileParts, "registers">): Runs {
  return Array.from({ length: registers }, (_, register) => [register]);
}
