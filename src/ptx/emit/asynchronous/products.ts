/**
 * wgmma: asynchronous products of the whole warpgroup. The operands' descriptors say where tiles lie in
 * shared memory; a step takes 32 bytes along k, and 64 rows at a time. Several warpgroups take slabs of rows in turn.
 *
 *   a [128, 64] bf16 by b [64, 256]: 2 slabs of rows, 4 steps of 16
 *
 *   wgmma.fence                                 registers enter the asynchronous proxy
 *   slab 0: step 0, 1, 2, 3   slab 1: step 0 …   a chain on each slab's accumulators
 *   wgmma.commit_group                           one group, or a loop with one for each step (rolled-products.ts)
 *
 *   with `warps: 8`: warpgroup 0 has slab 0, warpgroup 1 slab 1, by descriptors that differ in their rows
 *
 * Descriptor: bits 0–13 address / 16, 16–29 leading offset / 16, 32–45 stride offset / 16, 62–63 swizzle. Shared
 * memory ends below 2^18, so an address takes 14 bits by itself, and a step is one addition to the low half. In a
 * cluster an H200 has a block's rank in the upper byte of its addresses, which would go into the leading offset.
 */
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import type { Op, Value } from "../../../ir/node.ts";
import { swizzleWidth, wgmmaForm } from "../../../layout/algebra/shared-legality.ts";
import type { WgmmaForm } from "../../../layout/algebra/shared-legality.ts";
import type { Swizzle } from "../../../layout/algebra/shared-layout.ts";
import { bytesAlong, tiledAxes } from "../../../layout/algebra/shared-view.ts";
import type { SharedView } from "../../../layout/algebra/shared-view.ts";
import {
  groupOffsets,
  operandAxes,
  slabRows,
  wgmmaRows,
} from "../../../layout/model/product-instructions.ts";
import { lanesPerWarp } from "../../../targets/target.ts";
import type { Operand, Register } from "../../module.ts";
import { braces, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { clusterSize } from "../grid.ts";
import { sharedStart } from "../memory/shared.ts";
import { combineParts } from "../tiles/thread-parts.ts";
import type { InflightValue, SharedValue, TileValue } from "../values.ts";
import { emitRolled } from "./rolled-products.ts";
import { layoutOf } from "../../../layout/model/placed-types.ts";

const typeNames: { readonly [N in DTypeName]?: string } = {
  f32: "f32",
  f16: "f16",
  bf16: "bf16",
  tf32: "tf32",
  f8e4m3fn: "e4m3",
  f8e5m2: "e5m2",
  i8: "s8",
  u8: "u8",
  i32: "s32",
};

export function tensorTypeName({ name }: DType): string {
  const found = typeNames[name];
  if (found === undefined) throw new Error(`the tensor cores do not know ${name}`);
  return found;
}

const swizzleCodes: { readonly [S in Swizzle]: bigint } = { 0: 0n, 128: 1n, 64: 2n, 32: 3n };

/** An operand in shared memory: its descriptor for each slab and step. */
export interface SharedOperand {
  readonly transposed: boolean;
  readonly base: Register;
  /** What is added to the first descriptor for others. */
  readonly offset: (rows: number, depth: number) => number;
  descriptor(rows: number, depth: number): Register;
}

function viewOf({ window, layout }: SharedValue): SharedView {
  const [view] = window.views(layout) ?? [];
  if (view === undefined) throw new Error("wgmma reads a window that cannot be described");
  return view;
}

/** The constant part of a descriptor: everything but the address. */
function descriptorBits(form: WgmmaForm, swizzle: Swizzle, rowBytes: number): bigint {
  const { leading, stride } = descriptorStrides(form, swizzle, rowBytes);
  const field = (bytes: number): bigint => BigInt(bytes >> 4) & 0x3fffn;
  return (field(leading) << 16n) | (field(stride) << 32n) | (swizzleCodes[swizzle] << 62n);
}

function descriptorStrides(
  { major, widthStride, blockStride }: WgmmaForm,
  swizzle: Swizzle,
  rowBytes: number,
): { readonly leading: number; readonly stride: number } {
  // Rows along k that are as wide as the swizzle have no next width within an instruction.
  if (major === "k" && swizzle >= rowBytes) return { leading: 16, stride: blockStride };
  // Without a swizzle, the offsets of a transposed operand change their roles.
  if (major === "mn" && swizzle === 0) return { leading: blockStride, stride: widthStride };
  return { leading: widthStride, stride: blockStride };
}

/** Rows of the left factor that an instruction reads from one descriptor, and bits that all of its descriptors have. */
interface OperandForm {
  readonly rows: number;
  readonly fixed: bigint;
}

/** `rowBytes` are those of k that an instruction takes of each row. */
export function sharedOperand(
  context: EmitContext,
  ref: SharedValue,
  side: "left" | "right",
  rowBytes: number,
  { rows, fixed }: OperandForm = { rows: slabRows, fixed: 0n },
): SharedOperand {
  const { code } = context;
  const view = viewOf(ref);
  const axes = operandAxes[side];
  const count = side === "left" ? rows : (view.shape[axes.mn] ?? 1);
  const form = wgmmaForm(view, { ...axes, count, turnsBytes: fixed !== 0n });
  if (typeof form === "string") throw new Error(form);
  const tiled = tiledAxes(view)?.axes ?? [];
  const [mn, k] = [tiled[axes.mn], tiled[axes.k]];
  if (mn === undefined || k === undefined) throw new Error("an operand has rows and columns");
  if (swizzleWidth(view.layout.swizzle) % 16 !== 0) throw new Error("a swizzle of odd width");
  const start = sharedStart(context, ref);
  const own =
    side === "left" && rows === slabRows && fixed === 0n
      ? groupStart(context, view, start.base)
      : start.base;
  const sixteenths =
    clusterSize(context.kernel.grid) > 1
      ? code.make("b32", "bfe.u32", own, integer(4), integer(14))
      : code.make("b32", "shr.u32", own, integer(4));
  const constant = descriptorBits(form, view.layout.swizzle, rowBytes) | fixed;
  const low = code.make(
    "b32",
    "add.u32",
    sixteenths,
    integer(Number(constant & 0xffffffffn) + (start.offset >> 4)),
  );
  const high = code.constant("b32", constant >> 32n);
  const base = code.make("b64", "mov.b64", braces([low, high]));
  const offset = (rows: number, depth: number): number =>
    (bytesAlong(mn, rows) + bytesAlong(k, depth)) >> 4;
  return {
    ...{ transposed: form.major === "mn", base, offset },
    descriptor(rows, depth) {
      const added = offset(rows, depth);
      return added === 0 ? base : code.make("b64", "add.s64", base, integer(added));
    },
  };
}

/** Where the rows of the lane's own warpgroup begin. */
function groupStart({ code, numbers, scope }: EmitContext, view: SharedView, base: Register) {
  const offsets = groupOffsets(view, scope.warps);
  if (offsets === undefined) throw new Error("rows of warpgroups lie irregularly");
  if (offsets.length === 0) return base;
  // The bits of the warpgroup's number are the warp's, from the third on.
  const moved = combineParts(code, numbers.warp, [0, 0, ...offsets]);
  return moved === undefined ? base : code.make("b32", "add.u32", base, moved);
}

/** The factors of one product, wherever they are. */
export interface ProductOperands {
  readonly accumulator: DType;
  /** Registers of the accumulator, slab by slab. */
  readonly words: readonly Register[];
  readonly shape: readonly [m: number, n: number, k: number];
  readonly left: SharedValue | TileValue;
  readonly right: SharedValue;
  /** Of a sparse left factor. */
  readonly metadata?: TileValue | undefined;
  /** The part of k that is summed: all of it where it is not told. */
  readonly part?: { readonly from: number; readonly to: number } | undefined;
  /** Groups that it closes: one, or one for each step of a loop. */
  readonly groups: number;
  /** Whether it is added to what is in the accumulator, where that is known only then. */
  readonly adds?: Operand | undefined;
}

/** Starts accumulator += left · right and closes its groups. */
export function startProduct(context: EmitContext, product: ProductOperands): void {
  const { code } = context;
  const { words, shape, left, right, metadata, adds } = product;
  const [m, n, k] = shape;
  const { from: start, to: end } = product.part ?? { from: 0, to: k };
  // Elements of k in an instruction, and those of them that are in the left factor.
  const held = 256 / left.dtype.bits;
  const depth = metadata === undefined ? held : 2 * held;
  const bytes = (count: number): number => (count * left.dtype.bits) / 8;
  const b = sharedOperand(context, right, "right", bytes(depth));
  const a = left.kind === "tile" ? undefined : sharedOperand(context, left, "left", bytes(held));
  const types = [product.accumulator, left.dtype, right.dtype].map(tensorTypeName).join(".");
  const sparse = metadata === undefined ? "" : ".sp";
  const opcode = `wgmma.mma_async${sparse}.sync.aligned.m64n${n}k${depth}.${types}`;
  const rows = wgmmaRows(context.scope.warps);
  const slabs = m / rows;
  const perSlab = words.length / slabs;
  const immediates = trailing(left.dtype, a, b);
  if (product.groups > 1) {
    const factors = [a, b].flatMap((each) =>
      each === undefined ? [] : [{ base: each.base, step: each.offset(0, depth) }],
    );
    emitRolled(context, product.groups, factors, adds, (moved, adding) => {
      code.emit(opcode, [braces(words), ...moved, adding, ...immediates]);
    });
    return;
  }
  code.emit("wgmma.fence.sync.aligned", [], "registers enter the asynchronous proxy");
  for (let slab = 0; slab < slabs; slab += 1)
    for (let step = start / depth; step * depth < end; step += 1) {
      const from = (slab * (k / depth) + step) * 4;
      const first: Operand =
        left.kind === "tile"
          ? braces(left.words.slice(from, from + 4))
          : (a as SharedOperand).descriptor(slab * rows, step * held);
      code.emit(opcode, [
        braces(words.slice(slab * perSlab, (slab + 1) * perSlab)),
        first,
        b.descriptor(0, step * depth),
        ...(metadata === undefined ? [] : stepMetadata(metadata, slab, slabs, step, k / depth)),
        step * depth === start && adds !== undefined ? adds : integer(1),
        ...immediates,
      ]);
    }
  code.emit("wgmma.commit_group.sync.aligned");
}

/**
 * The metadata of one instruction: a register, and which of its lanes count. A slab's words are divided among its steps;
 * where two share one, the first of them takes it from the lower two lanes of each four.
 */
function stepMetadata(
  { words }: TileValue,
  slab: number,
  slabs: number,
  step: number,
  steps: number,
): readonly Operand[] {
  const perSlab = words.length / slabs;
  const shared = steps / perSlab;
  const word = words[slab * perSlab + Math.floor(step / shared)];
  if (word === undefined) throw new Error("a step without metadata");
  return [word, integer(step % shared)];
}

/** Signs of the factors and, for 16-bit ones in shared memory, whether they are transposed. */
function trailing(
  { kind, bits }: DType,
  a: SharedOperand | undefined,
  b: SharedOperand,
): readonly Operand[] {
  if (kind !== "float") return [];
  const signs = [integer(1), integer(1)];
  if (bits !== 16) return signs;
  const transposes = [...(a === undefined ? [] : [a]), b].map(({ transposed }) =>
    integer(transposed ? 1 : 0),
  );
  return [...signs, ...transposes];
}

export function waitForProducts({ code }: EmitContext, groups: number): void {
  code.emit("wgmma.wait_group.sync.aligned", [integer(groups)]);
}

/** The registers of a new accumulator: zero, or a copy of a tile. */
export function accumulatorWords(
  { code }: EmitContext,
  count: number,
  initial: TileValue | undefined,
  word: "b32" | "b64" = "b32",
): readonly Register[] {
  return Array.from({ length: count }, (_, index) => {
    const source = initial?.words[index];
    return source === undefined ? code.constant(word, 0) : code.make(word, `mov.${word}`, source);
  });
}

export function makeAccumulator(op: Op<"accumulator">, context: EmitContext): void {
  const { dtype, shape, anything } = op.attributes;
  const { initial } = op.operands;
  const tile = initial && context.tile(initial);
  const count = accumulatorWordCount(context, shape, dtype);
  const words =
    anything === true
      ? context.code.registers("b32", count)
      : accumulatorWords(context, count, tile);
  context.define(op.results[0], { kind: "inflight", dtype, shape, words });
}

/** 32-bit registers of an accumulator in each lane. */
export function accumulatorWordCount(
  { scope }: EmitContext,
  shape: readonly number[],
  { bits }: DType,
): number {
  const elements = shape.reduce((total, extent) => total * extent, 1);
  return ((elements / (lanesPerWarp * scope.warps)) * bits) / 32;
}

export function wgmma(op: Op<"wgmma">, context: EmitContext): void {
  const accumulator = context.inflight(op.operands.accumulator);
  const left = leftOperand(context, op);
  const right = sharedRef(context, op.operands.b);
  const [m = 0, n = 0] = accumulator.shape;
  startProduct(context, {
    accumulator: accumulator.dtype,
    words: accumulator.words,
    shape: [m, n, right.shape[0] ?? 0],
    left,
    right,
    groups: decided(op),
    metadata: op.operands.metadata && context.tile(op.operands.metadata),
    adds: op.operands.adds && context.scalar(op.operands.adds).register,
  });
  context.define(op.results[0], accumulator);
}

/** The groups that a product closes, or that a wait leaves. */
export function decided({
  kind,
  attributes,
}: Op<"wgmma" | "wgmma_wait" | "products_wait">): number {
  if (attributes.groups === undefined) throw new Error(`${kind} counts no groups`);
  return attributes.groups;
}

/** The left factor; in registers that nobody else touches while the product is in flight. */
function leftOperand(context: EmitContext, op: Op<"wgmma">): SharedValue | TileValue {
  const { a } = op.operands;
  if (a.type.kind === "ref") return sharedRef(context, a);
  const tile = context.tile(a);
  return { ...tile, words: tile.words.map((word) => context.code.make("b32", "mov.b32", word)) };
}

export function sharedRef(context: EmitContext, value: Value): SharedValue {
  const ref = context.ref(value);
  if (ref.kind !== "shared") throw new Error(`%${value.id} is no window of shared memory`);
  return ref;
}

export function wgmmaWait(op: Op<"wgmma_wait">, context: EmitContext): void {
  const accumulator = context.inflight(op.operands.accumulator);
  waitForProducts(context, decided(op));
  const [result] = op.results;
  if (op.attributes.gives === "accumulator") context.define(result, accumulator);
  else context.define(result, tileOf(accumulator, result));
}

/** The finished accumulator: a tile in the same registers. */
function tileOf({ dtype, shape, words }: InflightValue, result: Value | undefined): TileValue {
  if (result === undefined) throw new Error("a finished accumulator is a tile");
  return { kind: "tile", dtype, shape, layout: layoutOf(result), words };
}
