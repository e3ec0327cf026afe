/** Compares the output of a program with another run's, slot by slot. */
import { decodeFloat } from "../../src/formats/floats.ts";
import type { Check, FloatName, Program, Slot } from "./program.ts";

export interface Mismatch {
  readonly program: string;
  readonly slot: string;
  /** Elements that differ, of how many. */
  readonly count: number;
  readonly of: number;
  /** The first few, as hexadecimal numbers. */
  readonly examples: readonly string[];
}

const examplesShown = 4;

const floatBytes: { readonly [T in FloatName]: number } = { f16: 2, bf16: 2, f32: 4, f64: 8 };

function hex(bytes: Uint8Array, offset: number, length: number): string {
  return [...bytes.subarray(offset, offset + length)]
    .reverse()
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}

function floatAt(bytes: Uint8Array, offset: number, type: FloatName): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (type === "f32") return view.getFloat32(offset, true);
  if (type === "f64") return view.getFloat64(offset, true);
  return decodeFloat(type, view.getUint16(offset, true));
}

function sameBytes(left: Uint8Array, right: Uint8Array, offset: number, length: number): boolean {
  for (let at = offset; at < offset + length; at++) if (left[at] !== right[at]) return false;
  return true;
}

/** Whether an element agrees; packed floats are looked at one by one. */
function agrees(
  emulated: Uint8Array,
  other: Uint8Array,
  offset: number,
  length: number,
  check: Check,
): boolean {
  if (sameBytes(emulated, other, offset, length)) return true;
  if (check.kind === "exact") return false;
  const bytes = floatBytes[check.type];
  for (let at = offset; at < offset + length; at += bytes) {
    if (sameBytes(emulated, other, at, bytes)) continue;
    const [expected, found] = [floatAt(emulated, at, check.type), floatAt(other, at, check.type)];
    if (!(Math.abs(expected - found) <= check.tolerance(expected))) return false;
  }
  return true;
}

/** Where the operands of an element lie, as text. */
function operandText(program: Program, slot: Slot, index: number): string {
  const texts = (slot.operands ?? []).map(({ offset, elementBytes }) =>
    hex(program.input, offset + index * elementBytes, elementBytes),
  );
  return texts.length === 0 ? "" : `(${texts.join(", ")})`;
}

export function compareOutputs(
  program: Program,
  emulated: Uint8Array,
  other: Uint8Array,
): readonly Mismatch[] {
  const found: Mismatch[] = [];
  for (const slot of program.slots) {
    const { offset, bytes, elementBytes, check } = slot;
    const wrong: number[] = [];
    for (let at = 0; at < bytes; at += elementBytes)
      if (!agrees(emulated, other, offset + at, elementBytes, check)) wrong.push(at / elementBytes);
    if (wrong.length === 0) continue;
    const examples = wrong.slice(0, examplesShown).map((index) => {
      const at = offset + index * elementBytes;
      const [expected, actual] = [emulated, other].map((one) => hex(one, at, elementBytes));
      return `[${index}]${operandText(program, slot, index)} emulator ${expected} other ${actual}`;
    });
    const of = bytes / elementBytes;
    found.push({ program: program.name, slot: slot.label, count: wrong.length, of, examples });
  }
  return found;
}

/** The bytes that must agree exactly, for digests: those of approximate slots are left out. */
export function exactBytes({ slots }: Program, output: Uint8Array): Uint8Array {
  const parts = slots
    .filter(({ check }) => check.kind === "exact")
    .map(({ offset, bytes }) => output.subarray(offset, offset + bytes));
  const all = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** FNV-1a, twice with other starts: 64 bits as text. */
export function digest(bytes: Uint8Array): string {
  return [0x811c9dc5, 0x01234567]
    .map((start) => {
      let hash = start;
      for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
      return (hash >>> 0).toString(16).padStart(8, "0");
    })
    .join("");
}
