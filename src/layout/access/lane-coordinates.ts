/**
 * The elements of a lane, axis by axis: a coordinate is the sum of what the bits of the thread index and
 * the register contribute, so that a lane computes its own part once and registers add constants.
 *
 *   wgmma on [64, 16]: axis 0 = L2 + 2·L3 + 4·L4 + 16·W0 + 32·W1 + 8·(register bit 1)
 *
 *   | axis | of thread bits 0 … 6      | of registers 0 … 7      |
 *   |------|---------------------------|-------------------------|
 *   | 0    | 0, 0, 1, 2, 4, 16, 32     | 0, 0, 8, 8, 0, 0, 8, 8  |
 *   | 1    | 2, 4, 0, 0, 0, 0, 0       | 0, 1, 0, 1, 8, 9, 8, 9  |
 */
import { Memo } from "../../support/memo.ts";
import { threadBits } from "../algebra/index-bits.ts";
import { expand } from "../algebra/expansion.ts";
import type { Digit } from "../algebra/expansion.ts";
import { registersPerLane } from "../algebra/register-layout.ts";
import type { DistributedLayout } from "../algebra/register-layout.ts";

export interface AxisParts {
  readonly extent: number;
  /** What each bit of the thread index adds to the coordinate. */
  readonly ofBits: readonly number[];
  /** The greatest sum of them. */
  readonly most: number;
  readonly ofRegister: readonly number[];
}

/** A tile's elements in lanes and registers. */
export interface TileParts {
  readonly registers: number;
  readonly axes: readonly AxisParts[];
}

/** A window without axes, as one register of every lane. */
export const scalarParts: TileParts = Object.freeze({ registers: 1, axes: [] });

const known = new Memo<TileParts | undefined>(256);

/** Undefined where a flat layout's bits straddle axes, so that coordinates are no such sums. */
export function tileParts(
  layout: DistributedLayout,
  shape: readonly number[],
): TileParts | undefined {
  return known.get(`${layout.text} ${shape.join()}`, () => findParts(layout, shape));
}

function findParts(layout: DistributedLayout, shape: readonly number[]): TileParts | undefined {
  const registers = registersPerLane(layout, shape);
  const expansion = expand(layout, shape);
  if (expansion === undefined) return undefined;
  const axes = expansion.axes.map((digits, axis) => axisParts(digits, shape[axis] ?? 1, registers));
  return { registers, axes };
}

function axisParts(digits: readonly Digit[], extent: number, registers: number): AxisParts {
  const ofBits = Array.from({ length: threadBits }, () => 0);
  const ofRegister = Array.from({ length: registers }, () => 0);
  let place = 1;
  for (const { radix, thread, stride } of digits) {
    if (thread !== undefined) ofBits[thread] = (ofBits[thread] ?? 0) + place;
    else
      for (let register = 0; register < registers; register += 1)
        ofRegister[register] =
          (ofRegister[register] ?? 0) + (Math.floor(register / stride) % radix) * place;
    place *= radix;
  }
  return { extent, ofBits, most: ofBits.reduce((sum, part) => sum + part, 0), ofRegister };
}
