/**
 * f64 on tensor cores: each warp multiplies by mma.sync, from registers. Fragments come from the stages of the ring, where rows are 128 bytes whose
 * 16-byte chunks are swizzled by the row. Two threads would ask the same banks for elements of two rows; so rows and columns of a tile are
 * multiplied in a permuted order, and the accumulators renamed afterwards, which moves nothing.
 *
 *   elements along k lie together     lanes t have k = t          rows 8h + 2x + y are multiplied as 8h + 4y + x
 *     a lane's load of 8 bytes        banks of chunk k / 2 xor row, where rows of lanes that load at once differ by 2
 *   elements along the tile do        lanes t have row k = t      rows 32c + 16a + 8p + 2q + s as 32c + 16s + 8a + 2q + p
 *     a load of 16 bytes, s = 0, 1    banks of chunk 4p + q xor k, where lanes that load at once have both p
 */
import { all, commitShared, dot, loop, slice, zeros } from "../../../lang/index.ts";
import type { Scalar, Tile } from "../../../lang/index.ts";
import type { Segment } from "../../../lang/pipeline/stream-k.ts";
import { dtypes } from "../../../formats/dtype.ts";
import { threadRows } from "../configuration.ts";
import { following } from "./producer.ts";
import type { TilePlace } from "../scheduler/tile-scheduler.ts";
import type { Work } from "../kernel-context.ts";
import { columnsOfTile, rowsOfTile } from "./operands.ts";
import type { Side } from "./operands.ts";

/** An order of rows or columns: extents of digits, the greatest first, and which of them comes where. */
interface Order {
  readonly digits: readonly number[];
  readonly order: readonly number[];
}

const together: Order = { digits: [4, 2], order: [1, 0] };
const apart: Order = { digits: [2, 2, 4, 2], order: [3, 0, 2, 1] };

function orderOf({ alongK }: Side): Order {
  return alongK ? together : apart;
}

/** Elements that are exchanged with each other alone, which tiles are made of. */
export const exchanged = 32;

/** The inverse of an order. */
function back({ digits, order }: Order): Order {
  return {
    digits: order.map((digit) => digits[digit] ?? 1),
    order: digits.map((_, digit) => order.indexOf(digit)),
  };
}

/** The tile with its rows or columns in an order. */
function arranged(tile: Tile, axis: 0 | 1, { digits, order }: Order): Tile {
  const shape = tile.shape.map(Number);
  const unit = digits.reduce((product, digit) => product * digit, 1);
  const split = [(shape[axis] ?? unit) / unit, ...digits];
  const moved = [0, ...order.map((digit) => digit + 1)];
  const [rows = 1, columns = 1] = shape;
  return axis === 0
    ? tile
        .reshape([...split, columns])
        .transpose([...moved, split.length])
        .reshape(shape)
    : tile
        .reshape([rows, ...split])
        .transpose([0, ...moved.map((digit) => digit + 1)])
        .reshape(shape);
}

/** Elements along k whose fragments lanes load at once: one instruction's. */
const loadedDepth = 4;

/** Fragments of both operands for some elements along k. */
type Factors = { readonly rows: Tile; readonly columns: Tile };

/** A thread's way to what lies in a slot. */
function factorsIn(
  work: Work,
  index: Scalar<"i32">,
): (slot: Scalar<"i32">, from: number) => Factors {
  const { sides, leftTiles, rightTiles } = work;
  const mine = slice(index.mul(threadRows), threadRows);
  return (slot, from) => {
    const along = slice(from, loadedDepth);
    const rows = rowsOfTile(sides.rows, leftTiles, slot, mine).at(all, along).load();
    const columns = columnsOfTile(sides.columns, rightTiles, slot).at(along, all).load();
    return {
      rows: arranged(rows, 0, orderOf(sides.rows)),
      columns: arranged(columns, 1, orderOf(sides.columns)),
    };
  };
}

function multiplied(sums: Tile, { rows, columns }: Factors): Tile {
  const [left, right] = [rows, columns];
  return dot(left, right, { accumulator: sums, dtype: dtypes.f64 });
}

/** What is multiplied next, and what it is added to. */
type Running = { readonly sums: Tile; readonly factors: Factors };

/**
 * What the steps of a segment come to, where the tile lies, and the slot after the last one. Fragments are loaded while those
 * before are multiplied, also from slot to slot
 * (4096³ took 2.21 ms on an H200; 2.44 where all fragments of a slot were loaded first):
 *
 *   load      slot 0, k 0   4   8   12   slot 1, k 0   4  …
 *   multiply                0   4    8             12  0  …
 */
export function doubleSums(
  work: Work,
  { tile, steps }: Segment,
  first: Scalar<"i32">,
  index: Scalar<"i32">,
  release: (slot: Scalar<"i32">) => void,
): { readonly product: Tile; readonly place: TilePlace; readonly slot: Scalar<"i32"> } {
  const { form, shapes, sides, full } = work;
  const place = work.place(tile);
  const factorsOf = factorsIn(work, index);
  const { stages } = form.configuration;
  /** Multiplies a slot but for its last fragments, which are loaded. */
  const throughSlot = (running: Running, slot: Scalar<"i32">): Running => {
    let { sums, factors } = running;
    for (let from = loadedDepth; from < shapes.depth; from += loadedDepth) {
      const next = factorsOf(slot, from);
      sums = multiplied(sums, factors);
      factors = next;
    }
    // TMA overwrites what lanes have read.
    commitShared();
    release(slot);
    return { sums, factors };
  };
  full.at(first).wait();
  const none: Tile = zeros(dtypes.f64, [threadRows, shapes.columns]);
  const start = { running: { sums: none, factors: factorsOf(first, 0) }, slot: first };
  const before = loop({ to: steps.sub(1), carry: start }, (_, { running, slot }) => {
    const { sums, factors } = throughSlot(running, slot);
    const next = following(slot, stages);
    full.at(next).wait();
    const later = factorsOf(next, 0);
    return { running: { sums: multiplied(sums, factors), factors: later }, slot: next };
  });
  const { sums, factors } = throughSlot(before.running, before.slot);
  const byRows = arranged(multiplied(sums, factors), 0, back(orderOf(sides.rows)));
  const product = arranged(byRows, 1, back(orderOf(sides.columns)));
  return { product, place, slot: following(before.slot, stages) };
}
