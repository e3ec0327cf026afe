/**
 * Tiles of FP8 as tensor cores take them. A lane wants pairs of neighbours from all over a tile, and words of 16 bytes are read at a time; as
 * long as both factors agree, neither the order of what is summed over nor that of the results matters, so it is the one in which a lane's
 * elements lie together, and nothing goes from lane to lane:
 *
 *   keys      [tokens, d]     lane 0  elements 0 to d/4 - 1 of a token, lane 1 those behind them, …       q is put into the same order
 *   values    [tokens, e]     lane 0  elements 0 to e/8 - 1 of its tokens, lane 4 those behind them, …    sums are put back into theirs
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";
import type { Tile } from "../../lang/index.ts";

/** Lanes that have elements of one row of q or of one token's keys, and those of one row of values. */
const [lanesOfKeys, lanesOfValues] = [4, 8];

/** Rows of q or keys, [rows, d], in the order of lanes: pairs of the four lanes in turn. */
export function inOrderOfLanes<D extends DTypeName>(tile: Tile<D>): Tile<D> {
  const [rows = 0, d = 0] = tile.shape;
  return tile
    .reshape([rows, lanesOfKeys, d / (2 * lanesOfKeys), 2])
    .transpose([0, 2, 1, 3])
    .reshape([rows, d]);
}

/** A tile of values, [tokens, e], in a format of 16 bits and in the order of lanes: an element of each of the eight in turn. */
export function widenedValues(values: Tile, format: DType<"bf16">, warps: number): Tile<"bf16"> {
  const [tokens = 0, e = 0] = values.shape;
  const wide = values.cast(format);
  // A word then has two elements of two tokens, which is one step from how they are read, and no step from where they are multiplied.
  const placed = warps === 1 ? wide.layoutCast(valuesLayout(tokens, e)) : wide;
  return turned(placed, lanesOfValues, e / lanesOfValues);
}

/** Sums of such values, [rows, e], as they lie in memory, and in the lanes that have them. */
export function inOrderOfMemory(sums: Tile<"f32">, warps: number): Tile<"f32"> {
  const [rows = 0, e = 0] = sums.shape;
  const back = turned(sums, e / lanesOfValues, lanesOfValues);
  return warps === 1 ? back.layoutCast(sumsLayout(rows, e)) : back;
}

/** [rows, outer · inner] with the outer ones side by side. */
function turned<D extends DTypeName>(tile: Tile<D>, outer: number, inner: number): Tile<D> {
  const [rows = 0] = tile.shape;
  return tile
    .reshape([rows, outer, inner])
    .transpose([0, 2, 1])
    .reshape([rows, outer * inner]);
}

function registers(from: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => `R${from + index}`);
}

/** Keys of 16 bits, [tokens, d] in the order of lanes, where the rows of what is multiplied are tokens. */
export function keysLayout(tokens: number, d: number): string {
  const own = Math.log2(d / (2 * lanesOfKeys));
  const token = ["L2", "L3", "L4", ...registers(1 + own, Math.log2(tokens) - 3)];
  const element = ["R0", "L0", "L1", ...registers(1, own)];
  return `(${token.join(" ")} | ${element.join(" ")})`;
}

function valuesLayout(tokens: number, e: number): string {
  const own = Math.log2(e / lanesOfValues);
  const further = Math.log2(tokens) - 3;
  const token = ["R0", "L0", "L1", ...registers(1 + own, further)];
  const element = [...registers(1, own), "L2", "L3", "L4"];
  return `(${token.join(" ")} | ${element.join(" ")})`;
}

function sumsLayout(rows: number, e: number): string {
  // Of 8 rows each lane of the tensor cores has two, and elements of values are where the lanes that read them were.
  if (rows === 8)
    return `(R0 L0 L1 | ${registers(1, Math.log2(e / lanesOfValues)).join(" ")} L2 L3 L4)`;
  const own = Math.log2(e / lanesOfKeys);
  const row = ["L2", "L3", "L4", ...registers(own, Math.log2(rows) - 3)];
  const element = [...registers(0, own), "L0", "L1"];
  return `(${row.join(" ")} | ${element.join(" ")})`;
}
