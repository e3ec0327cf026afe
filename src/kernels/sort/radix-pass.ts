/**
 * One pass of a sort by digits. A block takes the next tile of a row, counts its digits, tells how many it has of each, ranks
 * its keys, and adds up what the tiles before it told (`decoupled-look-back.ts`). Keys of the tile are put in order in shared memory,
 * so that those of one digit are stored side by side. Tiles are taken by ticket, so that a tile is only ever waited for
 * while its block runs.
 *
 *   a warp   load · count its keys ─meet─ count, tell its digits ─meet─ where they begin ─meet─ rank · hear its digits ─meet─ store
 *
 * Warps keep their keys in registers from the first line to the ranks, and meet only where they need what others wrote.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import {
  tensor,
  barrier,
  cdiv,
  full,
  iota,
  kernel,
  scalar,
  slice,
  smem,
  warps,
  zeros,
} from "../../lang/index.ts";
import type { Barrier, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import { greatestKey, keyFormat, keysOf, numbersOf } from "./order-key.ts";
import { digitOf, length, passesOf, rows, tileKeys } from "./radix-kernels.ts";
import type { RadixForm } from "./radix-kernels.ts";
import { bitNames, digitBits, digits, rankDigits } from "./radix-rank.ts";
import { hear, tell, ticketSlot, toldSlot, totalsSlot } from "./decoupled-look-back.ts";

const { i32, u32 } = dtypes;

/** What a pass reads and writes beside the keys. */
export interface PassArrays {
  /** Where each key was: not at all, counted by this pass, or read. */
  readonly places: "none" | "first" | "read";
  /** Whether keys are written, too. */
  readonly writesKeys: boolean;
}

/** Warps of a processor, so that registers hold what lanes have of a tile. */
const residentWarps = 24;

/** One pass; the digit and the part of the state are given with the launch. */
export function radixPassKernel(
  form: RadixForm,
  { places, writesKeys }: PassArrays,
): KernelDefinition {
  const { dtype, warps: count } = form;
  const span = tileKeys(form);
  const tiles = cdiv(length, span);
  const keyArray = tensor(dtype, [rows, length]);
  const placeArray = tensor(i32, [rows, length]);
  return kernel(
    {
      name: "radix_pass",
      grid: { block: rows.mul(tiles) },
      ...{ warps: count, resident: Math.max(1, Math.floor(residentWarps / count)) },
      inputs: {
        x: keyArray,
        ...(places === "read" && { from: placeArray }),
        pass: scalar(i32),
      },
      inouts: { state: tensor(u32, [passesOf(dtype), rows, tiles.add(2), digits]) },
      outputs: {
        ...(writesKeys && { out: keyArray }),
        ...(places !== "none" && { to: placeArray }),
      },
      scratch: {
        counts: smem(i32, [count, digits], { layout: "shared()" }),
        sums: smem(i32, [2, count]),
        offsets: smem(i32, [digits], { layout: "shared()" }),
        keys: smem(keyFormat(dtype), [span], { layout: "shared()" }),
        ...(places !== "none" && { moved: smem(i32, [span], { layout: "shared()" }) }),
        met: barrier({ arrivals: count }),
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
  readonly sums: Ref<"i32">;
  readonly offsets: Ref<"i32">;
  readonly keys: Ref<"u32">;
  readonly moved: Ref<"i32">;
  readonly met: Barrier;
}

function runPass(form: RadixForm, arrays: PassArrays, values: PassValues): void {
  const { dtype, warps: count } = form;
  const { pass, counts } = values;
  const tiles = cdiv(length, tileKeys(form));
  const states = values.state.at(pass);
  const ticket = states.at(0, ticketSlot, 0).atomicAdd(1).cast(i32);
  const row = ticket.div(tiles);
  const tile = ticket.sub(row.mul(tiles));
  const shift = pass.mul(digitBits).cast(keyFormat(dtype));
  counts.store(zeros(i32, [count, digits]));
  warps((warp) => {
    new PassOfWarp(form, arrays, values, { row, tile, shift, warp }).run(states.at(row));
  });
}

/** Which tile a warp works on, and where its digits are in a key. */
interface WarpPlace {
  readonly row: Scalar<"i32">;
  readonly tile: Scalar<"i32">;
  readonly shift: Scalar<"u32">;
  readonly warp: Scalar<"i32">;
}

/**
 * What one warp does in a pass: it has rows of 32 keys that follow each other, which stay in its registers until they are
 * ranked, and digits of its own, for which it counts, tells and hears. Warps meet where they need what others have written.
 */
class PassOfWarp {
  readonly #form: RadixForm;
  readonly #arrays: PassArrays;
  readonly #values: PassValues;
  readonly #place: WarpPlace;
  /** The first of the warp's digits, and how many there are. */
  readonly #firstDigit: Scalar<"i32">;
  readonly #ownDigits: number;

  constructor(form: RadixForm, arrays: PassArrays, values: PassValues, place: WarpPlace) {
    this.#form = form;
    this.#arrays = arrays;
    this.#values = values;
    this.#place = place;
    this.#ownDigits = digits / form.warps;
    this.#firstDigit = place.warp.mul(this.#ownDigits);
  }

  run(states: Ref<"u32">): void {
    const { tile } = this.#place;
    const keys = this.#loaded();
    this.#meet();
    const own = slice(this.#firstDigit, this.#ownDigits);
    const each = this.#values.counts.at(slice(0, this.#form.warps), own).load();
    const totals = each.sum({ axis: 0 });
    tell(states.at(tile.add(toldSlot), own), tile, totals);
    const all = states.at(totalsSlot, own).load().cast(i32);
    const [starts, first] = this.#before([totals, all]);
    this.#values.counts
      .at(slice(0, this.#form.warps), own)
      .store(each.cumsum({ axis: 0 }).sub(each).add(starts));
    this.#meet();
    this.#scatter(keys);
    const heard = hear(states, tile, this.#firstDigit, this.#ownDigits);
    this.#values.offsets.at(own).store(heard.add(first).sub(starts));
    this.#meet();
    this.#store();
  }

  /** All warps have come here, and see what each of them has written. */
  #meet(): void {
    this.#values.met.arrive();
    this.#values.met.wait();
  }

  /** The positions of the warp's keys in the row that is sorted, [items, 32]: warp after warp. */
  #positions(): Tile<"i32"> {
    const { items } = this.#form;
    const item = iota(i32, [items, 32], { axis: 0 }).layoutCast(rowsOfLanes(items));
    return item
      .mul(32)
      .add(iota(i32, [items, 32], { axis: 1 }))
      .add(this.#start());
  }

  #start(): Scalar<"i32"> {
    const { tile, warp } = this.#place;
    const { items, warps: count } = this.#form;
    return tile
      .mul(count)
      .add(warp)
      .mul(32 * items);
  }

  /** Numbers at the warp's positions. */
  #own(array: Ref): Tile {
    const { items } = this.#form;
    const own = array.at(this.#place.row, slice(this.#start(), 32 * items)).load();
    return own.reshape([items, 32]).layoutCast(rowsOfLanes(items));
  }

  /** The warp's keys, which are counted by their digits; beyond the end, what comes after all keys, since it does now. */
  #loaded(): Tile<"u32"> {
    const { dtype, descending, items } = this.#form;
    const { x, counts } = this.#values;
    const beyond = full(keyFormat(dtype), [1, 1], greatestKey(dtype));
    const keys = this.#positions()
      .lt(length)
      .select(keysOf(this.#own(x), descending), beyond);
    counts.at(this.#place.warp, this.#digit(keys)).atomicAdd(full(i32, [items, 32], 1));
    return keys;
  }

  #digit(keys: Tile<"u32">): Tile<"i32"> {
    return digitOf(keys, this.#place.shift);
  }

  /** The same by other shifts: assemblers would keep digits that are known since keys were counted in registers. */
  #digitAnew(keys: Tile<"u32">): Tile<"i32"> {
    const { bits } = keyFormat(this.#form.dtype);
    const above = full(keys.dtype, [1, 1], bits - digitBits).sub(this.#place.shift);
    return keys
      .shl(above)
      .shr(bits - digitBits)
      .cast(i32);
  }

  /** How much of some numbers for each digit comes before each of the warp's digits. */
  #before(numbers: readonly Tile<"i32">[]): readonly [Tile<"i32">, Tile<"i32">] {
    const { sums } = this.#values;
    const { warp } = this.#place;
    for (const [kind, own] of numbers.entries()) sums.at(kind, warp).store(own.sum());
    this.#meet();
    const isBefore = iota(i32, [this.#form.warps], { axis: 0 }).lt(warp);
    const [starts, first] = numbers.map((own, kind) => {
      const ofWarps = sums.at(kind).load();
      const before = isBefore.select(ofWarps, full(i32, [1], 0)).sum();
      return own.cumsum({ axis: 0 }).sub(own).add(before);
    });
    if (starts === undefined || first === undefined) throw new Error("two kinds of numbers");
    return [starts, first];
  }

  /** Puts keys in the order of their digits in shared memory. */
  #scatter(own: Tile<"u32">): void {
    const values = this.#values;
    const { warp } = this.#place;
    const { places } = this.#arrays;
    const digit = this.#digitAnew(own);
    const moved =
      places === "first"
        ? this.#positions()
        : places === "read"
          ? this.#own(values.from)
          : undefined;
    for (let item = 0; item < this.#form.items; item += 1) {
      const row = <D extends DTypeName>(tile: Tile<D>): Tile<D> =>
        tile.slice([item, 0], [1, 32]).reshape([32]);
      const ranked = rankDigits(values.counts.at(warp), row(digit));
      // It is within the tile, but only the counters know: without this, lanes would test it.
      const target = ranked.and(tileKeys(this.#form) - 1);
      values.keys.at(target).store(row(own));
      if (moved !== undefined) values.moved.at(target).store(row(moved as Tile<"i32">));
    }
  }

  /** Stores keys that are in order, those of a digit side by side. */
  #store(): void {
    const { dtype, descending, items, warps: count } = this.#form;
    const values = this.#values;
    const { row, tile, warp } = this.#place;
    const { places, writesKeys } = this.#arrays;
    const inOrder = <D extends DTypeName>(buffer: Ref<D>): Tile<D> =>
      buffer
        .reshape([items, count, 32])
        .at(slice(0, items), warp)
        .load()
        .layoutCast(rowsOfLanes(items));
    const index = iota(i32, [items, 32], { axis: 0 })
      .layoutCast(rowsOfLanes(items))
      .mul(32 * count)
      .add(iota(i32, [items, 32], { axis: 1 }))
      .add(warp.mul(32));
    const where = index.add(tile.mul(tileKeys(this.#form))).lt(length);
    const keys = inOrder(values.keys);
    const goal = values.offsets.at(this.#digit(keys)).load().add(index);
    if (writesKeys) values.out.at(row, goal).store(numbersOf(keys, dtype, descending), { where });
    if (places !== "none") values.to.at(row, goal).store(inOrder(values.moved), { where });
  }
}

/** A row of 32 keys for each of a lane's registers. */
function rowsOfLanes(items: number): string {
  return `(${bitNames("R", Math.log2(items)).join(" ")} | ${bitNames("L", 5).join(" ")})`;
}
