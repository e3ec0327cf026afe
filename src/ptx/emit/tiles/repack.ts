/**
 * Words made of parts of other words. Whole bytes move with `prmt`, two words at a time; elements of 4
 * bits that do not move in pairs are shifted and masked.
 *
 *   {a.1, a.0} in 16 bits          prmt d, a, a, 0x1032
 *   {a.0, b.0}                     prmt d, a, b, 0x5410
 *   {a.0, b.0, c.0, d.0} in 8      three: each takes in one more word
 */
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";

/** A part of a word, counted in elements from the low bits. */
export interface WordPart {
  readonly word: Register;
  readonly part: number;
}

/**
 * A word with the given elements of `bits` bits side by side, undefined for those that nobody will look
 * at; undefined where all are.
 */
export function gatherWord(
  code: Code,
  bits: number,
  parts: readonly (WordPart | undefined)[],
): Register | undefined {
  const [first] = parts.filter((each) => each !== undefined);
  if (first === undefined) return undefined;
  const inPlace = parts.every(
    (each, slot) => each === undefined || (each.word === first.word && each.part === slot),
  );
  if (inPlace) return first.word;
  if (bits >= 8) return gatherBytes(code, bytesOf(parts, bits / 8));
  const pairs = pairedBytes(parts);
  return pairs === undefined ? gatherNibbles(code, parts) : gatherBytes(code, pairs);
}

/** The bytes of elements of `width` bytes each. */
function bytesOf(
  parts: readonly (WordPart | undefined)[],
  width: number,
): readonly (WordPart | undefined)[] {
  return parts.flatMap((each) =>
    Array.from({ length: width }, (_, byte) =>
      each === undefined ? undefined : { word: each.word, part: each.part * width + byte },
    ),
  );
}

/** Elements of 4 bits as bytes, where those of each byte come from one byte. */
function pairedBytes(
  parts: readonly (WordPart | undefined)[],
): readonly (WordPart | undefined)[] | undefined {
  const bytes: (WordPart | undefined)[] = [];
  for (let slot = 0; slot < parts.length; slot += 2) {
    const [low, high] = [parts[slot], parts[slot + 1]];
    const known = low ?? high;
    const aligned =
      (low === undefined || low.part % 2 === 0) &&
      (high === undefined || high.part % 2 === 1) &&
      (low === undefined ||
        high === undefined ||
        (low.word === high.word && low.part + 1 === high.part));
    if (!aligned) return undefined;
    bytes.push(known && { word: known.word, part: known.part >> 1 });
  }
  return bytes;
}

function gatherBytes(code: Code, bytes: readonly (WordPart | undefined)[]): Register {
  const words = [...new Set(bytes.flatMap((each) => each?.word ?? []))];
  const [first, ...others] = words;
  if (first === undefined) throw new Error("a word of nothing");
  const selector = (choose: (each: WordPart, byte: number) => number): number =>
    bytes.reduce(
      (sum, each, byte) => sum + (each === undefined ? byte : choose(each, byte)) * 16 ** byte,
      0,
    );
  const permute = (left: Register, right: Register, choice: number): Register =>
    code.make("b32", "prmt.b32", left, right, integer(choice));
  if (others.length === 0)
    return permute(
      first,
      first,
      selector(({ part }) => part),
    );
  let gathered = first;
  const taken = new Set([first]);
  for (const [index, other] of others.entries()) {
    const choice = selector(({ word, part }, byte) => {
      if (word === other) return 4 + part;
      // The first time the left word is as it was; from then on what was taken is in its place.
      return index === 0 && taken.has(word) ? part : byte;
    });
    gathered = permute(gathered, other, choice);
    taken.add(other);
  }
  return gathered;
}

/** Elements of 4 bits: those that move equally far in one word are masked and shifted together. */
function gatherNibbles(code: Code, parts: readonly (WordPart | undefined)[]): Register {
  const moves = new Map<string, { word: Register; distance: number; mask: number }>();
  parts.forEach((each, slot) => {
    if (each === undefined) return;
    const distance = slot - each.part;
    const key = `${each.word.name} ${distance}`;
    const move = moves.get(key) ?? { word: each.word, distance, mask: 0 };
    move.mask += 15 * 16 ** slot;
    moves.set(key, move);
  });
  let gathered: Register | undefined;
  for (const { word, distance, mask } of moves.values()) {
    const moved =
      distance === 0
        ? word
        : code.make(
            "b32",
            distance > 0 ? "shl.b32" : "shr.u32",
            word,
            integer(4 * Math.abs(distance)),
          );
    const masked = code.make("b32", "and.b32", moved, integer(mask));
    gathered = gathered === undefined ? masked : code.make("b32", "or.b32", gathered, masked);
  }
  if (gathered === undefined) throw new Error("a word of nothing");
  return gathered;
}

/** Predicates as bytes of 0 or 1, four a word. */
export function predicatesToWords(code: Code, predicates: readonly Register[]): Register[] {
  const words: Register[] = [];
  for (let start = 0; start < predicates.length; start += 4) {
    const bytes = predicates
      .slice(start, start + 4)
      .map((predicate, byte) =>
        code.make("b32", "selp.b32", integer(256 ** byte), integer(0), predicate),
      );
    words.push(bytes.reduce((left, right) => code.make("b32", "or.b32", left, right)));
  }
  return words;
}

/** The first `count` bytes as predicates. */
export function wordsToPredicates(
  code: Code,
  words: readonly Register[],
  count: number,
): Register[] {
  return Array.from({ length: count }, (_, index) => {
    const word = words[index >> 2];
    if (word === undefined) throw new Error("a byte outside the words");
    const byte = code.make("b32", "and.b32", word, integer(255 * 256 ** (index & 3)));
    return code.make("pred", "setp.ne.u32", byte, integer(0));
  });
}
