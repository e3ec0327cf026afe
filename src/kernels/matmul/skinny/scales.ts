/**
 * Scales and zero points on their way to the warps of the skinny kernel. Those of groups along k travel with the weights of
 * their step, where TMA can take their rows: a warp that had to ask memory for them would wait for that in
 * every step, longer than it takes to multiply.
 */
import { copyAsync, slice, smem } from "../../../lang/index.ts";
import type { Barrier, Ref, Scalar, Tile } from "../../../lang/index.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { copiedInputs } from "../prologue/prologue.ts";
import { tilesName } from "../user-array-names.ts";
import type { Prologue, PrologueInput } from "../prologue/prologue.ts";
import { packedUnit, scalesByGroup, scaleTile } from "../weights/quantized.ts";
import type { QuantizedSpec } from "../weights/quantized.ts";
import { isCopied } from "../tile-shapes.ts";

/** Scales, or zero points, and their slots in the ring where they travel. */
export interface ScaleSource {
  readonly input: PrologueInput;
  readonly all: Ref;
  readonly tiles: Ref | undefined;
}

/** Inputs that travel with weights of so many columns. */
export function travellingScales(prologue: Prologue, n: number): readonly PrologueInput[] {
  return copiedInputs(prologue).filter(
    ({ dtype, group, perUnit }) => group !== undefined && isCopied(dtype, n * perUnit),
  );
}

/** Their slots, by name: those of a step have a number for each of a block's columns, and each unit along k. */
export function scaleSlots(
  travelling: readonly PrologueInput[],
  stages: number,
  units: number,
  width: number,
): { readonly [name: string]: ReturnType<typeof smem> } {
  return Object.fromEntries(
    travelling.map(({ name, dtype, perUnit }) => [
      tilesName(name),
      smem(dtype, [stages, units, width * perUnit]),
    ]),
  );
}

/**
 * How many copies bring an input's numbers of a step: one where groups are units, whose lines follow each other, or one for each unit. With 16 rows, 8192 × 28672 of
 * i4 took 32.6 µs instead of 33.2.
 */
export function scaleCopies({ group = 0, perUnit }: PrologueInput, units: number): number {
  return group * perUnit === packedUnit ? 1 : units;
}

/** Starts the copies of a step's scales for `count` columns, from `left` on in the arrays and from `first` on in the block. */
export function copyScales(
  sources: readonly ScaleSource[],
  units: number,
  { first, left, count, along, slot }: Omit<ScalePart, "unit">,
  landed: { readonly barrier: Barrier },
): void {
  for (const { input, all, tiles } of sources) {
    const { group, perUnit } = input;
    if (tiles === undefined || group === undefined) continue;
    const lines = units / scaleCopies(input, units);
    for (let unit = 0; unit < units; unit += lines) {
      const line = along.add(unit * packedUnit).div(group * perUnit);
      copyAsync(
        all.at(slice(line, lines), slice(left.mul(perUnit), count * perUnit)),
        tiles.at(slot, slice(unit, lines), slice(first.mul(perUnit), count * perUnit)),
        landed,
      );
    }
  }
}

export function scaleSources(
  { inputs }: Prologue,
  travelling: readonly PrologueInput[],
  argument: object,
): readonly ScaleSource[] {
  const named = argument as { readonly [name: string]: Ref };
  return inputs.map((input) => {
    const all = named[input.name];
    if (all === undefined) throw new Error(`the kernel has no argument ${input.name}`);
    return {
      input,
      all,
      tiles: travelling.includes(input) ? named[tilesName(input.name)] : undefined,
    };
  });
}

/** Whose scales: `count` columns from `first` on in the block, which are those from `left` on, in a step. */
export interface ScalePart {
  readonly first: Scalar<"i32">;
  readonly left: Scalar<"i32">;
  readonly count: number;
  readonly along: Scalar<"i32">;
  readonly slot: Scalar<"i32">;
  /** Which unit of the step. */
  readonly unit: number;
}

/** A row of numbers for the columns of a part, or one for all of them. */
export interface Scales {
  readonly bScale?: Tile<"f32">;
  readonly bZero?: Tile<"f32">;
}

/** As sums are multiplied by them; those of groups within a unit are multiplied by weights, as they are. */
function inFormat({ perUnit }: PrologueInput, numbers: Tile): Tile<"f32"> {
  return (perUnit === 1 ? numbers.cast(dtypes.f32) : numbers) as Tile<"f32">;
}

/** Those that do not travel. To be asked for before anything is waited for. */
export function scalesFromMemory(
  weights: QuantizedSpec,
  sources: readonly ScaleSource[],
  { left, count, along }: ScalePart,
): Scales {
  return Object.fromEntries(
    sources
      .filter(({ tiles }) => tiles === undefined)
      .map(({ input, all }) => {
        const numbers = scaleTile(weights, all, along, left, count);
        return [input.name, inFormat(input, numbers)];
      }),
  );
}

/** Those that came with the weights of a step. */
export function scalesFromSlots(
  sources: readonly ScaleSource[],
  { first, slot, unit, count }: ScalePart,
): Scales {
  return Object.fromEntries(
    sources.flatMap(({ input, tiles }) => {
      if (tiles === undefined) return [];
      const { perUnit } = input;
      const own = slice(first.mul(perUnit), count * perUnit);
      const numbers = scalesByGroup(tiles.at(slot, unit, own).load(), perUnit);
      return [[input.name, inFormat(input, numbers)]];
    }),
  );
}
