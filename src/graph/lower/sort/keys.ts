/**
 * Keys as whole numbers without a sign, for whole arrays: the expressions of a comparator (`order.ts`) over the operands of its sort, and
 * then bits in the order of the numbers.
 *
 *   signed       the sign flipped                 80000000 … ffffffff, 00000000 … 7fffffff  ─▶  00000000 … ffffffff
 *   float        the sign flipped, or all bits where it is set: the total order
 *   descending   all bits flipped
 *
 * Keys that together have up to 64 bits are one number, the first key in its highest bits.
 */
import type { GraphBuilder } from "../../infer/builder.ts";
import type { FloatOrder } from "../../ops/elementwise.ts";
import { elements } from "../../ops/elements.ts";
import type { ElementType } from "../../ops/elements.ts";
import { literal } from "../../ops/literal.ts";
import { graphValue } from "../../ops/node.ts";
import type { AnyGraphOp, GraphValue } from "../../ops/node.ts";
import { rebuildOp } from "../../ops/rebuild.ts";
import { operandsOf } from "../../ops/traverse.ts";
import { tensorType } from "../../ops/types.ts";
import {
  broadcastInDim,
  compare,
  convert,
  like,
  select,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import type { SortOrder } from "./order.ts";

type Word = "ui8" | "ui16" | "ui32" | "ui64";
const words: readonly Word[] = ["ui8", "ui16", "ui32", "ui64"];

function bitsOf(word: Word): number {
  return elements[word].bits;
}

/** The narrowest word of at least so many bits. */
function wordOf(bits: number): Word {
  const found = words.find((word) => bitsOf(word) >= bits);
  if (found === undefined) throw new Error(`no word has ${bits} bits`);
  return found;
}

/** A value of a comparator over whole operands. */
class Expressions {
  readonly #builder: GraphBuilder;
  readonly #shape: readonly number[];
  readonly #definitions: ReadonlyMap<GraphValue, AnyGraphOp>;
  readonly #made: Map<GraphValue, GraphValue>;

  constructor(builder: GraphBuilder, { comparator }: SortOrder, inputs: readonly GraphValue[]) {
    this.#builder = builder;
    this.#shape = inputs[0] === undefined ? [] : typeOfValue(inputs[0]).shape;
    this.#definitions = new Map(
      comparator.ops.flatMap((op) => op.results.map((value) => [value, op])),
    );
    this.#made = new Map(
      inputs.map((input, i) => [comparator.parameters[2 * i] as GraphValue, input]),
    );
  }

  of(value: GraphValue): GraphValue {
    const known = this.#made.get(value);
    if (known !== undefined) return known;
    const made = this.#make(value, this.#definitions.get(value));
    this.#made.set(value, made);
    return made;
  }

  #make(value: GraphValue, op: AnyGraphOp | undefined): GraphValue {
    // A number of the program around the comparator.
    if (op === undefined) return broadcastInDim(this.#builder, value, this.#shape, []);
    const type = tensorType(typeOfValue(value).element, this.#shape);
    if (op.kind === "stablehlo.constant" && "data" in op.attributes.value) {
      const constant = { value: literal(type, op.attributes.value.data) };
      return this.#builder.one("stablehlo.constant", {}, constant);
    }
    const operands = new Map(operandsOf(op).map((operand) => [operand, this.of(operand)]));
    const result = graphValue(type);
    const operand = (each: GraphValue): GraphValue => operands.get(each) ?? each;
    this.#builder.append(rebuildOp(op, { operand, results: [result] }));
    return result;
  }
}

/** The bits of numbers as words, in the order of the numbers. */
export function wordsOf(builder: GraphBuilder, value: GraphValue, order: FloatOrder): GraphValue {
  const { element } = typeOfValue(value);
  const { kind, bits } = elements[element];
  const word = wordOf(bits);
  if (kind === "bool" || kind === "unsigned") return convert(builder, value, word);
  if (kind === "signed") {
    const code = recoded(builder, convert(builder, value, signedOf(word)), word);
    return exclusive(builder, code, topBit(builder, code));
  }
  const number = order === "total" ? value : withoutSigns(builder, value, order === "weak");
  const code = recoded(builder, number, word);
  const flipped = signsOf(builder, code);
  return exclusive(
    builder,
    code,
    builder.one("stablehlo.or", { lhs: flipped, rhs: topBit(builder, code) }, {}),
  );
}

/** The numbers of an element that words were made from, in the total order. */
export function numbersOfWords(
  builder: GraphBuilder,
  word: GraphValue,
  element: ElementType,
): GraphValue {
  const { kind } = elements[element];
  if (kind === "bool" || kind === "unsigned") return convert(builder, word, element);
  const own = typeOfValue(word).element as Word;
  const top = topBit(builder, word);
  if (kind === "signed") {
    const number = recoded(builder, exclusive(builder, word, top), signedOf(own));
    return convert(builder, number, element);
  }
  const isBelow = builder.one("stablehlo.not", { operand: signsOf(builder, word) }, {});
  const flipped = builder.one("stablehlo.or", { lhs: isBelow, rhs: top }, {});
  return recoded(builder, exclusive(builder, word, flipped), element);
}

function signedOf(word: Word): ElementType {
  return word.slice(1) as ElementType;
}

function exclusive(builder: GraphBuilder, lhs: GraphValue, rhs: GraphValue): GraphValue {
  return builder.one("stablehlo.xor", { lhs, rhs }, {});
}

function topBit(builder: GraphBuilder, beside: GraphValue): GraphValue {
  const word = typeOfValue(beside).element as Word;
  return wordOfBits(builder, beside, 1n << BigInt(bitsOf(word) - 1));
}

/** All ones where a word's highest bit is set, else zeros. */
function signsOf(builder: GraphBuilder, word: GraphValue): GraphValue {
  const own = typeOfValue(word).element as Word;
  const lhs = recoded(builder, word, signedOf(own));
  const rhs = like(builder, lhs, bitsOf(own) - 1);
  const signs = builder.one("stablehlo.shift_right_arithmetic", { lhs, rhs }, {});
  return recoded(builder, signs, own);
}

/** Zeros made equal, and NaNs where the order is weak; comparisons that NaN has no place in put it anywhere. */
function withoutSigns(builder: GraphBuilder, value: GraphValue, isWeak: boolean): GraphValue {
  const zero = like(builder, value, 0);
  const zeros = select(builder, compare(builder, "EQ", value, zero), zero, value);
  if (!isWeak) return zeros;
  return select(builder, compare(builder, "NE", value, value), like(builder, value, NaN), zeros);
}

function recoded(builder: GraphBuilder, operand: GraphValue, element: ElementType): GraphValue {
  const { shape, element: own } = typeOfValue(operand);
  if (own === element) return operand;
  const types = [tensorType(element, shape)];
  return builder.one("stablehlo.bitcast_convert", { operand }, {}, { types });
}

/** A word that all elements are, beside others. */
function wordOfBits(builder: GraphBuilder, beside: GraphValue, bits: bigint): GraphValue {
  const type = typeOfValue(beside);
  const data = {
    ui8: () => Uint8Array.of(Number(bits)),
    ui16: () => Uint16Array.of(Number(bits)),
    ui32: () => Uint32Array.of(Number(bits)),
    ui64: () => BigUint64Array.of(bits),
  }[type.element as Word]();
  return builder.one("stablehlo.constant", {}, { value: literal(type, data) });
}

function shifted(builder: GraphBuilder, value: GraphValue, bits: number): GraphValue {
  const rhs = wordOfBits(builder, value, BigInt(bits));
  return builder.one("stablehlo.shift_left", { lhs: value, rhs }, {});
}

/** A key after one of more weight, as one word. */
function packed(builder: GraphBuilder, first: GraphValue, second: GraphValue): GraphValue {
  const low = bitsOf(typeOfValue(second).element as Word);
  const word = wordOf(bitsOf(typeOfValue(first).element as Word) + low);
  const high = shifted(builder, convert(builder, first, word), low);
  return builder.one("stablehlo.or", { lhs: high, rhs: convert(builder, second, word) }, {});
}

/** The words that operands are sorted by, the one of most weight first, each of up to 64 bits. */
export function sortWords(
  builder: GraphBuilder,
  order: SortOrder,
  inputs: readonly GraphValue[],
): readonly GraphValue[] {
  const expressions = new Expressions(builder, order, inputs);
  let found: readonly GraphValue[] = [];
  for (const key of order.keys.toReversed()) {
    const value = expressions.of(key.value);
    const own = wordsOf(builder, value, key.order);
    const word = key.isDescending ? builder.one("stablehlo.not", { operand: own }, {}) : own;
    if (key.endsAtNan) {
      const isNan = compare(builder, "NE", value, value);
      found = found.map((later) => select(builder, isNan, like(builder, later, 0), later));
    }
    const [next, ...rest] = found;
    const bits = (each: GraphValue): number => bitsOf(typeOfValue(each).element as Word);
    found =
      next !== undefined && bits(word) + bits(next) <= 64
        ? [packed(builder, word, next), ...rest]
        : [word, ...found];
  }
  return found;
}
