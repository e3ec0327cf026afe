/**
 * Loads of units. A tile's words hold elements in the order of the registers; memory holds them
 * in its own, so that a unit whose registers follow on moves words as they are and others are put together
 * with `prmt`:
 *
 *   registers 0 … 7 of 16 bits      ld.global.v4.b32 {w0, w1, w2, w3}, [a]
 *   registers 0, 2, 1, 3            ld.global.v2.b32 {t0, t1}, [a]      w0 = t0.lo t1.lo, w1 = t0.hi t1.hi
 *   one register                    ld.global.u16 t0, [a]               w0 = t0.lo of this and of another
 *
 * Whole warps move matrices where the access says so. Where a guard fails, a load leaves the fill value that
 * was moved there before.
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../function-builder.ts";
import type { Operand, Register } from "../../module.ts";
import { braces, integer, vector } from "../../operands.ts";
import { gatherWord } from "../tiles/repack.ts";
import type { WordPart } from "../tiles/repack.ts";
import { noPolicy } from "./cache-policy.ts";
import type { Access, MatrixAccess, Unit } from "./units.ts";

/** What a tile is in memory: bool counts as bytes. */
export interface Format {
  readonly bits: DType["bits"];
  /** Registers of the layout. */
  readonly registers: number;
}

const wordBits = 32;

export function slotsOf({ bits }: Format): number {
  return Math.max(1, wordBits / bits);
}

/** What stands where nothing is loaded: a word with the value in every slot, or the words of a tile in the same layout. */
export type Fill = { readonly word: Operand } | { readonly words: readonly Register[] };

/** The word, of a number of slots, that holds what stands for the elements of some registers. */
function fillFor(code: Code, fill: Fill, registers: readonly number[], { bits }: Format): Operand {
  if ("word" in fill) return fill.word;
  const slots = Math.max(1, wordBits / bits);
  const parts = registers.map((register): WordPart | undefined => {
    const word = fill.words[Math.floor(register / slots)];
    return word && { word, part: register % slots };
  });
  const gathered = gatherWord(code, bits, parts);
  if (gathered === undefined) throw new Error("a fill value of no elements");
  return gathered;
}

/** The words of a tile, loaded. */
export function loadWords(
  code: Code,
  access: Access,
  format: Format,
  fill: Fill,
): readonly Register[] {
  const { whole, matrices } = access;
  if (matrices !== undefined) return loadMatrices(code, matrices, wordCount(format));
  if (whole === undefined) {
    const units = access.units();
    const chunks = loadUnits(code, access, units, format, fill);
    return collectWords(code, format, units, chunks, fill);
  }
  const units = whole.units();
  const chunks = loadUnits(code, access, units, format, fill, whole.inside);
  const back = code.label("loaded");
  const overhang = code.label("overhang");
  code.jumpIf(whole.inside, overhang, { negated: true });
  const words = collectWords(code, format, units, chunks, fill);
  code.place(back);
  code.aside(() => {
    code.place(overhang);
    const singles = access.units();
    const slow = loadUnits(code, access, singles, format, fill);
    collectWords(code, format, singles, slow, fill).forEach((source, index) => {
      const word = words[index];
      if (word !== undefined) code.emit(`mov.${word.type}`, [word, source]);
    });
    code.jump(back);
  });
  return words;
}

export function matrixSuffix({ transposed }: MatrixAccess, count: number): string {
  return `.sync.aligned.m8n8.x${count}${transposed ? ".trans" : ""}.shared.b16`;
}

function loadMatrices(code: Code, matrices: MatrixAccess, count: number): readonly Register[] {
  const words = code.registers("b32", count);
  for (const { words: own, address: place } of matrices.groups()) {
    const targets = braces(own.flatMap((word) => words[word] ?? []));
    code.emit(`ldmatrix${matrixSuffix(matrices, own.length)}`, [targets, place]);
  }
  return words;
}

function wordCount(format: Format): number {
  return Math.ceil(format.registers / slotsOf(format));
}

/** The registers that each unit was loaded into. */
function loadUnits(
  code: Code,
  access: Access,
  units: readonly Unit[],
  format: Format,
  fill: Fill,
  inside?: Register,
): readonly (readonly Register[])[] {
  const guards = guardsOf(code, units, inside);
  const loads = units.map((unit) => prepareLoad(code, unit, format, fill));
  units.forEach((unit, index) => {
    loadUnit(code, access, { ...unit, guard: guards[index] }, format, loads[index] ?? []);
  });
  return loads;
}

/** The guards of units where the window must be inside as a whole besides. */
export function guardsOf(
  code: Code,
  units: readonly Unit[],
  inside: Register | undefined,
): readonly (Register | undefined)[] {
  if (inside === undefined) return units.map(({ guard }) => guard);
  const known = new Map<Register, Register>();
  return units.map(({ guard }) => {
    if (guard === undefined) return inside;
    const both = known.get(guard) ?? code.make("pred", "and.pred", guard, inside);
    known.set(guard, both);
    return both;
  });
}

/** The slot of a unit's element in its word. */
function partOf({ half }: Unit, position: number, slots: number): number {
  return typeof half === "number" ? half : position % slots;
}

/** The words of the tile; elements that no unit has are surely outside, or padding. */
function collectWords(
  code: Code,
  format: Format,
  units: readonly Unit[],
  loads: readonly (readonly Register[])[],
  fill: Fill,
): readonly Register[] {
  const slots = slotsOf(format);
  const places = new Map<number, WordPart>();
  units.forEach((unit, index) => {
    const chunks = shifted(code, unit, loads[index] ?? []);
    unit.registers.forEach((register, position) => {
      const word = chunks[Math.floor(position / slots)];
      if (word !== undefined) places.set(register, { word, part: partOf(unit, position, slots) });
    });
  });
  const type = format.bits === 64 ? "b64" : "b32";
  let filled: Register | undefined;
  const outside = (index: number, part: number): WordPart | undefined => {
    if ("word" in fill) filled ??= code.make(type, `mov.${type}`, fill.word);
    const word = "word" in fill ? filled : fill.words[index];
    return word && { word, part };
  };
  return Array.from({ length: wordCount(format) }, (_, index) => {
    const used = Math.min(slots, format.registers - index * slots);
    const registers = Array.from({ length: used }, (_, slot) => index * slots + slot);
    // Words of the fill value alone have a register each, as others do.
    if (!registers.some((register) => places.has(register)))
      return code.make(type, `mov.${type}`, fillFor(code, fill, registers, format));
    const parts = registers.map((register, slot) => places.get(register) ?? outside(index, slot));
    const gathered = gatherWord(code, format.bits, parts);
    if (gathered === undefined) throw new Error("a word of no elements");
    return gathered;
  });
}

/** Registers that a unit is loaded into, with the fill value where the load may not happen. */
function prepareLoad(
  code: Code,
  { registers, guard, half }: Unit,
  format: Format,
  fill: Fill,
): readonly Register[] {
  const { bits } = format;
  const type = bits === 64 ? "b64" : "b32";
  const count = Math.ceil((registers.length * bits) / (bits === 64 ? 64 : wordBits));
  const chunks = code.registers(type, count);
  if (guard === undefined) return chunks;
  const slots = slotsOf(format);
  chunks.forEach((chunk, index) => {
    const own = registers.slice(index * slots, (index + 1) * slots);
    // A lone element of 4 bits is loaded in either half of its byte.
    const held = half === undefined ? own : own.flatMap((register) => [register, register]);
    code.emit(`mov.${type}`, [chunk, fillFor(code, fill, held, format)]);
  });
  return chunks;
}

function loadUnit(
  code: Code,
  { space, readOnly, policy = noPolicy }: Access,
  unit: Unit,
  { bits }: Format,
  chunks: readonly Register[],
): void {
  const path = readOnly ? `${space}.nc` : space;
  const load = (): void => {
    code.emit(`ld.${path}${policy.suffix}${suffix(unit.registers.length * bits, bits)}`, [
      vector(chunks),
      unit.address,
      ...policy.operands,
    ]);
  };
  if (unit.guard === undefined) load();
  else code.guarded(unit.guard, load);
}

/** Vector and type of an access to so many bits; narrow ones go through the low bits of a b32. */
export function suffix(total: number, bits: number): string {
  if (total <= 8) return ".u8";
  if (total === 16) return ".u16";
  const type = bits === 64 ? 64 : wordBits;
  const count = total / type;
  return `${count === 1 ? "" : `.v${count}`}.b${type}`;
}

/** A lone 4-bit element comes to the low bits where its half is known at run time. */
function shifted(code: Code, { half }: Unit, chunks: readonly Register[]): readonly Register[] {
  if (half === undefined || typeof half === "number") return chunks;
  const distance = code.make("b32", "shl.b32", half, integer(2));
  return chunks.map((chunk) => code.make("b32", "shr.u32", chunk, distance));
}
