/**
 * Programs of a few instructions each, which together use every form that the emulator accepts. A program is
 * one entry that reads an input buffer and fills an output buffer, in which each form has a slot:
 *
 *   input    a stream of operands each:  a₀ a₁ … a₂₅₅ | b₀ b₁ … b₂₅₅
 *   output   a slot for each form:       add.s32 (1 KB) | add.sat.s32 (1 KB) | …
 *
 * Emulator and hardware must fill the slots with the same bytes; where an instruction is approximate, the
 * slot says how far apart they may be.
 */
import type { TensorMap } from "../../src/emulator/tensor-map.ts";

export type FloatName = "f16" | "bf16" | "f32" | "f64";

/** How two results of a slot are compared. */
export type Check =
  | { readonly kind: "exact" }
  /** Floats that may differ by so much, given the emulator's result; special values must agree. */
  | {
      readonly kind: "close";
      readonly type: FloatName;
      readonly tolerance: (value: number) => number;
    };

export const exact: Check = Object.freeze({ kind: "exact" });

/** A part of the output, with what wrote it. */
export interface Slot {
  readonly label: string;
  readonly offset: number;
  readonly bytes: number;
  /** Of an element, for reports. */
  readonly elementBytes: 1 | 2 | 4 | 8 | 16;
  readonly check: Check;
  /** Where in the input the operands of its elements lie, for reports. */
  readonly operands?: readonly { readonly offset: number; readonly elementBytes: number }[];
}

/** A tensor map over one of the buffers, handed over by value behind the two pointers. */
export interface ProgramMap {
  readonly buffer: "input" | "output";
  readonly offset: number;
  readonly map: Omit<TensorMap, "address">;
}

export interface Program {
  readonly name: string;
  /** Programs of a group share a module. */
  readonly group: string;
  /** The entry, with variables and functions of its own before it. */
  readonly text: string;
  readonly blocks: number;
  readonly threads: number;
  readonly cluster: number;
  readonly sharedBytes: number;
  readonly input: Uint8Array;
  /** What the output holds before; its length is that of the output. */
  readonly output: Uint8Array;
  readonly slots: readonly Slot[];
  readonly maps: readonly ProgramMap[];
  /** Opcodes of the forms that the program is there for. */
  readonly opcodes: readonly string[];
  /** Codes of what the emulator has to find. */
  readonly finds: readonly string[];
}

/** The module of some programs. */
export function moduleText(programs: readonly Program[]): string {
  const entries = programs.map(({ text }) => text).join("\n");
  return `.version 8.7\n.target sm_90a\n.address_size 64\n\n${entries}`;
}
