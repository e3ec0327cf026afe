/**
 * One pass of a radix sort (onesweep). A block takes the next tile of a row, computes its histogram of digits, publishes it, ranks its keys
 * and finds its prefixes by decoupled look-back (`decoupled-look-back.ts`). Keys are scattered by digit in shared memory first, so that stores
 * of one digit are contiguous. Tiles are assigned by ticket, so a tile is only ever waited for while its block runs.
 *
 *   a warp   load · count its keys │ sum, publish its digits │ scan digits │ rank · look back │ store         │ barrier
 *
 * Warps keep their keys in registers until they are ranked, and synchronize only where they need what others wrote.
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
import { greatestKey, keyFormat, keysOf, numbersOf } from "./sortable-keys.ts";
import { digitOf, length, passesOf, rows, tileKeys } from "./radix-kernels.ts";
import type { RadixForm } from "./radix-kernels.ts";
import { bitNames, digitBits, digits, rankDigits } from "./radix-rank.ts";
import {
  firstTileRow,
  lookBack,
  publishAggregates,
  ticketRow,
  totalsRow,
} from "./decoupled-look-back.ts";

const { i32, u32 } = dtypes;

/** What a pass reads and writes beside the keys. */
export interface PassArrays {
  /** Indices of keys: none, numbered by this pass, or read. */
  readonly indices: "none" | "first" | "read";
  /** Whether keys are written, too. */
  readonly writesKeys: boolean;
}

/** Warps of a processor: registers hold their share of a tile. */
const residentWarps = 24;

/** One pass; its number is an argument of the launch. */
export function radixPassKernel(
  form: RadixForm,
  { indices, writesKeys }: PassArrays,
): KernelDefinition {
  const { dtype, warps: count } = form;
  const span = tileKeys(form);
  const tiles = cdiv(length, span);
  const keyArray = tensor(dtype, [rows, length]);
  const indexArray = tensor(i32, [rows, length]);
  return kernel(
    {
      name: "radix_pass",
      grid: { block: rows.mul(tiles) },
      ...{
        warps: count,
        minBlocksPerMultiprocessor: Math.max(1, Math.floor(residentWarps / count)),
      },
      inputs: {
        x: keyArray,
        ...(indices === "read" && { from: indexArray }),
        pass: scalar(i32),
      },
      inouts: { state: tensor(u32, [passesOf(dtype), rows, tiles.add(2), digits]) },
      outputs: {
        ...(writesKeys && { out: keyArray }),
        ...(indices !== "none" && { to: indexArray }),
      },
      scratch: {
        counts: smem(i32, [count, digits], { layout: "shared()" }),
        sums: smem(i32, [2, count]),
        offsets: smem(i32, [digits], { layout: "shared()" }),
        keys: smem(keyFormat(dtype), [span], { layout: "shared()" }),
        ...(indices !== "none" && { moved: smem(i32, [span], { layout: "shared()" }) }),
        synchronized: barrier({ arrivals: count }),
      },
    },
    (given) => {
      const argument = given as unknown as PassValues;
      runPass(form, { indices, writesKeys }, argument);
    },
  ) as unknown as KernelDefinition;
}

/** The arguments of the body; optional ones exist only with their arrays. */
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
  readonly synchronized: Barrier;
}

function runPass(form: RadixForm, arrays: PassArrays, values: PassValues): void {
  const { dtype, warps: count } = form;
  const { pass, counts } = values;
  const tiles = cdiv(length, tileKeys(form));
  const states = values.state.at(pass);
  const ticket = states.at(0, ticketRow, 0).atomicAdd(1).cast(i32);
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
 * The work of one warp in a pass: consecutive rows of 32 keys, which stay in its registers until they are ranked, and digits of its own, which it
 * counts, publishes and looks back for.
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
    this.#synchronize();
    const own = slice(this.#firstDigit, this.#ownDigits);
    const each = this.#values.counts.at(slice(0, this.#form.warps), own).load();
    const totals = each.sum({ axis: 0 });
    publishAggregates(states.at(tile.add(firstTileRow), own), tile, totals);
    const all = states.at(totalsRow, own).load().cast(i32);
    const [starts, first] = this.#before([totals, all]);
    this.#values.counts
      .at(slice(0, this.#form.warps), own)
      .store(each.cumsum({ axis: 0 }).sub(each).add(starts));
    this.#synchronize();
    this.#scatter(keys);
    const prefix = lookBack(states, tile, this.#firstDigit, this.#ownDigits);
    this.#values.offsets.at(own).store(prefix.add(first).sub(starts));
    this.#synchronize();
    this.#store();
  }

  /** A barrier of all warps. */
  #synchronize(): void {
    this.#values.synchronized.arrive();
    this.#values.synchronized.wait();
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

  /** Elements at the warp's positions. */
  #own(array: Ref): Tile {
    const { items } = this.#form;
    const own = array.at(this.#place.row, slice(this.#start(), 32 * items)).load();
    return own.reshape([items, 32]).layoutCast(rowsOfLanes(items));
  }

  /** Loads the warp's keys and counts their digits; beyond the end, the greatest key, which sorts last. */
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

  /** The same by other shifts: otherwise the assembler keeps the digits of the counting step in registers. */
  #digitAnew(keys: Tile<"u32">): Tile<"i32"> {
    const { bits } = keyFormat(this.#form.dtype);
    const above = full(keys.dtype, [1, 1], bits - digitBits).sub(this.#place.shift);
    return keys
      .shl(above)
      .shr(bits - digitBits)
      .cast(i32);
  }

  /** Exclusive prefixes of two numbers for each of the warp's digits. */
  #before(numbers: readonly Tile<"i32">[]): readonly [Tile<"i32">, Tile<"i32">] {
    const { sums } = this.#values;
    const { warp } = this.#place;
    for (const [kind, own] of numbers.entries()) sums.at(kind, warp).store(own.sum());
    this.#synchronize();
    const isBefore = iota(i32, [this.#form.warps], { axis: 0 }).lt(warp);
    const [starts, first] = numbers.map((own, kind) => {
      const ofWarps = sums.at(kind).load();
      const before = isBefore.select(ofWarps, full(i32, [1], 0)).sum();
      return own.cumsum({ axis: 0 }).sub(own).add(before);
    });
    if (starts === undefined || first === undefined) throw new Error("two kinds of numbers");
    return [starts, first];
  }

  /** Scatters keys by digit in shared memory. */
  #scatter(own: Tile<"u32">): void {
    const values = this.#values;
    const { warp } = this.#place;
    const { indices } = this.#arrays;
    const digit = this.#digitAnew(own);
    const moved =
      indices === "first"
        ? this.#positions()
        : indices === "read"
          ? this.#own(values.from)
          : undefined;
    for (let item = 0; item < this.#form.items; item += 1) {
      const row = <D extends DTypeName>(tile: Tile<D>): Tile<D> =>
        tile.slice([item, 0], [1, 32]).reshape([32]);
      const ranked = rankDigits(values.counts.at(warp), row(digit));
      // In bounds by construction; the mask spares threads a test.
      const target = ranked.and(tileKeys(this.#form) - 1);
      values.keys.at(target).store(row(own));
      if (moved !== undefined) values.moved.at(target).store(row(moved as Tile<"i32">));
    }
  }

  /** Stores the keys, those of a digit side by side. */
  #store(): void {
    const { dtype, descending, items, warps: count } = this.#form;
    const values = this.#values;
    const { row, tile, warp } = this.#place;
    const { indices, writesKeys } = this.#arrays;
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
    if (indices !== "none") values.to.at(row, goal).store(inOrder(values.moved), { where });
  }
}

/** A row of 32 keys for each register of a lane. */
function rowsOfLanes(items: number): string {
  return `(${bitNames("R", Math.log2(items)).join(" ")} | ${bitNames("L", 5).join(" ")})`;
}
