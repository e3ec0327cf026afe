/** All instructions but those of control and locals, by the names of the specification. */
import { namesOf } from "../../support/records.ts";
import { atomicOpcodes } from "./atomic-opcodes.ts";
import type { Opcode } from "./opcode.ts";
import { relaxedOpcodes } from "./relaxed-opcodes.ts";
import { scalarOpcodes } from "./scalar-opcodes.ts";
import { simdOpcodes } from "./simd-opcodes.ts";

const table = Object.freeze({
  ...scalarOpcodes,
  ...simdOpcodes,
  ...relaxedOpcodes,
  ...atomicOpcodes,
});

/** The name of an instruction, such as `"f32x4.add"`. */
export type OpcodeName = keyof typeof table;

/** Instructions that not every engine has. */
export type RelaxedName = keyof typeof relaxedOpcodes;

export const opcodes: { readonly [Name in OpcodeName]: Opcode } = table;

export const opcodeNames = Object.freeze(namesOf(opcodes));

export function isRelaxed(name: OpcodeName): name is RelaxedName {
  return name in relaxedOpcodes;
}
