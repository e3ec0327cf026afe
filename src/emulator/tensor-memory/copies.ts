/**
 * `tcgen05.cp`: rows of 16 or 32 bytes of shared memory to lanes of tensor memory, expanded to bytes on the way where the
 * opcode says so; and `tcgen05.shift`, which moves rows down by one within each quarter of the lanes.
 *
 *   .b8x16.b4x16_p64    16 elements of 4 bits in 8 bytes, 8 unused    element n → byte n, bits 2 to 5
 *   .b8x16.b6x16_p32    16 elements of 6 bits in 12 bytes, 4 unused   element n → byte n, bits 0 to 5
 */
import { tmemCopies } from "../../layout/algebra/tensor-memory-products.ts";
import type { TmemCopy, TmemCopyShape } from "../../layout/algebra/tensor-memory-products.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { Issue, lanesOf } from "../asynchronous.ts";
import type {
  BlockView,
  Collective,
  CollectiveCall,
  CollectiveInstruction,
  OperandView,
  Place,
} from "../collective.ts";
import { checkWritten } from "../reports.ts";
import { descriptorError } from "../tensor-cores/descriptor.ts";
import { submit } from "./issue.ts";
import { decodeMatrixDescriptor, rowChunk, stretches } from "./matrix-descriptor.ts";
import { pairOf } from "./pairs.ts";
import {
  columns as allColumns,
  halves,
  laneGroup,
  lanes,
  splitAddress,
  tensorMemoryOf,
} from "./state.ts";
import type { TensorRange } from "./state.ts";

type Expansion = "b4" | "b6" | undefined;

interface CopyForm {
  readonly instruction: CollectiveInstruction;
  readonly shape: TmemCopyShape;
  readonly copy: TmemCopy;
  readonly expansion: Expansion;
  readonly isPair: boolean;
  readonly target: OperandView;
  readonly source: OperandView;
}

function copyShape(modifiers: readonly string[]): TmemCopyShape | undefined {
  const has = (modifier: string): boolean => modifiers.includes(modifier);
  if (has("64x128b"))
    return has("warpx2::02_13")
      ? "64x128b.02_13"
      : has("warpx2::01_23")
        ? "64x128b.01_23"
        : undefined;
  if (has("32x128b")) return has("warpx4") ? "32x128b" : undefined;
  return (["128x256b", "128x128b", "4x256b"] as const).find(has);
}

/** `tcgen05.cp [target], descriptor` */
export function tensorCopy(instruction: CollectiveInstruction): Collective | undefined {
  const { modifiers, operands } = instruction;
  const shape = copyShape(modifiers);
  const [target, source] = operands;
  if (shape === undefined || target === undefined || source === undefined) return undefined;
  const form: CopyForm = {
    ...{ instruction, shape, copy: tmemCopies[shape], target, source },
    expansion: modifiers.includes("b4x16_p64")
      ? "b4"
      : modifiers.includes("b6x16_p32")
        ? "b6"
        : undefined,
    isPair: modifiers.includes("cta_group::2"),
  };
  return {
    aligned: false,
    run: (call) => {
      for (const lane of lanesOf(call.mask)) issueCopy(form, call, lane);
      return "done";
    },
  };
}

function issueCopy(form: CopyForm, { machine, warp }: CollectiveCall, lane: number): void {
  const { instruction, shape, copy, expansion, isPair } = form;
  const { opcode } = instruction.instruction;
  const blocks = isPair ? pairOf(machine, instruction, warp).both : [warp.block];
  const bits = form.source.wide(warp, lane);
  const chunks = sourceChunks(form, bits, warp.block);
  const place = splitAddress(form.target.address(warp, lane));
  const targets = Array.from({ length: copy.rows }, (_, row) =>
    copy.lanes(row).map((own) => own + place.lane),
  );
  const beyond = targets.flat().find((own) => own >= lanes);
  if (beyond !== undefined)
    throw new TilewrightError({
      code: "TW8084",
      message: `${opcode} of ${warp.title} begins at lane ${place.lane} of tensor memory`,
      location: instruction.location,
      expected: shape === "4x256b" ? "a lane from 0 to 31" : "lane 0, so that all its rows fit",
      found: `lane ${beyond}`,
    });
  let groups = 0;
  for (const own of targets.flat()) groups |= 1 << Math.floor(own / laneGroup);
  const writes = blocks.map((block): TensorRange => ({
    block,
    column: place.column,
    columns: copy.words,
    groups,
  }));
  const issue = new Issue({ machine, warp, lane, instruction }, "async");
  for (const block of blocks)
    for (const { offset, bytes } of stretches(chunks)) {
      const shared: Place = { views: block.shared, offset, block, space: "shared" };
      issue.record(shared, bytes, "read");
    }
  const used = expansion === "b4" ? 8 : expansion === "b6" ? 12 : 16;
  submit({
    ...{ machine, warp, lane, instruction, issue, writes },
    kinds: ["cp"],
    follows: shape === "4x256b" ? ["shift"] : [],
    reads: [],
    run: () => {
      for (const block of blocks) {
        for (const offset of chunks)
          checkWritten(
            machine,
            warp,
            instruction,
            { views: block.shared, offset, space: "shared" },
            used,
          );
        copyRows(block, chunks, targets, place.column, copy.words / 4, expansion);
      }
    },
  });
}

function sourceChunks(
  { instruction, copy }: CopyForm,
  bits: bigint,
  { shared }: BlockView,
): Int32Array {
  const problem = (why: string) => descriptorError(instruction, bits, why);
  const descriptor = decodeMatrixDescriptor(bits);
  if (typeof descriptor === "string") throw problem(descriptor);
  if (descriptor.swizzle === "128 by 32") throw problem("its swizzle is that of tf32");
  const parts = copy.words / 4;
  const chunks = Int32Array.from({ length: copy.rows * parts }, (_, at) =>
    rowChunk(descriptor, Math.floor(at / parts), at % parts),
  );
  const beyond = chunks.find((chunk) => chunk + 16 > shared.bytes.length);
  if (beyond !== undefined)
    throw problem(`byte ${beyond} is beyond the ${shared.bytes.length} bytes of shared memory`);
  return chunks;
}

/** 16 bytes as they come to tensor memory. */
function expanded(bytes: Uint8Array, expansion: Expansion): Uint8Array {
  if (expansion === undefined) return bytes;
  const width = expansion === "b4" ? 4 : 6;
  return Uint8Array.from({ length: 16 }, (_, at) => {
    const bit = at * width;
    const word = (bytes[bit >> 3] ?? 0) | ((bytes[(bit >> 3) + 1] ?? 0) << 8);
    const code = (word >>> (bit & 7)) & (2 ** width - 1);
    return expansion === "b4" ? code << 2 : code;
  });
}

function copyRows(
  block: BlockView,
  chunks: Int32Array,
  targets: readonly (readonly number[])[],
  column: number,
  parts: number,
  expansion: Expansion,
): void {
  const { words, states } = tensorMemoryOf(block);
  for (const [row, own] of targets.entries())
    for (let part = 0; part < parts; part++) {
      const from = chunks[row * parts + part] ?? 0;
      const bytes = expanded(block.shared.bytes.slice(from, from + 16), expansion);
      const view = new DataView(bytes.buffer, bytes.byteOffset);
      for (let word = 0; word < 4; word++)
        for (const lane of own) {
          const cell = lane * allColumns + column + 4 * part + word;
          words[cell] = view.getUint32(4 * word, true);
          states[cell] = halves.both;
        }
    }
}

/** Columns that a shift moves. */
const shiftedColumns = 8;

/** `tcgen05.shift.down [address]` */
export function tensorShift(instruction: CollectiveInstruction): Collective | undefined {
  const [address] = instruction.operands;
  if (address === undefined || !instruction.modifiers.includes("down")) return undefined;
  const isPair = instruction.modifiers.includes("cta_group::2");
  return {
    aligned: false,
    run: (call) => {
      for (const lane of lanesOf(call.mask)) issueShift(instruction, call, address, isPair, lane);
      return "done";
    },
  };
}

function issueShift(
  instruction: CollectiveInstruction,
  { machine, warp }: CollectiveCall,
  address: OperandView,
  isPair: boolean,
  lane: number,
): void {
  const blocks = isPair ? pairOf(machine, instruction, warp).both : [warp.block];
  const { lane: first, column } = splitAddress(address.address(warp, lane));
  if (first % 32 !== 0 || first >= lanes)
    throw new TilewrightError({
      code: "TW8084",
      message: `${instruction.instruction.opcode} of ${warp.title} begins at lane ${first} of tensor memory`,
      location: instruction.location,
      expected: "a multiple of 32",
      found: `lane ${first}`,
    });
  const ranges = blocks.map((block): TensorRange => ({
    block,
    column,
    columns: shiftedColumns,
    groups: 0xff,
  }));
  submit({
    ...{ machine, warp, lane, instruction, reads: [], writes: ranges },
    issue: new Issue({ machine, warp, lane, instruction }, "async"),
    kinds: ["shift"],
    follows: ["mma"],
    run: () => {
      for (const block of blocks) shiftRows(block, column);
    },
  });
}

function shiftRows(block: BlockView, column: number): void {
  const { words, states } = tensorMemoryOf(block);
  for (let lane = 0; lane < lanes; lane++) {
    if (lane % 32 === 31) continue;
    const [to, from] = [lane * allColumns + column, (lane + 1) * allColumns + column];
    words.copyWithin(to, from, from + shiftedColumns);
    states.copyWithin(to, from, from + shiftedColumns);
  }
}
