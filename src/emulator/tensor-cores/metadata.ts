/** The metadata operands of a sparse product: a register, and the selector of the lanes whose bits count. */
import type { CollectiveCall, CollectiveInstruction, OperandView } from "../collective.ts";
import { reportOnce } from "../reports.ts";
import type { OperandType } from "./multiply.ts";
import { constantOf, readRegisters } from "./operands.ts";
import { chunkBits, chunkProblem, sparsityOf } from "./sparse.ts";
import type { Sparsity } from "./sparse.ts";

export interface Metadata {
  readonly register: OperandView;
  readonly sparsity: Sparsity;
}

export function isSparse(modifiers: readonly string[]): boolean {
  return modifiers.includes("sp") || modifiers.includes("sp::ordered_metadata");
}

export function metadataOf(
  modifiers: readonly string[],
  type: OperandType,
  k: number,
  register: OperandView | undefined,
  selector: OperandView | undefined,
): Metadata | undefined {
  const selected = constantOf(selector);
  if (register?.operand.kind !== "register" || selected === undefined) return undefined;
  const ordered = modifiers.includes("sp::ordered_metadata");
  const sparsity = sparsityOf(type, k, selected, ordered);
  return sparsity && { register, sparsity };
}

/** The bits of all chunks of a warp's 16 rows; reports those that mean nothing. */
export function readMetadata(
  { register, sparsity }: Metadata,
  instruction: CollectiveInstruction,
  { machine, warp }: CollectiveCall,
): Uint8Array {
  const [words = new Int32Array(32)] = readRegisters([register], warp);
  const bits = chunkBits(sparsity, words);
  if (!machine.checks) return bits;
  for (const [index, chunk] of bits.entries()) {
    const problem = chunkProblem(sparsity, chunk);
    if (problem === undefined) continue;
    const [row, at] = [Math.floor(index / sparsity.chunks), index % sparsity.chunks];
    reportOnce(machine, instruction, {
      code: "TW8075",
      message: `${instruction.instruction.opcode} in ${warp.title} has metadata that mean nothing: ${problem}`,
      location: instruction.location,
      expected: "two indices that differ and ascend; of tf32 0b0100 or 0b1110",
      found: `0b${chunk.toString(2).padStart(4, "0")} for chunk ${at} of the warp's row ${row}`,
    });
    break;
  }
  return bits;
}
