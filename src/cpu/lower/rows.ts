/**
 * Sorts, scans and searches of tiles by kernels on rows (`src/cpu/rows`): along the last axis, a row after the other. What they have not
 * is computed by the host: other axes of sorts and searches, and formats that scans would have to round between steps.
 */
import type { Axis } from "../../formats/arithmetic/index.ts";
import type { ArgFunction, ScanFunction } from "../../formats/arithmetic/functions.ts";
import type { DType } from "../../formats/dtype.ts";
import { i32, load, op, read, select } from "../loops/builder.ts";
import type { Expression } from "../loops/ir.ts";
import type { OpcodeName } from "../wasm/opcodes.ts";
import { defineArgExtreme } from "../rows/extremes.ts";
import { defineRadixSort, radixSortScratchBytes } from "../rows/radix-sort.ts";
import type { RadixSort } from "../rows/radix-sort.ts";
import { definePrefixSum } from "../rows/scans.ts";
import type { HeldTile } from "./held.ts";
import { laneKind, slotBytes } from "./lanes.ts";
import type { LaneKind } from "./lanes.ts";
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

const searched = { f32: "f32", tf32: "f32", i32: "i32", u32: "u32" } as const;

/** Where along the rows the extremes lie; false where rows are no neighbours, or the format is narrower. */
export function emitArgReduce(
  lowering: Lowering,
  fn: ArgFunction,
  source: HeldTile,
  axis: Axis,
  target: HeldTile,
): boolean {
  const { length, inner } = axis;
  const key = Object.entries(searched).find(([name]) => name === source.dtype.name)?.[1];
  if (inner !== 1 || key === undefined) return false;
  const { b } = lowering;
  const callee = definedOnce(lowering, `${fn} ${key}`, () =>
    defineArgExtreme(lowering.module, { key, fn }),
  );
  const [from, to] = [tileAddress(b, source), tileAddress(b, target)];
  overRows(lowering, axis, (row) => {
    const [found] = b.call(callee, rowAddress(from, row, length, 4), i32.of(length));
    if (found !== undefined) b.store("i32.store", rowAddress(to, row, 1, 4), found);
  });
  return true;
}

/* ---- scans ---- */

/** Formats whose steps need no rounding of their own. */
const scanned: ReadonlySet<string> = new Set(["f32", "f64", "i32", "u32", "i64", "u64"]);

/** Running sums, products or extremes along an axis; false where the format has to be rounded between steps. */
export function emitScan(
  lowering: Lowering,
  { fn, reverse }: { readonly fn: ScanFunction; readonly reverse: boolean },
  source: HeldTile,
  axis: Axis,
  target: HeldTile,
): boolean {
  const { dtype } = source;
  const { length, inner } = axis;
  if (!scanned.has(dtype.name)) return false;
  const { b } = lowering;
  const [from, to] = [tileAddress(b, source), tileAddress(b, target)];
  const kind = laneKind(dtype);
  const bytes = slotBytes(dtype);
  if (fn === "sum" && !reverse && inner === 1 && (kind === "f32" || kind === "i32")) {
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
  overRows(lowering, axis, (row) =>
    b.countedLoop(i32.of(0), i32.of(inner), 1, (lane) => {
      const first = i32.add(
        i32.mul(row, i32.of(length * step)),
        i32.add(i32.mul(lane, i32.of(bytes)), i32.of(reverse ? (length - 1) * step : 0)),
      );
      const at = b.variable(first, "at");
      const total = b.variable(load(`${kind}.load`, i32.add(from, read(at))), "total");
      b.store(`${kind}.store`, i32.add(to, read(at)), read(total));
      b.countedLoop(i32.of(1), i32.of(length), 1, () => {
        b.set(at, i32.add(read(at), i32.of(reverse ? -step : step)));
        const next = b.keep(load(`${kind}.load`, i32.add(from, read(at))));
        b.set(total, combined(fn, kind, dtype, read(total), next));
        b.store(`${kind}.store`, i32.add(to, read(at)), read(total));
      });
    }),
  );
  return true;
}

function combined(
  fn: ScanFunction,
  kind: LaneKind,
  { kind: numbers }: DType,
  total: Expression,
  next: Expression,
): Expression {
  if (fn === "sum") return op(`${kind}.add`, total, next);
  if (fn === "prod") return op(`${kind}.mul`, total, next);
  if (kind === "f32" || kind === "f64") return op(`${kind}.${fn}`, total, next);
  const order = fn === "max" ? "gt" : "lt";
  const sign = numbers === "signed" ? "s" : "u";
  return select(op(`${kind}.${order}_${sign}`, next, total), next, total);
}
