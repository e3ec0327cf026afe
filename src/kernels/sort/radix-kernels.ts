/**
 * The kernels of a sort by digits, least significant first, each digit in one pass over memory. The totals of all
 * digits are counted at once beforehand. In a pass a block takes the next tile of a row, ranks its keys, tells how many it has
 * of each digit, and adds up what the tiles before it told, back to one that knows all before itself:
 *
 *   tile          0            1            2            3
 *   told          2|12         2|20         1|9          1|7           state, and keys of digit d
 *                                                                      tile 3 reads 9, then 20: 29 keys are before its own
 *   after that    2|12         2|20         1|9          2|36
 *
 * Keys of the tile are then put in order in shared memory, so that those of one digit are stored side by side. Tiles are taken by
 * ticket, so that a tile is only ever waited for while its block runs.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  array,
  cdiv,
  dim,
  full,
  iota,
  kernel,
  loop,
  scalar,
  slice,
  smem,
  whileLoop,
  zeros,
} from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { greatestKey, keyFormat, keysOf, numbersOf } from "./order-key.ts";
import { bitNames, digitBits, digits, rankDigits } from "./radix-rank.ts";

const { i32, u32 } = dtypes;

export interface RadixConfiguration {
  readonly warps: number;
  /** Keys of a lane. */
  readonly items: number;
}

export interface RadixForm extends RadixConfiguration {
  readonly dtype: DType;
  readonly descending: boolean;
}

/** Keys of a tile. */
export function tileKeys({ warps, items }: RadixConfiguration): number {
  return 32 * warps * items;
}

export function passesOf({ bits }: DType): number {
  return bits / digitBits;
}

/**
 * What blocks tell each other, zero at first: for each pass and row the totals of digits, a row whose first element is the next
 * ticket, and what each tile has told.
 */
export function stateShape(
  form: RadixForm,
  rows: number,
  length: number,
): readonly [passes: number, rows: number, slots: number, digits: number] {
  return [passesOf(form.dtype), rows, 2 + Math.ceil(length / tileKeys(form)), digits];
}
const [totalsSlot, ticketSlot, toldSlot] = [0, 1, 2] as const;

const [rows, length, parts] = [dim("rows"), dim("length"), dim("parts")];

/** Counts the digits of all passes; `parts` blocks share a row. */
export function countDigitsKernel(form: RadixForm): KernelDefinition {
  const { dtype, descending, warps } = form;
  const span = tileKeys(form);
  const passes = passesOf(dtype);
  return kernel(
    {
      name: "count_digits",
      grid: { row: rows, part: parts },
      warps,
      inputs: { x: array(dtype, [rows, length]) },
      inouts: { state: array(u32, [passes, rows, cdiv(length, span).add(2), digits]) },
      scratch: { counts: smem(u32, [passes, digits]) },
    },
    ({ row, part, x, state, counts }) => {
      counts.store(zeros(u32, [passes, digits]));
      loop({ from: part, to: cdiv(length, span), step: parts }, (piece) => {
        const here = slice(piece.mul(span), span);
        const keys = keysOf(x.at(row, here).load(), descending);
        const where = iota(i32, [span], 0).add(piece.mul(span)).lt(length);
        for (let pass = 0; pass < passes; pass += 1)
          counts
            .at(pass, digitOf(keys, pass * digitBits))
            .atomicAdd(full(u32, [span], 1), { where });
      });
      for (let pass = 0; pass < passes; pass += 1)
        state.at(pass, row, totalsSlot).atomicAdd(counts.at(pass).load());
    },
  ) as unknown as KernelDefinition;
}

function digitOf(keys: Tile<"u32">, shift: number | Scalar<"u32">): Tile<"i32"> {
  return keys
    .shr(shift)
    .cast(u32)
    .and(digits - 1)
    .cast(i32);
}

/** What a pass reads and writes beside the keys. */
export interface PassArrays {
  /** Where each key was: not at all, counted by this pass, or read. */
  readonly places: "none" | "first" | "read";
  /** Whether keys are written, too. */
  readonly writesKeys: boolean;
}

/** One pass; the digit and the part of the state are given with the launch. */
export function radixPassKernel(
  form: RadixForm,
  { places, writesKeys }: PassArrays,
): KernelDefinition {
  const { dtype, warps } = form;
  const span = tileKeys(form);
  const tiles = cdiv(length, span);
  const keyArray = array(dtype, [rows, length]);
  const placeArray = array(i32, [rows, length]);
  return kernel(
    {
      name: "radix_pass",
      grid: { block: rows.mul(tiles) },
      warps,
      inputs: {
        x: keyArray,
        ...(places === "read" && { from: placeArray }),
        pass: scalar(i32),
      },
      inouts: { state: array(u32, [passesOf(dtype), rows, tiles.add(2), digits]) },
      outputs: {
        ...(writesKeys && { out: keyArray }),
        ...(places !== "none" && { to: placeArray }),
      },
      scratch: {
        counts: smem(i32, [warps, digits]),
        ranks: smem(i32, [form.items, warps, 32]),
        offsets: smem(i32, [digits]),
        keys: smem(keyFormat(dtype), [span]),
        ...(places !== "none" && { moved: smem(i32, [span]) }),
      },
    },
    (given) => {
      const argument = given as unknown as PassValues;
      runPass(form, { places, writesKeys }, argument);
    },
  ) as unknown as KernelDefinition;
}

/** What the body of a pass is given; some of it only by the arrays that it has. */
interface PassValues {
  readonly x: Ref;
  readonly out: Ref;
  readonly from: Ref<"i32">;
  readonly to: Ref<"i32">;
  readonly pass: Scalar<"i32">;
  readonly state: Ref<"u32">;
  readonly counts: Ref<"i32">;
  readonly ranks: Ref<"i32">;
  readonly offsets: Ref<"i32">;
  readonly keys: Ref<"u32">;
  readonly moved: Ref<"i32">;
}

function runPass(form: RadixForm, { places, writesKeys }: PassArrays, values: PassValues): void {
  const { dtype, descending, warps } = form;
  const { pass, counts, offsets, keys } = values;
  const tiles = cdiv(length, tileKeys(form));
  const states = values.state.at(pass);
  const ticket = states.at(0, ticketSlot, 0).atomicAdd(1).cast(i32);
  const row = ticket.div(tiles);
  const tile = ticket.sub(row.mul(tiles));
  const start = tile.mul(tileKeys(form));
  const shift = pass.mul(digitBits).cast(keyFormat(dtype));
  counts.store(zeros(i32, [warps, digits]));

  const position = lanePositions(form, start);
  const own = loadedKeys(form, values.x.at(row, position), position);
  const digit = digitOf(own, shift);
  values.ranks.store(digit);
  rankDigits(values.ranks, counts, form.items);
  const { totals, starts } = placeWarps(counts);
  tell(states.at(row), tile, totals);
  const warp = iota(i32, digit.shape, 1);
  const target = counts.at(warp, digit).load().add(values.ranks.load());
  keys.at(target).store(own);
  if (places === "first") values.moved.at(target).store(position);
  if (places === "read") {
    const from = values.from.at(row, position).load({ where: position.lt(length) });
    values.moved.at(target).store(from);
  }
  const before = hear(states.at(row), tile);
  const all = states.at(row, totalsSlot).load().cast(i32);
  offsets.store(before.sub(starts).add(all.cumsum(0)).sub(all));

  const index = iota(i32, [tileKeys(form)], 0).layoutCast(coalesced(form));
  const where = index.add(start).lt(length);
  const inOrder = keys.load();
  const goal = offsets.at(digitOf(inOrder, shift)).load().add(index);
  if (writesKeys) values.out.at(row, goal).store(numbersOf(inOrder, dtype, descending), { where });
  if (places !== "none") values.to.at(row, goal).store(values.moved.load(), { where });
}

/** Keys at positions of a row; what is beyond the end comes after all keys, since it does now. */
function loadedKeys(
  { dtype, descending }: RadixForm,
  picked: { readonly load: (options: { readonly where: Tile<"bool"> }) => Tile },
  position: Tile<"i32">,
): Tile<"u32"> {
  const where = position.lt(length);
  const beyond = full(keyFormat(dtype), [1, 1, 1], greatestKey(dtype));
  return where.select(keysOf(picked.load({ where }), descending), beyond);
}

/** The positions in the row of each lane's keys, [items, warps, 32]: warp after warp, 32 side by side. */
function lanePositions({ warps, items }: RadixForm, start: Scalar<"i32">): Tile<"i32"> {
  const [item, warp, lane] = [0, 1, 2].map((axis) => iota(i32, [items, warps, 32], axis)) as [
    Tile<"i32">,
    Tile<"i32">,
    Tile<"i32">,
  ];
  const names = [
    bitNames("R", Math.log2(items)),
    bitNames("W", Math.log2(warps)),
    bitNames("L", 5),
  ].map((each) => each.join(" "));
  return warp
    .mul(32 * items)
    .add(item.mul(32))
    .add(lane)
    .add(start)
    .layoutCast(`(${names.join(" | ")})`);
}

/** Lanes side by side along what is stored. */
function coalesced({ warps, items }: RadixForm): string {
  const names = [
    ...bitNames("L", 5),
    ...bitNames("W", Math.log2(warps)),
    ...bitNames("R", Math.log2(items)),
  ];
  return `(${names.join(" ")})`;
}

/** Makes counters of digits into where each warp's keys of them begin in the tile; gives those of the tile as a whole. */
function placeWarps(counts: Ref<"i32">): {
  readonly totals: Tile<"i32">;
  readonly starts: Tile<"i32">;
} {
  const each = counts.load();
  const totals = each.sum(0);
  const starts = totals.cumsum(0).sub(totals);
  counts.store(each.cumsum(0).sub(each).add(starts));
  return { totals, starts };
}

/** A word that is told: how many keys, and above them 1 for those of the tile or 2 for those of all tiles up to it. */
const stateBit = 30;
const ofTile = 2 ** stateBit;

/** Rows are shorter than this, so that numbers of keys leave room for the state. */
export const mostKeys = ofTile - 1;

function tell(told: Ref<"u32">, tile: Scalar<"i32">, totals: Tile<"i32">): void {
  const own = totals.cast(u32).add(ofTile);
  // The first tile knows all before itself, which is nothing.
  told.at(tile.add(toldSlot)).atomicAdd(tile.eq(0).select(own.add(ofTile), own));
}

/** Tiles that are looked at together. */
const together = 4;

/** Keys of each digit in the tiles before; then this tile can tell it, too. */
function hear(told: Ref<"u32">, tile: Scalar<"i32">): Tile<"i32"> {
  const digit = iota(i32, [digits], 0);
  const nothing = zeros(u32, [digits]);
  const carry = {
    at: full(i32, [digits], 0).add(tile.sub(1)),
    sum: nothing,
    open: full(i32, [digits], 0).add(tile).gt(0),
  };
  const heard = whileLoop(
    carry,
    ({ open }) => open.reduce("or"),
    ({ at, sum, open }) => {
      const words = Array.from({ length: together }, (_, back) =>
        told
          .at(at.sub(back).maximum(0).add(toldSlot), digit)
          .atomicAdd(nothing, { where: open.and(at.ge(back)) }),
      );
      let goesOn = open;
      for (const [back, word] of words.entries()) {
        const state = word.shr(stateBit);
        const isThere = goesOn.and(state.ne(0));
        sum = sum.add(isThere.select(word.and(mostKeys), nothing));
        at = at.sub(isThere.cast(i32));
        open = open.and(goesOn.and(state.eq(2)).not());
        if (back < together - 1) goesOn = goesOn.and(state.eq(1));
      }
      return { at, sum, open };
    },
  );
  const news = tile.eq(0).select(nothing, heard.sum.add(ofTile));
  told.at(tile.add(toldSlot)).atomicAdd(news);
  return heard.sum.cast(i32);
}
