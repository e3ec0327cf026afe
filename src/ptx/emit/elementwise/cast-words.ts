/**
 * Conversion of the words of tiles. Elements are packed otherwise behind it, so it works on all words of a
 * tile at once:
 *
 *   | conversion                    | way                                                        |
 *   |-------------------------------|------------------------------------------------------------|
 *   | integers of one width         | the words as they are                                      |
 *   | integers                      | extended to 32 bits, low bits packed                       |
 *   | FP8, 4 and 8 bits to f16 …    | two elements at a time, see `paired.ts`                    |
 *   | what f32 holds to floats      | f32, packed by the instructions that round                 |
 *   | others                        | one by one                                                 |
 */
import { isFloat, isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Overflow } from "../../../formats/floats.ts";
import type { Register } from "../../module.ts";
import { packWord, unpackWord } from "../elements.ts";
import { slotsOf } from "../values.ts";
import { emitCast, fitsTf32 } from "./casts.ts";
import type { Emission } from "./emission.ts";
import { wordFromF32 } from "./from-f32.ts";
import { pairedCast } from "./paired.ts";
import { fitsF32, wordToF32 } from "./to-f32.ts";
import { extendWord, joinWord } from "./words.ts";

export interface CastFormats {
  readonly from: DType;
  readonly to: DType;
  readonly overflow: Overflow;
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
  if (sameBits(from, to)) return words;
  const paired = pairedCast(emission, from, to, words, count);
  if (paired !== undefined) return paired;
  if (isInteger(from) && isInteger(to) && from.bits <= 32 && to.bits <= 32) {
    const values = eachWord(from, words, count, (word, used) =>
      from.bits === 32 ? [word] : extendWord(code, from, word, used),
    );
    return grouped(to, values, (group) => joinWord(code, to, group));
  }
  if (fitsF32(from) && isFloat(to) && to.name !== "f64") {
    const values = eachWord(from, words, count, (word, used) =>
      wordToF32(emission, from, word, used),
    );
    if (to.name === "tf32" && fitsTf32(from)) return values;
    return grouped(to, values, (group) => wordFromF32(emission, to, group, overflow));
  }
  const values = eachWord(from, words, count, (word, used) =>
    unpackWord(code, from, word, used).map((element) =>
      emitCast(emission, from, to, element, overflow),
    ),
  );
  return grouped(to, values, (group) => packWord(code, to, group));
}

function sameBits(from: DType, to: DType): boolean {
  return from === to || (isInteger(from) && isInteger(to) && from.bits === to.bits);
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
