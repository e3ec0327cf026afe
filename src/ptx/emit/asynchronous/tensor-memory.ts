/**
 * Tensor memory: the kernel's columns, which one warp allocates at its start and gives back at its end, and what is done with them.
 *
 *   tcgen05.alloc [slot], 256           warp 0; everybody reads the slot behind a barrier
 *   tcgen05.mma [sums], a, b, …         one lane, for each 32 bytes of k
 *   tcgen05.commit [barrier]            the same lane
 *   tcgen05.ld {registers}, [sums]      each warp its quarter; finished before anything else happens
 *   tcgen05.dealloc
 */
import type { DType, DTypeName } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import type { TmemShape, tensorMemoryOps } from "../../../ir/ops/tensor-memory.ts";
import { tmemPart } from "../../../ir/infer/tensor-memory.ts";
import { scaledKindOf } from "../../../ir/infer/tensor-memory-scales.ts";
import { refOf, walkOps } from "../../../ir/traverse.ts";
import { elementTable } from "../../../layout/algebra/element-maps.ts";
import { layoutOf } from "../../../layout/model/placed-types.ts";
import {
  blocksTogether,
  kernelColumns,
  lanesOf,
  packingOf,
  tensorGroup,
  tileColumns,
  tmemLayoutOf,
  tmemShapeOf,
  tmemSlotBytes,
  tmemStorage,
} from "../../../layout/model/tensor-memory.ts";
import type { TmemBuffer } from "../../../layout/model/tensor-memory.ts";
import { productInstructions } from "../../../targets/product-instructions.ts";
import { warpsPerGroup } from "../../../targets/target.ts";
import type { Operand, Register } from "../../module.ts";
import { address, braces, integer } from "../../operands.ts";
import type { EmitContext, EmitRules } from "../context.ts";
import { insideIndices, insideOffset } from "../memory/bounds-traps.ts";
import { barrierAddress, blockBarrier } from "../synchronization.ts";
import type { TensorValue } from "../values.ts";
import { multicastMask } from "./multicast-ranks.ts";
import { sharedOperand, sharedRef } from "./products.ts";
import { descriptorVersion, issuingLane } from "./tensor-memory-issue.ts";
import {
  copyToTensor,
  scaledDescriptor,
  scaledFormatCodes,
  scaledOpcode,
  scalesAddress,
} from "./tensor-memory-scales.ts";

const { tcgen05 } = productInstructions;

/** pred: whether the lane belongs to the block's first warp. */
function inFirstWarp({ code, numbers }: EmitContext): Register {
  const first = code.make("pred", "setp.eq.u32", numbers.thread, integer(0));
  const warp = code.make("pred", "setp.eq.u32", numbers.warp, integer(0));
  return code.make("pred", "and.pred", first, warp);
}

/** What instructions say of the blocks that tensor memory belongs to: the same everywhere in a kernel. */
function groupOf({ kernel }: EmitContext): string {
  return `cta_group::${tensorGroup(kernel)}`;
}

function slotOf({ numbers, kernel }: EmitContext): Operand {
  const bytes = kernel.placed?.sharedBytes ?? 0;
  return address(numbers.shared, bytes - tmemSlotBytes);
}

/** Allocates the kernel's columns, and tells every lane where they begin. */
export function openTensorMemory(context: EmitContext): void {
  const columns = kernelColumns(context.kernel);
  if (columns === 0) return;
  const { code } = context;
  walkOps(context.kernel.body, ({ kind, location }) => {
    if (kind === "alloc_tmem") code.at(location);
  });
  const isFirst = inFirstWarp(context);
  const skip = code.label("allocated");
  code.jumpIf(isFirst, skip, { negated: true, uniform: true });
  const group = groupOf(context);
  code.emit(`tcgen05.alloc.${group}.sync.aligned.shared::cta.b32`, [
    slotOf(context),
    integer(columns),
  ]);
  code.emit(`tcgen05.relinquish_alloc_permit.${group}.sync.aligned`);
  code.place(skip);
  blockBarrier(context, "tensor memory is allocated");
  context.tensorBase = code.make("b32", "ld.shared.b32", slotOf(context));
}

/** Gives them back when nobody uses them any more. The blocks of a pair have met before, where a kernel in clusters ends. */
export function closeTensorMemory(context: EmitContext): void {
  const columns = kernelColumns(context.kernel);
  if (columns === 0) return;
  const { code } = context;
  if (tensorGroup(context.kernel) === 1)
    blockBarrier(context, "nobody uses tensor memory any more");
  const isFirst = inFirstWarp(context);
  const skip = code.label("deallocated");
  code.jumpIf(isFirst, skip, { negated: true, uniform: true });
  code.emit(`tcgen05.dealloc.${groupOf(context)}.sync.aligned.b32`, [
    baseOf(context),
    integer(columns),
  ]);
  code.place(skip);
}

function baseOf({ tensorBase }: EmitContext): Register {
  if (tensorBase === undefined) throw new Error("the kernel has no tensor memory");
  return tensorBase;
}

function allocate(op: Op<"alloc_tmem">, context: EmitContext): void {
  const { at } = op.attributes;
  if (at === undefined) throw new Error("a buffer of tensor memory has no columns");
  define(op, baseOf(context), at, context);
}

function member(op: Op<"tmem_member">, context: EmitContext): void {
  const { base, columns } = context.tensor(op.operands.union);
  define(op, base, columns + op.attributes.column, context);
}

/** A buffer whose tiles begin at a column. */
function define(op: TmemBuffer, base: Register, columns: number, context: EmitContext): void {
  const { shape } = op.attributes;
  const outer = shape.slice(0, -2);
  const strides = outer.map((_, axis) =>
    outer.slice(axis + 1).reduce((step, extent) => step * extent, tileColumns(op)),
  );
  const storage = tmemStorage(op);
  const value = { kind: "tensor", base, columns, storage, strides } as const;
  context.define(op.results[0], value);
}

/** A tile of several, or a slice of its columns. */
export function sliceTensor(op: Op<"slice_ref">, context: EmitContext): void {
  const { code } = context;
  const source = context.tensor(op.operands.ref);
  const packing = packingOf(source.storage);
  const { sizes, guard = [] } = op.attributes;
  const extents = refOf(op.operands.ref).shape;
  const steps = [...source.strides, 0, ...(source.halves === true ? [0] : []), 1];
  let { base, columns } = source;
  for (const [axis, offset] of op.operands.offsets.entries()) {
    const step = steps[axis] ?? 0;
    if (step === 0) continue;
    const isColumn = axis === steps.length - 1;
    const { constant } = context.scalar(offset);
    if (constant !== undefined) {
      columns += isColumn ? constant / packing : constant * step;
      continue;
    }
    const [count, size] = [Number(sizes[axis] ?? 1), extents[axis] ?? 1];
    const register =
      guard.length === 0
        ? context.scalar(offset).register
        : insideOffset(context, offset, { count, size });
    const own =
      isColumn && packing > 1
        ? code.make("b32", "shr.u32", register, integer(Math.log2(packing)))
        : register;
    base = code.make("b32", "mad.lo.u32", own, integer(step), base);
  }
  const strides = source.strides.filter((_, axis) => !op.attributes.dropped.includes(axis));
  context.define(op.results[0], { ...source, base, columns, strides });
}

/** Columns of a tile as those of either half of the lanes, which begin at the same one. */
export function halveTensor(op: Op<"reshape_ref">, context: EmitContext): void {
  context.define(op.results[0], { ...context.tensor(op.operands.ref), halves: true });
}

interface ShapeForm {
  /** Registers of one repetition, and columns that each of them stands for. */
  readonly registers: number;
  readonly columns: number;
  /** Row and column of lane 0's registers, in words. */
  readonly place: (register: number) => readonly [row: number, column: number];
}

const forms: { readonly [S in TmemShape]: ShapeForm } = {
  "32x32b": { registers: 1, columns: 1, place: (each) => [0, each] },
  "16x64b": { registers: 1, columns: 2, place: (each) => [0, 2 * each] },
  "16x128b": {
    registers: 2,
    columns: 2,
    place: (each) => [8 * (each & 1), 4 * (each >> 1)],
  },
  "16x256b": {
    registers: 4,
    columns: 2,
    place: (each) => [8 * ((each >> 1) & 1), 8 * (each >> 2) + (each & 1)],
  },
  "16x32bx2": { registers: 1, columns: 1, place: (each) => [0, each] },
};

/** No instruction moves more registers. */
const mostRegisters = 128;

/** One instruction: where it begins, and the words of the tile that it moves, in its order. */
interface Piece {
  readonly lanes: number;
  readonly columns: number;
  readonly words: readonly number[];
}

function piecesOf(
  op: Op<"tmem_load"> | Op<"tmem_store">,
  warps: number,
  storage: TensorValue["storage"],
) {
  const packing = packingOf(storage);
  const { dtype, shape } = refOf(op.operands.ref);
  const tile = shape.map(Number);
  const columns = tile.at(-1) ?? 0;
  // The first warp has the first half of the lanes.
  const toNextRow = tile.slice(1).reduce((count, each) => count * each, 1);
  const by = tmemShapeOf(op);
  const form = forms[by];
  const perWord = 32 / dtype.bits;
  const table = elementTable(tmemLayoutOf(op, warps, storage), tile, warps);
  const own = [...table.subarray(0, table.length / (32 * warps))];
  const banks = storage.kind === "pair" && tile.length === 2 ? 2 : 1;
  const part = tmemPart(columns);
  const share = part / banks / (warps / warpsPerGroup);
  const halves = by === "32x32b" || lanesOf(storage.kind) === 64 ? 1 : 2;
  const parts = columns / part;
  const perHalf = own.length / perWord / halves / parts;
  const each = Math.min(mostRegisters, perHalf);
  const pieces: Piece[] = [];
  for (let turn = 0; turn < halves * parts; turn += 1)
    for (let from = 0; from < perHalf; from += each) {
      const [half, left] = [turn % halves, Math.floor(turn / halves) * part];
      const words = Array.from({ length: each }, (_, register) => {
        const [row, column] = form.place(from + register);
        const at = own.indexOf((row + 16 * half) * toNextRow + left + column * perWord);
        if (at < 0) throw new Error(`${by} and its layout do not agree`);
        return at / perWord;
      });
      const start = (left + from * form.columns * perWord) / packing;
      pieces.push({ lanes: 16 * half, columns: start, words });
    }
  const split = by === "16x32bx2" ? [integer(share / 2 / packing)] : [];
  return {
    pieces,
    split,
    repeat: each / form.registers,
    spread: perWord > packing,
    share: share / packing,
  };
}

/** The address of the own warp's quarter, from some lanes and columns on. */
function quarterOf(
  { code }: EmitContext,
  quarter: Register,
  { columns }: TensorValue,
  piece: Piece,
): Operand {
  const base =
    piece.lanes === 0
      ? quarter
      : code.make("b32", "add.u32", quarter, integer(piece.lanes * 2 ** 16));
  return address(base, columns + piece.columns);
}

/** Where the lanes of the own warp begin, and the columns of its warpgroup. */
function ownQuarter(
  { code, numbers, scope }: EmitContext,
  { base }: TensorValue,
  share: number,
): Register {
  const own = code.make("b32", "and.b32", numbers.warp, integer(warpsPerGroup - 1));
  const quarter = code.make("b32", "mad.lo.u32", own, integer(2 ** 21), base);
  if (scope.warps === warpsPerGroup) return quarter;
  const group = code.make("b32", "shr.u32", numbers.warp, integer(Math.log2(warpsPerGroup)));
  return code.make("b32", "mad.lo.u32", group, integer(share), quarter);
}

function load(op: Op<"tmem_load">, context: EmitContext): void {
  const { code } = context;
  const [result] = op.results;
  if (result?.type.kind !== "tile") throw new Error("a load gives a tile");
  const { dtype, shape } = result.type;
  const window = context.tensor(op.operands.ref);
  const { pieces, split, repeat, spread, share } = piecesOf(
    op,
    context.scope.warps,
    window.storage,
  );
  const words = code.registers(
    "b32",
    pieces.reduce((sum, piece) => sum + piece.words.length, 0),
  );
  const quarter = ownQuarter(context, window, share);
  const opcode = `tcgen05.ld.sync.aligned.${tmemShapeOf(op)}.x${repeat}${spread ? ".pack::16b" : ""}.b32`;
  for (const piece of pieces)
    code.emit(opcode, [
      braces(piece.words.map((word) => wordAt(words, word))),
      quarterOf(context, quarter, window, piece),
      ...split,
    ]);
  code.emit("tcgen05.wait::ld.sync.aligned");
  context.define(result, { kind: "tile", dtype, shape, layout: layoutOf(result), words });
}

function wordAt(words: readonly Register[], at: number): Register {
  const word = words[at];
  if (word === undefined) throw new Error(`a tile has no word ${at}`);
  return word;
}

function store(op: Op<"tmem_store">, context: EmitContext): void {
  const { code } = context;
  const { ref, value } = op.operands;
  const window = context.tensor(ref);
  const { words } = context.tile(value);
  const { pieces, split, repeat, spread, share } = piecesOf(
    op,
    context.scope.warps,
    window.storage,
  );
  const quarter = ownQuarter(context, window, share);
  const opcode = `tcgen05.st.sync.aligned.${tmemShapeOf(op)}.x${repeat}${spread ? ".unpack::16b" : ""}.b32`;
  // A splat has one word for all.
  const wordOf = (at: number): Register => wordAt(words, words.length === 1 ? 0 : at);
  for (const piece of pieces)
    code.emit(opcode, [
      quarterOf(context, quarter, window, piece),
      ...split,
      braces(piece.words.map(wordOf)),
    ]);
  code.emit("tcgen05.wait::st.sync.aligned");
}

const kinds: { readonly [N in DTypeName]?: string } = {
  f16: "f16",
  bf16: "f16",
  tf32: "tf32",
  f8e4m3fn: "f8f6f4",
  f8e5m2: "f8f6f4",
  i8: "i8",
  u8: "i8",
};

/** Codes of formats in an instruction descriptor; each kind has its own. */
const formatCodes: { readonly [N in DTypeName]?: number } = {
  f16: 0,
  bf16: 1,
  tf32: 2,
  f8e4m3fn: 0,
  f8e5m2: 1,
  u8: 0,
  i8: 1,
};
const sumCodes: { readonly [N in DTypeName]?: number } = { f16: 0, f32: 1, i32: 2 };

function codeOf(codes: { readonly [N in DTypeName]?: number }, { name }: DType): number {
  const found = codes[name];
  if (found === undefined) throw new Error(`tcgen05 does not know ${name}`);
  return found;
}

interface Described {
  readonly sum: DType;
  readonly formats: readonly [a: DType, b: DType];
  readonly codes: { readonly [N in DTypeName]?: number };
  readonly transposed: readonly [a: boolean, b: boolean];
  readonly rows: number;
  readonly columns: number;
}

/** The instruction descriptor: formats, which operands lie along their rows, and the shape. */
function describe({ sum, formats: [a, b], codes, transposed, rows, columns }: Described): number {
  return (
    (codeOf(sumCodes, sum) << 4) |
    (codeOf(codes, a) << 7) |
    (codeOf(codes, b) << 10) |
    (Number(transposed[0]) << 15) |
    (Number(transposed[1]) << 16) |
    ((columns >> 3) << 17) |
    ((rows >> 4) << 24)
  );
}

function multiply(op: Op<"tcgen05_mma">, context: EmitContext): void {
  const { code } = context;
  const { sums, a, b, adds } = op.operands;
  const together = blocksTogether(op);
  const into = context.tensor(sums);
  const [left, right, result] = [refOf(a), refOf(b), refOf(sums)];
  const [rows = 0, columns = 0] = result.shape.map(Number);
  const k = Number(right.shape[0]);
  const depth = tcgen05.shape.depthBits / left.dtype.bits;
  const form = { rows, fixed: descriptorVersion };
  const bytes = tcgen05.shape.depthBits / 8;
  const second = sharedOperand(context, sharedRef(context, b), "right", bytes, form);
  const first =
    left.space === "smem"
      ? sharedOperand(context, sharedRef(context, a), "left", bytes, form)
      : undefined;
  const operandA = (from: number): Operand => {
    if (first !== undefined) return first.descriptor(0, from);
    const tile = context.tensor(a);
    return address(tile.base, tile.columns + from / packingOf(tile.storage));
  };
  const adding = adds && context.scalar(adds).register;
  const scaled = [op.operands.aScales, op.operands.bScales].flatMap((each) => each ?? []);
  const scales = scaled.map((each) => context.tensor(each));
  const kind = scaledKindOf(op);
  const opcode = `tcgen05.mma.cta_group::${together}.kind::${kind === undefined ? (kinds[left.dtype.name] ?? "") : scaledOpcode(kind)}`;
  const issued: (readonly Operand[])[] = [];
  for (let column = 0; column < columns; column += tcgen05.shape.mostColumns) {
    const width = Math.min(tcgen05.shape.mostColumns, columns - column);
    const description = describe({
      sum: result.dtype,
      formats: [left.dtype, right.dtype],
      codes: kind === undefined ? formatCodes : scaledFormatCodes(kind),
      transposed: [first?.transposed ?? false, second.transposed],
      ...{ rows: together * rows, columns: width },
    });
    const descriptor = code.constant("b32", description);
    for (let from = 0; from < k; from += depth)
      issued.push([
        address(into.base, into.columns + column),
        operandA(from),
        second.descriptor(column, from),
        kind === undefined ? descriptor : scaledDescriptor(code, description, kind, from),
        ...scales.map((each, side) =>
          // Halves of the columns have their scales in the same columns of tensor memory.
          scalesAddress(
            each,
            side === 0 ? rows : rows === 64 ? columns / 2 : columns,
            from / (kind?.block ?? 1),
          ),
        ),
        from === 0 && adding !== undefined ? adding : integer(1),
      ]);
  }
  code.guarded(issuingLane(context), () => {
    for (const operands of issued) code.emit(opcode, operands);
  });
}

function commit(op: Op<"tcgen05_commit">, context: EmitContext): void {
  const { code } = context;
  const barrier = context.barrier(op.operands.barrier);
  const place = barrierAddress(context, barrier, insideIndices(context, op)[0]);
  const at = code.make("b32", "add.u32", place.base, integer(place.offset));
  const { multicast = [] } = op.attributes;
  const mask =
    multicast.length === 0
      ? []
      : [code.make("b16", "cvt.u16.u32", multicastMask(context, multicast))];
  const form = mask.length === 0 ? "" : ".multicast::cluster";
  const opcode = `tcgen05.commit.${groupOf(context)}.mbarrier::arrive::one.shared::cluster${form}.b64`;
  code.guarded(issuingLane(context), () => {
    // One arrival of the language stands for as many of the hardware as warps have together.
    for (let arrival = 0; arrival < barrier.scale; arrival += 1)
      code.emit(opcode, [address(at), ...mask]);
  });
}

export const tensorMemoryRules: EmitRules<typeof tensorMemoryOps> = {
  alloc_tmem: allocate,
  tmem_member: member,
  tmem_load: load,
  tmem_store: store,
  tcgen05_mma: multiply,
  tcgen05_copy: copyToTensor,
  tcgen05_commit: commit,
};
