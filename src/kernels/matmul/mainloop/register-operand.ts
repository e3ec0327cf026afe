/**
 * Rows of f32 tiles that do not lie along k. Tensor cores read tf32 from shared memory along k alone, but take rows of tiles from
 * registers, too: lanes read them there across, and no launch has to transpose the operand before. A and B are swapped where the
 * operand is b.
 *
 * Which lane has which row is free, as long as what comes out is put back. Of a tile [k, rows] in shared memory, whose pieces of 16
 * bytes are exchanged by the number of their row in eight, lanes read two neighbours at once, and no bank twice:
 *
 *   bits of a row, from the lowest      0      1      2      3      4      5
 *   in a tensor core's tile           lane 2 lane 3 lane 4 element warp 0 warp 1
 *   and is that row of the operand      1      4      2      0      3      5
 */
import type { Ref, Tile } from "../../../lang/index.ts";
import { commitShared } from "../../../lang/index.ts";
import type { PersistentConfiguration } from "../configuration.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";
import type { ProductMemory } from "../../../targets/product-instructions.ts";

/** What of a product says so; that of groups has matrices b, and a result without a batch. */
type HeldOf = Pick<MatmulProblem, "major" | "prologues" | "batched" | "sizes">;

/** What of a configuration says which operand lies along rows, and whether blocks share tiles. */
export interface TileSides extends Pick<PersistentConfiguration, "swapAB" | "cluster"> {
  /** Of an instruction that adds up elsewhere lanes hold nothing. */
  readonly sums?: ProductMemory;
}

/**
 * Whether lanes hold rows of an operand that is not computed. They would tell the other block of a pair in every step what they have
 * read, which takes a flush of caches. Rows of groups begin anywhere, and TMA reads from multiples of 16 bytes on.
 */
export function isHeld(
  { major, prologues, batched, sizes }: HeldOf,
  { split }: Recipe,
  name: "a" | "b",
  { swapAB, cluster, sums = "registers" }: TileSides,
): boolean {
  return (
    sums === "registers" &&
    split === "tf32" &&
    cluster === 1 &&
    swapAB === (name === "b") &&
    major[name] !== "k" &&
    prologues[name] === undefined &&
    !(name === "a" && batched.b && sizes.batch === undefined)
  );
}

/** The rows of a tile in registers, in the order in which lanes read them. */
export function heldRows(rows: Ref): Tile<"tf32"> {
  const read = rows.load();
  const [count = 64, depth = 0] = read.shape;
  // TMA overwrites what lanes have read here.
  commitShared();
  return read
    .reshape([count / 64, 2, 2, 2, 2, 2, 2, depth])
    .transpose([0, 1, 3, 6, 4, 2, 5, 7])
    .reshape([count, depth]) as Tile<"tf32">;
}

/** Sums of such rows, in the order of the operand. */
export function orderedSums(sums: Tile): Tile {
  const [count = 64, columns = 0] = sums.shape;
  return sums
    .reshape([count / 64, 2, 2, 2, 2, 2, 2, columns])
    .transpose([0, 1, 5, 2, 4, 6, 3, 7])
    .reshape([count, columns]);
}
