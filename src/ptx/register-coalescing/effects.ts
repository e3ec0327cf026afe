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
import type { Instruction, Operand, Register, Statement } from "../module.ts";
import { visitOperands, visitRegisters } from "../register-declarations.ts";

export interface Effects {
  readonly reads: readonly number[];
  readonly writes: readonly number[];
}

export const isProduct = ({ opcode }: Instruction): boolean => opcode.startsWith("wgmma.mma_async");

const none: readonly number[] = Object.freeze([]);

/** Of what touches no register that has a number: most of the instructions. */
const noEffects: Effects = Object.freeze({ reads: none, writes: none });

/** What each statement reads and writes; undefined of what is no instruction. */
export function effectsOf(
  statements: readonly Statement[],
  numbers: ReadonlyMap<Register, number>,
): readonly (Effects | undefined)[] {
  let reads: number[] | undefined;
  let writes: number[] | undefined;
  const reading = (register: Register): void => {
    const number = numbers.get(register);
    if (number !== undefined) (reads ??= []).push(number);
  };
  const writing = (register: Register): void => {
    const number = numbers.get(register);
    if (number !== undefined) (writes ??= []).push(number);
  };
  const effects: (Effects | undefined)[] = [];
  for (let at = 0; at < statements.length; at += 1) {
    const statement = statements[at] as Statement;
    if (statement.kind !== "instruction") {
      effects.push(undefined);
      continue;
    }
    const { guard, operands } = statement;
    reads = undefined;
    writes = undefined;
    if (guard !== undefined) reading(guard.register);
    const [result] = operands;
    if (result === undefined || !givesResult(statement)) visitOperands(operands, reading);
    else {
      visitRegisters(result, writing);
      if (guard !== undefined || isProduct(statement)) visitRegisters(result, reading);
      visitOperands(operands, reading, 1);
    }
    const touches = reads !== undefined || writes !== undefined;
    effects.push(touches ? { reads: reads ?? none, writes: writes ?? none } : noEffects);
  }
  return effects;
}

function givesResult({ opcode, operands }: Instruction): boolean {
  const first = operands[0];
  if (first === undefined || !isResult(first)) return false;
  const meets = opcode.startsWith("bar") && !opcode.startsWith("barrier.red");
  return !meets && !opcode.startsWith("nanosleep");
}

function isResult({ kind }: Operand): boolean {
  return kind === "register" || kind === "vector" || kind === "pair";
}
