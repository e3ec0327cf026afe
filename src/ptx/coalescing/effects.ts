/**
 * Which registers an instruction reads and writes. Results come first in PTX, so the first operand is written where it
 * is a register, or several; all others are read. Three things are otherwise:
 *
 *   | instruction                  | what holds                                                          |
 *   |------------------------------|---------------------------------------------------------------------|
 *   | bar.sync, nanosleep          | have no result                                                      |
 *   | wgmma.mma_async              | adds to its first operand, which is read too                        |
 *   | @%p add %r, …                | may leave %r as it was, so that it is read too                      |
 *
 * Registers are numbered; those without a number do not matter to whoever asks.
 */
import type { Instruction, Operand, Register } from "../module.ts";
import { visitRegisters } from "../registers.ts";

export interface Effects {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
}

export const isProduct = ({ opcode }: Instruction): boolean => opcode.startsWith("wgmma.mma_async");

export function effectsOf(
  instruction: Instruction,
  numbers: ReadonlyMap<Register, number>,
): Effects {
  const reads: number[] = [];
  const writes: number[] = [];
  const reading = (register: Register): void => {
    const number = numbers.get(register);
    if (number !== undefined) reads.push(number);
  };
  const writing = (register: Register): void => {
    const number = numbers.get(register);
    if (number !== undefined) writes.push(number);
  };
  const { guard, operands } = instruction;
  const hasResult = givesResult(instruction);
  if (guard !== undefined) reading(guard.register);
  for (const [position, operand] of operands.entries()) {
    const written = position === 0 && hasResult;
    if (written) visitRegisters(operand, writing);
    if (!written || guard !== undefined || isProduct(instruction)) visitRegisters(operand, reading);
  }
  return { reads, writes };
}

function givesResult({ opcode, operands: [first] }: Instruction): boolean {
  if (first === undefined || !isResult(first)) return false;
  const meets = opcode.startsWith("bar") && !opcode.startsWith("barrier.red");
  return !meets && !opcode.startsWith("nanosleep");
}

function isResult({ kind }: Operand): boolean {
  return kind === "register" || kind === "vector" || kind === "pair";
}
