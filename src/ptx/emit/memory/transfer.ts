/**
 * Loads and stores of units. A tile's words hold elements in the order of the registers; memory holds them
 * in its own, so that a unit whose registers follow on moves words as they are and others are put together
 * with `prmt`:
 *
 *   registers 0 … 7 of 16 bits      ld.global.v4.b32 {w0, w1, w2, w3}, [a]
 *   registers 0, 2, 1, 3            ld.global.v2.b32 {t0, t1}, [a]      w0 = t0.lo t1.lo, w1 = t0.hi t1.hi
 *   one register                    ld.global.u16 t0, [a]               w0 = t0.lo of this and of another
 *
 * Whole warps move matrices where the access says so. Where a guard fails, a load leaves the fill value that was moved there before. Single elements of 4 bits
 * are stored by two atomic updates of the 32-bit word around them, so that their neighbour, which another
 * lane may be writing, stays as it is.
 */
import type { DType } from "../../../formats/dtype.ts";
import type { Code } from "../../code.ts";
import type { Operand, Register } from "../../module.ts";
import { address, braces, integer, vector } from "../../operands.ts";
import { gatherWord } from "../tiles/words.ts";
import type { WordPart } from "../tiles/words.ts";
import type { Access, MatrixAccess, Space, Unit } from "./units.ts";

/** What a tile is in memory: bool counts as bytes. */
export interface Format {
  readonly bits: DType["bits"];
  /** Registers of the layout. */
  readonly registers: number;
}

const wordBits = 32;

function slotsOf({ bits }: Format): number {
  return Math.max(1, wordBits / bits);
}

/** The words of a tile, loaded; `fill` is a word that holds the fill value in every slot. */
export function loadWords(
  code: Code,
  access: Access,
  format: Format,
  fill: Operand,
): readonly Register[] {
  const { whole, matrices } = access;
  if (matrices !== undefined) return loadMatrices(code, matrices, wordCount(format));
  if (whole === undefined) {
    const units = access.units();
    const chunks = loadUnits(code, access, units, format, fill);
    return collectWords(code, format, units, chunks);
  }
  const units = whole.units();
  const chunks = loadUnits(code, access, units, format, fill, whole.inside);
  const back = code.label("loaded");
  const overhang = code.label("overhang");
  code.jumpIf(whole.inside, overhang, { negated: true });
  const words = collectWords(code, format, units, chunks);
  code.place(back);
  code.aside(() => {
    code.place(overhang);
    const singles = access.units();
    const slow = loadUnits(code, access, singles, format, fill);
    collectWords(code, format, singles, slow).forEach((source, index) => {
      const word = words[index];
      if (word !== undefined) code.emit(`mov.${word.type}`, [word, source]);
    });
    code.jump(back);
  });
  return words;
}

/** Stores the words of a tile. */
export function storeWords(
  code: Code,
  access: Access,
  format: Format,
  words: readonly Register[],
): void {
  const { whole, matrices } = access;
  if (matrices !== undefined) {
    storeMatrices(code, matrices, words);
    return;
  }
  const store = (units: readonly Unit[], inside?: Register): void => {
    const guards = guardsOf(code, units, inside);
    units.forEach((unit, index) => {
      storeUnit(code, access.space, { ...unit, guard: guards[index] }, format, words);
    });
  };
  if (whole === undefined) {
    store(access.units());
    return;
  }
  store(whole.units(), whole.inside);
  const back = code.label("stored");
  const overhang = code.label("overhang");
  code.jumpIf(whole.inside, overhang, { negated: true });
  code.place(back);
  code.aside(() => {
    code.place(overhang);
    store(access.units());
    code.jump(back);
  });
}

function matrixSuffix({ transposed }: MatrixAccess, count: number): string {
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

function storeMatrices(code: Code, matrices: MatrixAccess, words: readonly Register[]): void {
  for (const { words: own, address: place } of matrices.groups()) {
    const sources = braces(own.flatMap((word) => words[word] ?? []));
    code.emit(`stmatrix${matrixSuffix(matrices, own.length)}`, [place, sources]);
  }
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
  fill: Operand,
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
function guardsOf(
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

function collectWords(
  code: Code,
  format: Format,
  units: readonly Unit[],
  loads: readonly (readonly Register[])[],
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
  return Array.from({ length: wordCount(format) }, (_, index) => {
    const parts = Array.from({ length: slots }, (_, slot) => places.get(index * slots + slot));
    const gathered = gatherWord(code, format.bits, parts);
    // Words of padding alone.
    return gathered ?? code.constant(format.bits === 64 ? "b64" : "b32", 0);
  });
}

/** Registers that a unit is loaded into, with the fill value where the load may not happen. */
function prepareLoad(
  code: Code,
  { registers, guard }: Unit,
  { bits }: Format,
  fill: Operand,
): readonly Register[] {
  const type = bits === 64 ? "b64" : "b32";
  const count = Math.ceil((registers.length * bits) / (bits === 64 ? 64 : wordBits));
  const chunks = code.registers(type, count);
  if (guard !== undefined) for (const chunk of chunks) code.emit(`mov.${type}`, [chunk, fill]);
  return chunks;
}

function loadUnit(
  code: Code,
  { space, readOnly }: Access,
  unit: Unit,
  { bits }: Format,
  chunks: readonly Register[],
): void {
  const path = readOnly ? `${space}.nc` : space;
  const load = (): void => {
    code.emit(`ld.${path}${suffix(unit.registers.length * bits, bits)}`, [
      vector(chunks),
      unit.address,
    ]);
  };
  if (unit.guard === undefined) load();
  else code.guarded(unit.guard, load);
}

/** Vector and type of an access to so many bits; narrow ones go through the low bits of a b32. */
function suffix(total: number, bits: number): string {
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

function storeUnit(
  code: Code,
  space: Space,
  unit: Unit,
  format: Format,
  words: readonly Register[],
): void {
  const { bits } = format;
  const slots = slotsOf(format);
  const chunks = unit.registers.flatMap((_, position) => {
    if (position % slots !== 0) return [];
    const parts = unit.registers.slice(position, position + slots).map((register): WordPart => {
      const word = words[Math.floor(register / slots)];
      if (word === undefined) throw new Error(`register ${register} has no word`);
      return { word, part: register % slots };
    });
    return gatherWord(code, bits, parts) ?? [];
  });
  const store = (): void => {
    const opcode = `st.${space}${suffix(unit.registers.length * bits, bits)}`;
    code.emit(opcode, [unit.address, vector(chunks)]);
  };
  const [only] = chunks;
  if (bits === 4 && unit.registers.length === 1 && only !== undefined)
    storeNibble(code, space, unit, only);
  else if (unit.guard === undefined) store();
  else code.guarded(unit.guard, store);
}

/** Clears the element's bits in the word around it, then sets them. */
function storeNibble(code: Code, space: Space, unit: Unit, chunk: Register): void {
  const wide = space === "global";
  const type = wide ? "b64" : "b32";
  const { base, offset } = unit.address;
  const byte = code.make(type, wide ? "add.s64" : "add.u32", base, integer(offset));
  const word = code.make(type, `and.${type}`, byte, integer(-4));
  const low = wide ? code.make("b32", "cvt.u32.u64", byte) : byte;
  const inWord = code.make("b32", "and.b32", low, integer(3));
  const shift = code.make("b32", "shl.b32", inWord, integer(3));
  const distance = nibbleDistance(code, shift, unit.half ?? 0);
  const element = code.make("b32", "and.b32", chunk, integer(15));
  const set = code.make("b32", "shl.b32", element, distance);
  const mask = code.make("b32", "shl.b32", code.constant("b32", 15), distance);
  const kept = code.make("b32", "not.b32", mask);
  const update = (): void => {
    code.emit(`red.${space}.and.b32`, [address(word), kept]);
    code.emit(`red.${space}.or.b32`, [address(word), set]);
  };
  if (unit.guard === undefined) update();
  else code.guarded(unit.guard, update);
}

function nibbleDistance(code: Code, shift: Register, half: number | Register): Register {
  if (typeof half === "number")
    return half === 0 ? shift : code.make("b32", "add.u32", shift, integer(4));
  return code.make("b32", "mad.lo.u32", half, integer(4), shift);
}
