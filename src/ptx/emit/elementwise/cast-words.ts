/**
 * Conversion of the words of tiles. Elements are packed otherwise behind it, so it works on all words of a
 * tile at once:
 *
 *   | conversion                    | way                                                        |
 *   |-------------------------------|------------------------------------------------------------|
 *   | integers of one width         | the words as they are                                      |
 *   | integers                      | extended to 32 bits, low bits packed                       |
 *   | … that saturate, floats to    | as s32, packed by the instruction that saturates two at    |
 *   |   16 bits and fewer           | a time                                                     |
 *   | FP8, 4 and 8 bits to f16 …    | two elements at a time, see `packed-conversions.ts`                    |
 *   | what f32 holds to floats      | f32, packed by the instructions that round                 |
 *   | others                        | one by one                                                 |
 */
import { isFloat, isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { ConversionOptions } from "../../../formats/floats.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { packWord, unpackWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import { emitCast, fitsTf32 } from "./casts.ts";
import type { Emission } from "./emission.ts";
import { roundingModifiers, wordFromF32 } from "./from-f32.ts";
import { pairedCast } from "./packed-conversions.ts";
import { fitsF32, wordToF32 } from "./to-f32.ts";
import { extendWord, joinWord } from "./words.ts";

export interface CastFormats extends ConversionOptions {
  readonly from: DType;
  readonly to: DType;
}

/** The words of `count` elements in the other format. */
export function castWords(
  emission: Emission,
  formats: CastFormats,
  words: readonly Register[],
  count: number,
): readonly Register[] {
  const { from, to, overflow } = formats;
  const { code } = emission;
  if (keepsBits(formats)) return words;
  const paired = overflow === undefined ? pairedCast(emission, from, to, words, count) : undefined;
  if (paired !== undefined) return paired;
  const whole = wholeNumbers(emission, formats, words, count);
  if (whole !== undefined) return grouped(to, whole, (group) => saturatedWord(code, to, group));
  if (overflow === undefined && isInteger(from) && isInteger(to) && isShort(from) && isShort(to)) {
    const values = extendedWords(code, from, words, count);
    return grouped(to, values, (group) => joinWord(code, to, group));
  }
  if (fitsF32(from) && isFloat(to) && to.name !== "f64") {
    const values = eachWord(from, words, count, (word, used) =>
      wordToF32(emission, from, word, used),
    );
    if (to.name === "tf32" && fitsTf32(from) && overflow === undefined) return values;
    return grouped(to, values, (group) => wordFromF32(emission, to, group, formats));
  }
  const values = eachWord(from, words, count, (word, used) =>
    unpackWord(code, from, word, used).map((element) =>
      emitCast(emission, from, to, element, formats),
    ),
  );
  return grouped(to, values, (group) => packWord(code, to, group));
}

function keepsBits({ from, to, overflow }: CastFormats): boolean {
  if (from === to) return overflow !== "unit";
  return isInteger(from) && isInteger(to) && from.bits === to.bits && overflow === undefined;
}

function isShort({ bits }: DType): boolean {
  return bits <= 32;
}

function extendedWords(
  code: Code,
  from: DType,
  words: readonly Register[],
  count: number,
): Register[] {
  return eachWord(from, words, count, (word, used) =>
    from.bits === 32 ? [word] : extendWord(code, from, word, used),
  );
}

/** The elements as s32, or what bounds them there, where the target saturates to 16 bits or fewer. */
function wholeNumbers(
  emission: Emission,
  { from, to, overflow, rounding = "zero" }: CastFormats,
  words: readonly Register[],
  count: number,
): Register[] | undefined {
  const { code } = emission;
  if (!isInteger(to) || to.bits > 16) return undefined;
  if (isFloat(from) && fitsF32(from)) {
    const opcode = `cvt.${roundingModifiers[rounding]}i.s32.f32`;
    return eachWord(from, words, count, (word, used) =>
      wordToF32(emission, from, word, used).map((value) => code.make("b32", opcode, value)),
    );
  }
  if (overflow !== "saturate" || !isInteger(from) || !isShort(from)) return undefined;
  const values = extendedWords(code, from, words, count);
  if (from.name !== "u32") return values;
  return values.map((value) => code.make("b32", "min.u32", value, integer(2 ** 31 - 1)));
}

/** The word of s32 that saturate, two at a time from the last on: `cvt.pack d, a, b, c` puts a and b below c. */
function saturatedWord(code: Code, { bits, kind }: DType, values: readonly Register[]): Register {
  const [first] = values;
  if (first === undefined) throw new Error("a word of no elements");
  const opcode = `cvt.pack.sat.${kind === "signed" ? "s" : "u"}${bits}.s32`;
  if (bits === 16) return code.make("b32", opcode, values[1] ?? first, first);
  let word: Register | undefined;
  for (let start = 2 * Math.floor((values.length - 1) / 2); start >= 0; start -= 2) {
    const low = values[start] ?? first;
    const high = values[start + 1] ?? low;
    word = code.make("b32", `${opcode}.b32`, high, low, word ?? integer(0));
  }
  return word ?? first;
}

function eachWord(
  dtype: DType,
  words: readonly Register[],
  count: number,
  read: (word: Register, used: number) => Register[],
): Register[] {
  const slots = slotsOf(dtype);
  return words.flatMap((word, index) => read(word, Math.min(slots, count - index * slots)));
}

function grouped(
  dtype: DType,
  values: readonly Register[],
  join: (group: readonly Register[]) => Register,
): Register[] {
  const slots = slotsOf(dtype);
  const words: Register[] = [];
  for (let start = 0; start < values.length; start += slots)
    words.push(join(values.slice(start, start + slots)));
  return words;
}
