/**
 * What happens to an operand between memory and tensor cores. The function sees a part of the operand as it is stored,
 * and of every further input what belongs to it, shaped to be broadcast:
 *
 *   b i8 [k, n], a part of 128 of k and 64 columns      b                              i8[128, 64]
 *                                                       scale [n], or [cdiv(k, 128), n]   bf16[1, 64]
 *
 * A part may overhang the end of k, where the operand reads as zero. What is computed of that may be anything, also no
 * number, and two operands' would be added up: it is made zero again, in products whose k has such a part.
 *
 * Tensor cores take what is computed from registers as rows of their tiles, and rows alone: the persistent kernel swaps the
 * product where b has a prologue. Further inputs travel with the operand's tiles, so that nobody waits for them.
 */
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { ceilDivSize, multiplySizes, shapeText } from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import { tensor, iota, slice, zeros } from "../../../lang/index.ts";
import type { TensorSpec, Ref, Scalar } from "../../../lang/index.ts";
import { Tile } from "../../../lang/tile.ts";
import type { Location } from "../../../support/location.ts";
import type { ProductDimensions } from "../dimensions.ts";
import { parameterName } from "../user-array-names.ts";
import { equalSizes, refused } from "../argument-errors.ts";
import { packedUnit, scalesByGroup, scaleShape } from "../weights/quantized.ts";

/** Elements along k that the smallest part of an operand has. */
const leastGroup = 16;

/** The stored operand, by its name, and the further inputs. */
export type PrologueFunction = (tiles: { readonly [name: string]: Tile }) => Tile;

export interface PrologueInput {
  readonly name: string;
  readonly dtype: DType;
  /** Elements along k that share one of it; undefined where all do. */
  readonly group: number | undefined;
  /** Rows or columns that share one of it; those of more than one are read from memory as they are needed. */
  readonly span: number;
  /** Whether each matrix of the operand's batch has its own. */
  readonly batched: boolean;
  /** How many of them a column has side by side, where groups of weights are smaller than what is stored together; 1 otherwise. */
  readonly perUnit: number;
}

/** Inputs that travel with the tiles of the operand. */
export function copiedInputs({ inputs }: Prologue): readonly PrologueInput[] {
  return inputs.filter(({ span }) => span === 1);
}

export interface QuickPrologue {
  readonly factor: number;
  /** The input, and whether each of its numbers is within the range. */
  readonly input: string;
  readonly suits: (numbers: Tile) => Tile<"bool">;
  readonly compute: PrologueFunction;
}

export interface Prologue {
  readonly operand: "a" | "b";
  /** The format that the function gives. */
  readonly as: DType;
  readonly inputs: readonly PrologueInput[];
  readonly compute: PrologueFunction;
  /** What it gives times a factor, by fewer instructions, where numbers of an input are within a range; undefined where it has no such way. */
  readonly quick: QuickPrologue | undefined;
  /** What stored rows along k are padded to a multiple of, and parts of them are multiples of. */
  readonly unit: number;
}

/** What share of k an input of a prologue has. */
export function prologueInput(
  name: string,
  { dtype, shape }: TensorSpec,
  operand: "a" | "b",
  { k, extent }: { readonly k: Size; readonly extent: Size },
  location: Location,
): PrologueInput {
  const [first = 0, second] = shape;
  if (shape.length === 1 && equalSizes(first, extent))
    return { name, dtype, group: undefined, span: 1, batched: false, perUnit: 1 };
  const group = groupOf(first, k);
  const isPart = group !== undefined && group % leastGroup === 0;
  if (shape.length === 2 && isPart && equalSizes(second ?? 0, extent))
    return { name, dtype, group, span: 1, batched: false, perUnit: 1 };
  const along = operand === "a" ? "m" : "n";
  throw refused(
    "TW9902",
    `the input ${name} of the prologue of ${operand} does not lie along it`,
    `[${along}], or [cdiv(k, group), ${along}] with a multiple of ${leastGroup} for the group`,
    shapeText(shape),
    location,
  );
}

/**
 * The group that there are so many of in k. Of numbers it is the only power of two: two of 192 could be groups of 96 or of 128, and are
 * refused.
 */
function groupOf(count: Size, k: Size): number | undefined {
  if (typeof count === "number") {
    const group = typeof k === "number" ? k / count : NaN;
    return count === 1 || Number.isInteger(Math.log2(group)) ? group : undefined;
  }
  if (count.kind !== "ceildiv" && count.kind !== "floordiv") return undefined;
  return equalSizes(count, ceilDivSize(k, count.by)) ? count.by : undefined;
}

/** The inputs of a prologue in the kernel's own dimensions. */
export function prologueSpecs(
  { operand, inputs }: Prologue,
  { batch, m, n, k }: ProductDimensions,
): { readonly [name: string]: TensorSpec } {
  const extent = operand === "a" ? m : n;
  return Object.fromEntries(
    inputs.map((input) => [
      parameterName(input.name),
      tensor(input.dtype, scaleShape(input, k, extent, input.batched ? batch : undefined)),
    ]),
  );
}

/** Whether parts of so many elements along k never lie in two groups, nor within a unit. */
export function suitsDepth({ inputs, unit }: Prologue, depth: number): boolean {
  return (
    depth % unit === 0 &&
    inputs.every(
      ({ group = depth }) => group % depth === 0 || (unit === packedUnit && depth === packedUnit),
    )
  );
}

/** k as the operand is stored. */
export function storedDepth<S extends Size>(prologue: Prologue | undefined, k: S): Size {
  const unit = prologue?.unit ?? 1;
  return unit === 1 ? k : multiplySizes(ceilDivSize(k, unit), unit);
}

/** A place in the operand: which matrix of its batch, how far along k, and from which row or column on how many. */
export interface InputPlace {
  readonly batch: Scalar<"i32">;
  readonly along: Scalar<"i32">;
  readonly start: Scalar<"i32">;
  readonly count: number;
}

/** The part of an input that belongs to a place of the operand. */
export function inputWindow(
  { group, span, batched, perUnit }: PrologueInput,
  input: Ref,
  { batch, along, start, count }: InputPlace,
): Ref {
  const own = batched ? input.at(batch) : input;
  const row = group === undefined ? own : own.at(along.div(group * perUnit));
  return span === 1
    ? row.at(slice(start.mul(perUnit), count * perUnit))
    : row.at(slice(start.div(span), 1));
}

/**
 * The operand's part as tensor cores take it. Tiles are as the operand's shape says: [rows of a, k] or [k, columns of b];
 * inputs are single rows or columns of it.
 */
export function computedOperand(
  { operand, as, inputs, compute }: Prologue,
  stored: Tile,
  given: ReadonlyMap<string, Tile>,
  /** Elements along k that are left, where the part may have more. */
  left: Scalar<"i32"> | undefined,
  location: Location,
): Tile {
  const [rows = 1, columns = 1] = stored.shape;
  const shape = operand === "a" ? [rows, 1] : [1, columns];
  const tiles: { [name: string]: Tile } = { [operand]: stored };
  for (const { name, span, perUnit } of inputs) {
    const tile = given.get(name);
    if (tile === undefined) continue;
    tiles[name] =
      perUnit === 1 ? tile.reshape(span === 1 ? shape : [1, 1]) : scalesByGroup(tile, perUnit);
  }
  const made = requireTile(compute(tiles), stored, as.name, operand, location);
  if (left === undefined) return made;
  const [axis, along] = operand === "a" ? [1, [1, columns]] : [0, [rows, 1]];
  const isInside = iota(dtypes.i32, along, { axis }).lt(left);
  return isInside.select(made, zeros(as, [rows, columns]));
}

/** Whether parts of so many elements overhang the end of k, and what is computed there may be something else than zero. */
export function overhangs({ unit }: Prologue, k: number, depth: number): boolean {
  // Units are padded with zeros, which are all that is computed of them.
  return unit === 1 && k % depth !== 0;
}

function requireTile(
  given: unknown,
  { shape }: Tile,
  dtype: DTypeName,
  operand: string,
  location: Location,
): Tile {
  const fits =
    given instanceof Tile &&
    given.dtype.name === dtype &&
    given.shape.length === shape.length &&
    given.shape.every((extent, axis) => extent === shape[axis]);
  if (fits) return given as Tile;
  throw refused(
    "TW9905",
    `the prologue of ${operand} gives another tile`,
    `a tile of ${dtype}[${shape.join(", ")}], as the specification says`,
    given instanceof Tile ? `${given.dtype.name}[${given.shape.join(", ")}]` : typeof given,
    location,
  );
}
