/**
 * Where the elements of a tile lie in a window of shared memory. Lane, register and run-time offset each add a part of
 * their own, as long as none carries into another digit of what is stored:
 *
 *   bf16 [64, 64] in shared(tile 8 64, swizzle 128), wgmma: row g + 8 k + 16 w, column 2 t + 8 j
 *
 *   lane      128 g + 2048 w + 4 t bytes
 *   register  1024 k + 16 j, and 2 for the second of a pair
 */
import { Memo, onceForEach } from "../../support/memo.ts";
import { threadBits } from "../algebra/index-bits.ts";
import type { AxisParts, TileParts } from "./lane-coordinates.ts";
import { completeRuns } from "./contiguous-registers.ts";
import type { RunPlace, Runs } from "./contiguous-registers.ts";
import { moveValues, partsAddUp, storedDigits, storedNumber } from "./shared-storage.ts";
import type { StoredDigit } from "./shared-storage.ts";
import type { SharedBox } from "./window.ts";

/** Where everything lies, in bits before the swizzle. */
export interface SharedPlaces {
  readonly digits: readonly StoredDigit[];
  readonly ofBits: readonly number[];
  /** Undefined where the register holds padding in every lane. */
  readonly ofRegister: readonly (number | undefined)[];
  /** All that run-time offsets may add. */
  readonly ofMoves: readonly (readonly number[])[];
}

/** Of the tiles in which places were found, by the windows that they lie in. */
const knownOf = onceForEach((_: TileParts) => new Memo<SharedPlaces | undefined>(64));

/** Undefined where parts of an element's number carry into each other. */
export function sharedPlaces(window: SharedBox, parts: TileParts): SharedPlaces | undefined {
  return knownOf(parts).get(placesKey(window), () => findPlaces(window, parts));
}

/** Equal keys mean windows whose elements lie alike. */
function placesKey({ layout, allocation, dtype, first, strides, moves }: SharedBox): string {
  const moved = moves.map(({ stride, divisor, count }) => `${stride} ${divisor} ${count}`);
  return `${layout.text} ${allocation.join()} ${dtype.bits} ${first} ${strides.join()} ${moved.join()}`;
}

function findPlaces(window: SharedBox, parts: TileParts): SharedPlaces | undefined {
  const { dtype, strides, first, moves } = window;
  const digits = storedDigits(window.layout, window.allocation);
  const bits = (number: number): number => storedNumber(digits, number) * dtype.bits;
  const ofAxes = parts.axes.map(({ ofBits, ofRegister, extent }, axis) => {
    const stride = strides[axis] ?? 0;
    return {
      ofBits: ofBits.map((part) => (part < extent ? part * stride : 0)),
      ofRegister: ofRegister.map((part) => (part < extent ? part * stride : undefined)),
    };
  });
  const components = [
    [first],
    ...moves.map(moveValues),
    ...ofAxes.flatMap((axis) => [
      ...axis.ofBits.filter((part) => part > 0).map((part) => [part]),
      axis.ofRegister.filter((part) => part !== undefined),
    ]),
  ];
  if (!partsAddUp(digits, components)) return undefined;
  return {
    digits,
    ofBits: Array.from({ length: threadBits }, (_, bit) =>
      ofAxes.reduce((sum, axis) => sum + bits(axis.ofBits[bit] ?? 0), 0),
    ),
    ofRegister: Array.from({ length: parts.registers }, (_, register) =>
      ofAxes.reduce<number | undefined>((sum, { ofRegister }) => {
        const part = ofRegister[register];
        return sum === undefined || part === undefined ? undefined : sum + bits(part);
      }, bits(first)),
    ),
    ofMoves: moves.map((move) => moveValues(move).map(bits)),
  };
}

/** Registers in aligned runs of neighbouring bytes that are inside the tile together. */
export function runsInMemory(
  { dtype }: SharedBox,
  parts: TileParts,
  { ofBits, ofRegister, ofMoves }: SharedPlaces,
  run: number,
): Runs | undefined {
  const width = run * dtype.bits;
  if ([...ofBits, ...ofMoves.flat()].some((part) => part % width !== 0)) return undefined;
  const places: RunPlace[] = [];
  ofRegister.forEach((bits, register) => {
    if (bits === undefined) return;
    const place = (bits % width) / dtype.bits;
    places.push({ register, group: Math.floor(bits / width), place });
  });
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
