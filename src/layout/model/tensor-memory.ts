/**
 * How tiles lie in tensor memory, and which registers of which lane each shape of `tcgen05.ld` and `tcgen05.st` fills of them. Row bits of a tile
 * of 128 rows, and its columns counted in words of 32 bits:
 *
 *   | shape    | row bits 0 … 6           | column bits                 |
 *   |----------|--------------------------|-----------------------------|
 *   | 32x32b   | L0 L1 L2 L3 L4 W0 W1     | registers                   |
 *   | 16x64b   | L2 L3 L4 L0 half W0 W1   | L1, registers               |
 *   | 16x128b  | L2 L3 L4 R  half W0 W1   | L0 L1, registers            |
 *   | 16x256b  | L2 L3 L4 R  half W0 W1   | a register bit, L0 L1, registers |
 *   | 16x32bx2 | L0 L1 L2 L3 half W0 W1   | registers, L4 last          |
 *
 * Shapes of 16 rows take two instructions, for each half of a quarter one; tiles of 64 rows have the first halves alone. Elements of 8 and 16
 * bits that share a word are its lowest register bits. Where a thread has several warpgroups, each has its share of the columns.
 */
import type { AnyOp, Kernel, Op, Value } from "../../ir/node.ts";
import { tmemPacking, tmemPart, usualTmemShape } from "../../ir/infer/tensor-memory.ts";
import { tmemShapeNamed } from "../../ir/ops/tensor-memory.ts";
import type { TmemShape } from "../../ir/ops/tensor-memory.ts";
import { isWindow } from "../../ir/traits.ts";
import { opName } from "../../ir/op-names.ts";
import { refOf, walkOps } from "../../ir/traverse.ts";
import { onceForEach } from "../../support/memo.ts";
import { knownLayout } from "../algebra/parse-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import { tmemColumns, tmemHalvedScales, tmemMatrix, tmemScales } from "../algebra/tensor-memory.ts";
import type { TmemLayout } from "../algebra/tensor-memory.ts";

/** What says how tiles lie: an allocation, or a member of a union. */
export type TmemBuffer = Op<"alloc_tmem"> | Op<"tmem_member">;

/** How the tiles of a buffer lie. */
export function tmemStorage({ attributes }: TmemBuffer): TmemLayout {
  const { dtype, shape, packed = false, scales = false, halves = false, pair = false } = attributes;
  if (scales) return halves ? tmemHalvedScales : tmemScales;
  const packing = tmemPacking(dtype, packed);
  if (shape.at(-2) === 128) return tmemMatrix("full", packing);
  // Each half of the lanes has columns of its own, and the rows of a that they are multiplied by.
  return tmemMatrix(pair ? (packed ? "twice" : "pair") : "half", packing);
}

/** Blocks that make a product together. */
export function blocksTogether(op: TmemBuffer | Op<"tcgen05_mma"> | Op<"tcgen05_copy">): 1 | 2 {
  return op.attributes.pair === true ? 2 : 1;
}

/** Elements that share a column; of scales there are four, in each of four rows. */
export function packingOf(storage: TmemLayout): number {
  return storage.kind === "scales" ? 4 : storage.packing;
}

/** Columns of 32 bits that one tile of a buffer takes. */
export function tileColumns(op: TmemBuffer): number {
  const { dtype, shape } = op.attributes;
  return tmemColumns(tmemStorage(op), shape.slice(-2), dtype.bits);
}

/** Columns of all of its tiles. */
export function allocatedColumns(op: Op<"alloc_tmem">): number {
  return op.attributes.shape.slice(0, -2).reduce((count, each) => count * each, tileColumns(op));
}

/** The columns of which a window of tensor memory has both halves as an axis of its own; undefined of any other. */
export function halvedColumns(
  window: Value,
  definitions: ReadonlyMap<Value, AnyOp>,
): number | undefined {
  const op = definitions.get(window);
  if (op === undefined || !isWindow(op)) return undefined;
  if (op.kind === "reshape_ref") return Number(refOf(op.operands.ref).shape.at(-1));
  return halvedColumns(op.operands.ref, definitions);
}

/** The allocation, or member of a union, that a window of tensor memory lies in. */
export function tmemRoot(window: Value, definitions: ReadonlyMap<Value, AnyOp>): TmemBuffer {
  const op = definitions.get(window);
  if (op?.kind === "alloc_tmem" || op?.kind === "tmem_member") return op;
  if (op === undefined || !isWindow(op)) throw new Error(`%${window.id} is not in tensor memory`);
  return tmemRoot(op.operands.ref, definitions);
}

/** Tensor memory of a placed kernel: which columns of its own each allocation has. */
export interface PlacedColumns {
  readonly name: string;
  readonly value: Value;
  readonly op: Op<"alloc_tmem">;
  readonly offset: number;
  readonly columns: number;
}

/** The allocations in the order of the program. */
export const placedColumns = onceForEach(({ body }: Kernel): readonly PlacedColumns[] => {
  const found: PlacedColumns[] = [];
  walkOps(body, (op) => {
    const [value] = op.results;
    if (op.kind !== "alloc_tmem" || value === undefined) return;
    const { at: offset, name = opName(op) } = op.attributes;
    if (offset === undefined) throw new Error(`${name} has no place in tensor memory`);
    found.push({ name, value, op, offset, columns: allocatedColumns(op) });
  });
  return found;
});

/** Columns are allocated in powers of two from this on. */
const leastColumns = 32;

/** Columns that a placed kernel allocates; 0 where it uses none. */
export const kernelColumns = onceForEach(({ body }: Kernel): number => {
  let columns = 0;
  walkOps(body, (op) => {
    if (op.kind !== "alloc_tmem") return;
    columns = Math.max(columns, (op.attributes.at ?? 0) + allocatedColumns(op));
  });
  return columns === 0 ? 0 : Math.max(leastColumns, 2 ** Math.ceil(Math.log2(columns)));
});

/** How many blocks a kernel's tensor memory belongs to, all of it. */
export const tensorGroup = onceForEach(({ body }: Kernel): 1 | 2 => {
  let together: 1 | 2 = 1;
  walkOps(body, (op) => {
    if (op.kind === "alloc_tmem" && blocksTogether(op) === 2) together = 2;
  });
  return together;
});

/** The shape by which an access moves its tile. */
export function tmemShapeOf(op: Op<"tmem_load"> | Op<"tmem_store">): TmemShape {
  const [rows] = refOf(op.operands.ref).shape;
  return tmemShapeNamed(op.attributes.shape) ?? usualTmemShape(Number(rows));
}

/** Bytes at the end of shared memory into which the kernel's columns are told. */
export const tmemSlotBytes = 16;

interface Bits {
  readonly rows: readonly string[];
  /** Of words, before those that are registers. */
  readonly columns: readonly string[];
  /** After those. */
  readonly last: readonly string[];
}

const halfOf = (rows: number): readonly string[] => (rows === 128 ? ["half"] : []);

/** Bits by where they are; `r` names bits of registers inside of an instruction. */
const patterns: { readonly [S in TmemShape]: (rows: number) => Bits } = {
  "32x32b": () => ({ rows: ["L0", "L1", "L2", "L3", "L4"], columns: [], last: [] }),
  "16x64b": (rows) => ({
    rows: ["L2", "L3", "L4", "L0", ...halfOf(rows)],
    columns: ["L1"],
    last: [],
  }),
  "16x128b": (rows) => ({
    rows: ["L2", "L3", "L4", "r0", ...halfOf(rows)],
    columns: ["L0", "L1"],
    last: [],
  }),
  "16x256b": (rows) => ({
    rows: ["L2", "L3", "L4", "r1", ...halfOf(rows)],
    columns: ["r0", "L0", "L1"],
    last: [],
  }),
  "16x32bx2": (rows) => ({
    rows: ["L0", "L1", "L2", "L3", ...halfOf(rows)],
    columns: [],
    last: ["L4"],
  }),
};

/** The register layout of a tile [rows, columns] that the shape moves part by part, whose elements have so many bits. */
export function tmemRegisters(
  shape: TmemShape,
  tile: readonly number[],
  bits: number,
  warps: number,
  kind: TmemLayout["kind"] = tile[0] === 128 ? "full" : "half",
): RegisterLayout {
  const columns = tile.at(-1) ?? 0;
  const inWord = Math.log2(32 / bits);
  const { rows: rowBits, columns: first, last } = patterns[shape](lanesOf(kind));
  // Registers in the order of the instruction's own, the half behind them, the rest of the columns last.
  const inside = [...first, ...rowBits].filter((bit) => bit.startsWith("r")).sort();
  const names = new Map<string, string>();
  for (const bit of [...inside, ...rowBits.filter((each) => each === "half")])
    names.set(bit, `R${inWord + names.size}`);
  const named = (bit: string): string => names.get(bit) ?? bit;
  // Each four warps have columns of their own.
  const groups = Array.from(
    { length: Math.log2(warps / warpsPerGroup) },
    (_, bit) => `W${bit + 2}`,
  );
  const quarters = quartersOf[kind];
  // Halves of the lanes are the last columns of a tile, or an axis of their own.
  const halves = tile.length === 3 ? quarters.columns : [];
  const lastColumns = tile.length === 3 ? [] : quarters.columns;
  const free =
    Math.log2(tmemPart(columns)) -
    inWord -
    first.length -
    last.length -
    groups.length -
    lastColumns.length;
  const next = inWord + names.size;
  const registers = (from: number, count: number): readonly string[] =>
    Array.from({ length: count }, (_, index) => `R${from + index}`);
  const ofRows = [...rowBits.map(named), ...quarters.rows];
  const ofColumns = [
    ...registers(0, inWord),
    ...first.map(named),
    ...registers(next, free),
    ...last,
    ...groups,
    ...lastColumns,
  ];
  const axes = [ofRows, ...(tile.length === 3 ? [halves] : []), ofColumns];
  return knownLayout(`(${axes.map((bits) => bits.join(" ")).join(" | ")})`);
}

/** Lanes that rows of a tile fill. */
export function lanesOf(kind: TmemLayout["kind"]): 64 | 128 {
  return kind === "half" ? 64 : 128;
}

/** Which bits of an element the quarter of a warp stands for; one that stands for none is there twice. */
const quartersOf: { readonly [K in TmemLayout["kind"]]: Omit<Bits, "last"> } = {
  full: { rows: ["W0", "W1"], columns: [] },
  half: { rows: ["W0", "W1"], columns: [] },
  pair: { rows: ["W0"], columns: ["W1"] },
  twice: { rows: ["W0"], columns: [] },
  scales: { rows: [], columns: [] },
};

/** The layout that an access to a tile that lies so has in registers. */
export function tmemLayoutOf(
  op: Op<"tmem_load"> | Op<"tmem_store">,
  warps: number,
  { kind }: TmemLayout,
): RegisterLayout {
  const { dtype, shape } = refOf(op.operands.ref);
  return tmemRegisters(tmemShapeOf(op), shape.map(Number), dtype.bits, warps, kind);
}
