/**
 * Where the registers of a function lie in a frame of the warp's register file, which is an array of 32-bit
 * words with all lanes of a register side by side:
 *
 *   | register      | words | lane l at                  |
 *   |---------------|-------|----------------------------|
 *   | predicate     | 1     | bit l                      |
 *   | up to 32 bits | 32    | l                          |
 *   | 64 bits       | 64    | 2 l, low word first        |
 *   | 128 bits      | 128   | 4 l, low word first        |
 *
 * In front of them each register has a word whose bit l says whether lane l has ever written it.
 */
import { visitRegisters } from "../../ptx/register-declarations.ts";
import type { PtxType, Register, Statement } from "../../ptx/module.ts";

export const warpLanes = 32;

export type RegisterShape = "predicate" | "word" | "pair" | "quad";

export interface RegisterPlace {
  readonly register: Register;
  readonly number: number;
  readonly shape: RegisterShape;
  /** Bits that the register has. */
  readonly bits: number;
  /** In words from the start of the frame. */
  readonly offset: number;
}

export interface FrameLayout {
  readonly places: ReadonlyMap<Register, RegisterPlace>;
  /** Even, so that frames keep pairs aligned. */
  readonly words: number;
}

/** The carry flag that `add.cc` leaves; every function has its own. */
export const carryRegister: Register = Object.freeze({
  kind: "register",
  name: "%cc",
  type: "pred",
});

const typeBits: { readonly [T in PtxType]: number } = {
  pred: 1,
  b8: 8,
  b16: 16,
  b32: 32,
  b64: 64,
  b128: 128,
  u8: 8,
  u16: 16,
  u32: 32,
  u64: 64,
  s8: 8,
  s16: 16,
  s32: 32,
  s64: 64,
  f16: 16,
  f16x2: 32,
  bf16: 16,
  bf16x2: 32,
  f32: 32,
  f64: 64,
};

export function bitsOf(type: PtxType): number {
  return typeBits[type];
}

function shapeOf(type: PtxType): RegisterShape {
  if (type === "pred") return "predicate";
  const bits = typeBits[type];
  return bits === 128 ? "quad" : bits === 64 ? "pair" : "word";
}

const shapeWords: { readonly [S in RegisterShape]: number } = {
  predicate: 1,
  word: warpLanes,
  pair: 2 * warpLanes,
  quad: 4 * warpLanes,
};

/** Gives every register of a body its place: the widest first, so that all are aligned. */
export function layOutRegisters(body: readonly Statement[]): FrameLayout {
  const registers = new Set<Register>([carryRegister]);
  collect(body, registers);
  const order: readonly RegisterShape[] = ["quad", "pair", "word", "predicate"];
  const places = new Map<Register, RegisterPlace>();
  let offset = 4 * Math.ceil(registers.size / 4);
  let number = 0;
  for (const shape of order)
    for (const register of registers) {
      if (shapeOf(register.type) !== shape) continue;
      places.set(register, { register, number, shape, bits: typeBits[register.type], offset });
      number += 1;
      offset += shapeWords[shape];
    }
  return { places, words: 4 * Math.ceil(offset / 4) };
}

function collect(body: readonly Statement[], registers: Set<Register>): void {
  for (const statement of body) {
    if (statement.kind === "block") collect(statement.body, registers);
    if (statement.kind !== "instruction") continue;
    if (statement.guard !== undefined) registers.add(statement.guard.register);
    for (const operand of statement.operands)
      visitRegisters(operand, (register) => registers.add(register));
  }
}
