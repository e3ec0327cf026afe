/**
 * Sorts and searches of tiles by kernels on rows (`src/cpu/rows`), a row after the other; along other axes than the last they are copied to
 * rows before. Scans go down the axis with four neighbours at a time.
 */
import type { Axis } from "../../formats/arithmetic/index.ts";
import type { ArgFunction, ScanFunction } from "../../formats/arithmetic/functions.ts";
import type { DType } from "../../formats/dtype.ts";
import { f32, i32 as int32 } from "../../formats/dtype.ts";
import { i32, load, read } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import { defineArgExtreme } from "../rows/extremes.ts";
import { defineRadixSort, radixSortScratchBytes } from "../rows/radix-sort.ts";
import type { RadixSort } from "../rows/radix-sort.ts";
import { definePrefixSum } from "../rows/scans.ts";
import type { HeldTile } from "./held.ts";
import { binaryRule, castRule } from "./arithmetic.ts";
import { computesInSingle } from "./floats.ts";
import { stepFunctions } from "./identities.ts";
import {
  laneCount,
  laneKind,
  laneScalar,
  loadLanes,
  loadScalar,
  slotBytes,
  splatLanes,
  storeLanes,
  storeScalar,
} from "./lanes.ts";
import type { Lanes } from "./lanes.ts";
import { asRows } from "./row-tiles.ts";
import { tileAddress } from "./lowering.ts";
import type { Lowering } from "./lowering.ts";
import { definedOnce } from "./module-functions.ts";

/** The address of a row. */
function rowAddress(address: Expression, row: Expression, length: number, bytes: number) {
  return i32.add(address, i32.mul(row, i32.of(length * bytes)));
}

function overRows({ b }: Lowering, { outer }: Axis, body: (row: Expression) => void): void {
  b.countedLoop(i32.of(0), i32.of(outer), 1, body, "row");
}

/* ---- sorts ---- */

export interface SortedTiles {
  readonly keys: HeldTile;
  /** What moves with the keys: from where, to where; undefined for the places where keys were. */
  readonly payloads: readonly { readonly from: HeldTile | undefined; readonly to: HeldTile }[];
  readonly axis: Axis;
  readonly descending: boolean;
}

/** Rows of fewer elements are sorted by shorter digits, whose counts are sooner made. */
const longRow = 4096;

/** Sorts rows of keys where they lie. */
export function emitSort(
  lowering: Lowering,
  { keys, payloads, axis, descending }: SortedTiles,
): void {
  const { length } = axis;
  const { b } = lowering;
  const sort: RadixSort = {
    key: keys.dtype,
    descending,
    indices: payloads.length > 0,
    digit: length < longRow ? 8 : 11,
  };
  const key = `sort ${sort.key.name} ${descending} ${payloads.length > 0} ${sort.digit}`;
  const callee = definedOnce(lowering, key, () => defineRadixSort(lowering.module, sort));
  const take = (bytes: number): Expression => {
    const storage = lowering.scratch.take(bytes);
    lowering.temporaries.push(storage);
    return b.keep(i32.add(lowering.scratchAddress, i32.of(storage.offset)), "sorting");
  };
  const places = take(4 * length);
  const scratch = take(radixSortScratchBytes(sort, length));
  const keyRows = tileAddress(b, keys);
  const moved = payloads.map(({ from, to }) => ({
    from: from && tileAddress(b, from),
    to: tileAddress(b, to),
    bytes: slotBytes(to.dtype),
  }));
  overRows(lowering, axis, (row) => {
    const at = b.keep(rowAddress(keyRows, row, length, slotBytes(keys.dtype)), "keys");
    b.call(callee, at, at, places, i32.of(length), scratch);
    for (const { from, to, bytes } of moved) {
      const target = b.keep(rowAddress(to, row, length, bytes), "moved");
      const source = from && b.keep(rowAddress(from, row, length, bytes), "source");
      b.countedLoop(i32.of(0), i32.of(length), 1, (index) => {
        const place = load("i32.load", i32.add(places, i32.mul(index, i32.of(4))));
        const slot = i32.add(target, i32.mul(index, i32.of(bytes)));
        if (source === undefined) return b.store("i32.store", slot, place);
        const [loadName, storeName] = moves(bytes);
        const value = load(loadName, i32.add(source, i32.mul(place, i32.of(bytes))));
        b.store(storeName, slot, value);
      });
    }
  });
}

/** How a slot of so many bytes is moved. */
function moves(bytes: number): readonly [load: OpcodeName, store: OpcodeName] {
  if (bytes === 8) return ["i64.load", "i64.store"];
  if (bytes === 4) return ["i32.load", "i32.store"];
  return bytes === 2 ? ["i32.load16_u", "i32.store16"] : ["i32.load8_u", "i32.store8"];
}

/* ---- searches ---- */

/** The format in which elements are compared; undefined of those of 64 bits. */
function searchedAs(dtype: DType): DType | undefined {
  if (laneKind(dtype) === "f64" || laneKind(dtype) === "i64") return undefined;
  if (dtype.kind === "float") return f32;
  return dtype.name === "u32" ? dtype : int32;
}

/** Where along the rows the extremes lie; false of formats of 64 bits. */
export function emitArgReduce(
  lowering: Lowering,
  fn: ArgFunction,
  source: HeldTile,
  axis: Axis,
  target: HeldTile,
): boolean {
  const { length, outer, inner } = axis;
  const dtype = searchedAs(source.dtype);
  if (dtype === undefined) return false;
  const key = dtype === f32 ? "f32" : dtype === int32 ? "i32" : "u32";
  const isThere = inner === 1 && slotBytes(source.dtype) === 4;
  const rows = isThere ? source : asRows(lowering, source, axis, dtype);
  const { b } = lowering;
  const callee = definedOnce(lowering, `${fn} ${key}`, () =>
    defineArgExtreme(lowering.module, { key, fn }),
  );
  const [from, to] = [tileAddress(b, rows), tileAddress(b, target)];
  overRows(lowering, { ...axis, outer: outer * inner }, (row) => {
    const [found] = b.call(callee, rowAddress(from, row, length, 4), i32.of(length));
    if (found !== undefined) b.store("i32.store", rowAddress(to, row, 1, 4), found);
  });
  return true;
}

/* ---- scans ---- */

/** Running sums, products or extremes along an axis; false where vectors do not combine the format. */
export function emitScan(
  lowering: Lowering,
  { fn, reverse }: { readonly fn: ScanFunction; readonly reverse: boolean },
  source: HeldTile,
  axis: Axis,
  target: HeldTile,
): boolean {
  const { dtype } = source;
  const { length, inner } = axis;
  // Floats of 16 bits are combined in f32, and each result is rounded.
  const wide = computesInSingle(dtype) ? f32 : dtype;
  const rule = binaryRule(stepFunctions[fn], wide);
  if (rule === undefined) return false;
  const { b } = lowering;
  const [from, to] = [tileAddress(b, source), tileAddress(b, target)];
  const kind = laneKind(dtype);
  const bytes = slotBytes(dtype);
  if (
    fn === "sum" &&
    !reverse &&
    inner === 1 &&
    bytes === 4 &&
    (kind === "f32" || kind === "i32")
  ) {
    const callee = definedOnce(lowering, `prefix sum ${kind}`, () =>
      definePrefixSum(lowering.module, kind),
    );
    overRows(lowering, axis, (row) => {
      const [here, there] = [from, to].map((address) => rowAddress(address, row, length, bytes));
      if (here !== undefined && there !== undefined) b.call(callee, here, there, i32.of(length));
    });
    return true;
  }
  const step = bytes * inner;
  const { code } = lowering;
  /** Down the axis from the elements at an offset: four neighbours, or one. */
  const down = (first: Expression, many: boolean): void => {
    const at = b.variable(first, "at");
    const next = (): Lanes => {
      const address = b.keep(i32.add(from, read(at)));
      const lanes = many
        ? loadLanes(b, dtype, address)
        : splatLanes(b, dtype, loadScalar(dtype, address));
      return castRule(dtype, wide)(code, lanes);
    };
    const store = (sums: Lanes): void => {
      const address = b.keep(i32.add(to, read(at)));
      const lanes = castRule(wide, dtype)(code, sums);
      if (many) storeLanes(b, address, lanes);
      else storeScalar(b, dtype, address, laneScalar(lanes, 0));
    };
    const totals = next().parts.map((part) => b.variable(part, "total"));
    const total: Lanes = { dtype: wide, parts: totals.map(read) };
    store(total);
    b.countedLoop(i32.of(1), i32.of(length), 1, () => {
      b.set(at, i32.add(read(at), i32.of(reverse ? -step : step)));
      const { parts } = rule(code, total, next());
      totals.forEach((local, half) => {
        const part = parts[half];
        if (part !== undefined) b.set(local, part);
      });
      store(total);
    });
  };
  const vectors = inner - (inner % laneCount);
  overRows(lowering, axis, (row) => {
    const begin = i32.mul(row, i32.of(length * step));
    const start = b.keep(i32.add(begin, i32.of(reverse ? (length - 1) * step : 0)), "start");
    const offset = (lane: Expression): Expression => i32.add(start, i32.mul(lane, i32.of(bytes)));
    if (vectors > 0)
      b.countedLoop(i32.of(0), i32.of(vectors), laneCount, (lane) => down(offset(lane), true));
    if (vectors < inner)
      b.countedLoop(i32.of(vectors), i32.of(inner), 1, (lane) => down(offset(lane), false));
  });
  return true;
}
