/**
 * Scales of blocks in tensor memory: how they are copied there, and what an instruction is told of those that it takes.
 *
 *   tcgen05.cp.32x128b.warpx4 [scales], descriptor          an atom of 128 rows by 4 blocks each
 *   tcgen05.cp.64x128b.warpx2::01_23 [scales], descriptor   two of them, for either half of the lanes one
 *   tcgen05.mma.kind::mxf4.block_scale.scale_vec::2X …      the byte of the first scale in the descriptor, its word in the address
 */
import type { DTypeName } from "../../../formats/dtype.ts";
import type { Op } from "../../../ir/node.ts";
import { refOf } from "../../../ir/traverse.ts";
import { blocksTogether } from "../../../layout/model/tensor-memory.ts";
import { scalesOfStep } from "../../../targets/scaled-products.ts";
import type { ScaledKind } from "../../../targets/scaled-products.ts";
import type { Operand, Register } from "../../module.ts";
import { address, braces, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { sharedStart } from "../memory/shared.ts";
import type { TensorValue } from "../values.ts";
import { sharedRef } from "./products.ts";
import { descriptorVersion, issuingLane } from "./tensor-memory-issue.ts";

export function scaledOpcode(kind: ScaledKind): string {
  return `${kind.name}.block_scale.scale_vec::${scalesOfStep(kind)}X`;
}

/** Codes of formats where an instruction takes bytes of any narrow format, and where it takes FP4 alone. */
const narrowCodes: { readonly [N in DTypeName]?: number } = {
  f8e4m3fn: 0,
  f8e5m2: 1,
  f6e2m3fn: 3,
  f6e3m2fn: 4,
  f4e2m1fn: 5,
};
const fourBitCodes: { readonly [N in DTypeName]?: number } = { f4e2m1fn: 1 };

export function scaledFormatCodes({ name }: ScaledKind): { readonly [N in DTypeName]?: number } {
  return name === "mxf8f6f4" ? narrowCodes : fourBitCodes;
}

/** The descriptor of an instruction that begins at an element of k: which bytes of their words its scales are, and their format. */
export function scaledDescriptor(
  code: EmitContext["code"],
  description: number,
  { block, scales }: ScaledKind,
  from: number,
): Register {
  const byte = (from / block) % 4;
  // That they are summed in f32 goes without saying.
  const plain = description & ~(3 << 4);
  const format = scales === "f8e8m0fnu" ? 1 << 23 : 0;
  return code.constant("b32", (plain | (byte << 4) | format | (byte << 29)) >>> 0);
}

/** Where the scales of so many rows lie from a block on: four blocks share a word, and words of all rows lie side by side. */
export function scalesAddress(
  { base, columns }: TensorValue,
  rows: number,
  block: number,
): Operand {
  return address(base, columns + 4 * Math.ceil(rows / 128) * Math.floor(block / 4));
}

/** An atom of 128 × 4 scales: 32 lanes of four words, without a swizzle, the next eight lanes 128 bytes on. */
const atomBytes = 512;

export function copyToTensor(op: Op<"tcgen05_copy">, context: EmitContext): void {
  const { code } = context;
  const into = context.tensor(op.operands.destination);
  const [rows = 0, blocks = 0] = refOf(op.operands.destination).shape.map(Number);
  const start = sharedStart(context, sharedRef(context, op.operands.source));
  const low = code.make("b32", "bfe.u32", start.base, integer(4), integer(14));
  const fixed = descriptorVersion | (8n << 32n) | (1n << 16n);
  const at = code.make(
    "b32",
    "add.u32",
    low,
    integer(Number(fixed & 0xffffffffn) + (start.offset >> 4)),
  );
  const base = code.make("b64", "mov.b64", braces([at, code.constant("b32", fixed >> 32n)]));
  const isHalved = into.storage.kind === "scales" && into.storage.isHalved;
  const [ofRows, ofBlocks] = [isHalved ? 1 : rows / 128, blocks / 4];
  const bytes = isHalved ? 2 * atomBytes : atomBytes;
  const form = isHalved ? "64x128b.warpx2::01_23" : "32x128b.warpx4";
  const issued: (readonly Operand[])[] = [];
  for (let row = 0; row < ofRows; row += 1)
    for (let block = 0; block < ofBlocks; block += 1) {
      const atom = row * ofBlocks + block;
      const descriptor =
        atom === 0 ? base : code.make("b64", "add.s64", base, integer((atom * bytes) >> 4));
      issued.push([address(into.base, into.columns + 4 * (row + ofRows * block)), descriptor]);
    }
  code.guarded(issuingLane(context), () => {
    for (const operands of issued)
      code.emit(`tcgen05.cp.cta_group::${blocksTogether(op)}.${form}`, operands);
  });
}
