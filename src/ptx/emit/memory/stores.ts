/**
 * Stores of units, the way back from `loads.ts`: words of memory are put together from a tile's, and one
 * instruction writes those of a unit. Single elements of 4 bits are stored by two atomic updates of the
 * 32-bit word around them, so that their neighbour, which another lane may be writing, stays as it is.
 *
 *   element 5 at byte a, upper half      red.and [a & ~3], ~(15 << 4 + 8 (a & 3))
 *                                        red.or  [a & ~3], 5 << 4 + 8 (a & 3)
 */
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { address, braces, integer, vector } from "../../operands.ts";
import { gatherWord } from "../tiles/repack.ts";
import type { WordPart } from "../tiles/repack.ts";
import { guardsOf, matrixSuffix, slotsOf, suffix } from "./loads.ts";
import type { Format } from "./loads.ts";
import type { Access, MatrixAccess, Space, Unit } from "./units.ts";

/** Writes the words of a unit, the first element in the low bits of the first, where its guard allows it. */
export type UnitWriter = (unit: Unit, words: readonly Register[]) => void;

/** Stores the words of a tile. */
export function storeWords(
  code: Code,
  access: Access,
  format: Format,
  words: readonly Register[],
): void {
  const { matrices, space } = access;
  if (matrices !== undefined) storeMatrices(code, matrices, words);
  else
    writeWords(code, access, format, words, (unit, chunks) => {
      storeUnit(code, space, unit, format, chunks);
    });
}

/** Hands all units with their words to a writer. */
export function writeWords(
  code: Code,
  access: Access,
  format: Format,
  words: readonly Register[],
  write: UnitWriter,
): void {
  const { whole } = access;
  const writeAll = (units: readonly Unit[], inside?: Register): void => {
    const guards = guardsOf(code, units, inside);
    units.forEach((unit, index) => {
      write({ ...unit, guard: guards[index] }, wordsOf(code, unit, format, words));
    });
  };
  if (whole === undefined) {
    writeAll(access.units());
    return;
  }
  writeAll(whole.units(), whole.inside);
  const back = code.label("written");
  const overhang = code.label("overhang");
  code.jumpIf(whole.inside, overhang, { negated: true });
  code.place(back);
  code.aside(() => {
    code.place(overhang);
    writeAll(access.units());
    code.jump(back);
  });
}

/** The words of memory that a unit writes. */
function wordsOf(
  code: Code,
  { registers }: Unit,
  format: Format,
  words: readonly Register[],
): readonly Register[] {
  const slots = slotsOf(format);
  return registers.flatMap((_, position) => {
    if (position % slots !== 0) return [];
    const parts = registers.slice(position, position + slots).map((register): WordPart => {
      const word = words[Math.floor(register / slots)];
      if (word === undefined) throw new Error(`register ${register} has no word`);
      return { word, part: register % slots };
    });
    return gatherWord(code, format.bits, parts) ?? [];
  });
}

/** Emits under a guard, if there is one. */
export function underGuard(code: Code, guard: Register | undefined, emit: () => void): void {
  if (guard === undefined) emit();
  else code.guarded(guard, emit);
}

function storeMatrices(code: Code, matrices: MatrixAccess, words: readonly Register[]): void {
  for (const { words: own, address: place } of matrices.groups()) {
    const sources = braces(own.flatMap((word) => words[word] ?? []));
    code.emit(`stmatrix${matrixSuffix(matrices, own.length)}`, [place, sources]);
  }
}

function storeUnit(
  code: Code,
  space: Space,
  unit: Unit,
  { bits }: Format,
  chunks: readonly Register[],
): void {
  const [only] = chunks;
  if (bits === 4 && unit.registers.length === 1 && only !== undefined)
    storeNibble(code, space, unit, only);
  else
    underGuard(code, unit.guard, () => {
      const opcode = `st.${space}${suffix(unit.registers.length * bits, bits)}`;
      code.emit(opcode, [unit.address, vector(chunks)]);
    });
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
  underGuard(code, unit.guard, () => {
    code.emit(`red.${space}.and.b32`, [address(word), kept]);
    code.emit(`red.${space}.or.b32`, [address(word), set]);
  });
}

function nibbleDistance(code: Code, shift: Register, half: number | Register): Register {
  if (typeof half === "number")
    return half === 0 ? shift : code.make("b32", "add.u32", shift, integer(4));
  return code.make("b32", "mad.lo.u32", half, integer(4), shift);
}
