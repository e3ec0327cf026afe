/**
 * Random bits, one element a lane: a hash of the element's number under the state's key; of many by Philox the library's, four a hash. See the evaluator
 * (`src/graph/evaluate/random.ts`) for which element takes which word of which hash.
 */
import { u64 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Operation } from "../../../device/operation.ts";
import { rngBitGenerator } from "../../../kernels/random/rng-bit-generator.ts";
import { joinedWords, philoxHashes, threefry2x32, wordsOf } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import { elements } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, typeText } from "../../ops/types.ts";
import type { PointContext } from "../context.ts";
import type { LibraryCall } from "../library.ts";
import type { KernelStep, Lowering } from "../lowering.ts";
import { divideIndex, remainderIndex, tileOfIndex } from "../points/indices.ts";
import type { Index } from "../points/indices.ts";
import { Points, stridesOf, sumOfProducts } from "../points/points.ts";
import { dtypeOf, tensorTypeOf } from "../storage.ts";
import { constantTile, select, unsignedOf } from "../tiles/bits.ts";

export type Words = readonly [Tile, Tile];

/** Twenty rounds of Threefry-2x32 on tiles of u32. */
export function threefryTiles(key: Words, counter: Words): Words {
  return threefry2x32(key as WordPair, counter as WordPair);
}

type WordPair = Parameters<typeof threefry2x32>[0];

/** The shape of hashes, each a pair along one axis: the first even one, or else the longest. */
function halfShape(shape: readonly number[]): {
  readonly half: readonly number[];
  readonly axis: number;
} {
  const even = shape.findIndex((extent) => extent % 2 === 0);
  const axis = even >= 0 ? even : shape.indexOf(Math.max(...shape));
  return {
    axis,
    half: shape.map((extent, each) => (each === axis ? Math.ceil(extent / 2) : extent)),
  };
}

type Generator = GraphOp<"stablehlo.rng_bit_generator">;

function stateWord(
  state: GraphValue,
  at: number,
  points: Points,
  context: PointContext,
): Tile<"u64"> {
  const word = context.element(state, Points.at(tensorTypeOf(state).shape, points.tile, [at]));
  return word as Tile<"u64">;
}

function wide(index: Index): Tile<"u64"> {
  return tileOfIndex(index).cast(u64);
}

/** The one of several tiles that an index names. */
function pick(tiles: readonly Tile[], index: Index): Tile {
  const place = tileOfIndex(index);
  return tiles.reduce((found, tile, i) => (i === 0 ? found : select(place.eq(i), tile, found)));
}

function threefryAt(
  state: GraphValue,
  isWide: boolean,
  points: Points,
  context: PointContext,
): Tile {
  const key = wordsOf(stateWord(state, 0, points, context));
  const counter = stateWord(state, 1, points, context);
  const hash = (n: Index): Words => threefryTiles(key, wordsOf(counter.add(wide(n))));
  if (isWide) return joined(hash(points.position));
  const { half, axis } = halfShape(points.shape);
  const own = points.axes.map((index, each) => (each === axis ? divideIndex(index, 2) : index));
  const words = hash(sumOfProducts(own, stridesOf(half)));
  return pick(words, points.shape.length === 0 ? 0 : remainderIndex(points.axis(axis), 2));
}

function philoxAt(state: GraphValue, isWide: boolean, points: Points, context: PointContext): Tile {
  const key = stateWord(state, 0, points, context);
  const low = stateWord(state, 1, points, context);
  const high = tensorTypeOf(state).shape[0] === 3 ? stateWord(state, 2, points, context) : key;
  const perHash = isWide ? 2 : 4;
  const number = wide(divideIndex(points.position, perHash));
  const words = philoxHashes({ key, low, high }, number);
  const [a, b, c, d] = words;
  const values = isWide ? [joined([a, b]), joined([c, d])] : words;
  return pick(values, remainderIndex(points.position, perHash));
}

function joined([low, high]: Words): Tile {
  return joinedWords(low as Tile<"u32">, high as Tile<"u32">);
}

/** The bits of each element. */
function randomBitsAt(op: Generator, points: Points, context: PointContext): Tile {
  const [, result] = op.results;
  if (result === undefined) throw new Error("a generator has bits");
  const { bits } = elements[tensorTypeOf(result).element];
  const isWide = bits === 64;
  const { initial_state: state } = op.operands;
  const isThreefry = op.attributes.rng_algorithm === "THREE_FRY";
  const value = (isThreefry ? threefryAt : philoxAt)(state, isWide, points, context);
  const dtype = dtypeOf(result);
  const code = value.cast(unsignedOf(dtype.bits));
  return code.bitcast(dtype);
}

/** The state after: the counter moved on by as many hashes as were made. */
function randomStateAt(op: Generator, points: Points, context: PointContext): Tile {
  const { initial_state: state } = op.operands;
  const [, result] = op.results;
  if (result === undefined) throw new Error("a generator has bits");
  const { shape, element } = tensorTypeOf(result);
  const isWide = elements[element].bits === 64;
  const isThreefry = op.attributes.rng_algorithm === "THREE_FRY";
  const count = isThreefry
    ? sizeOf(isWide ? shape : halfShape(shape).half)
    : Math.ceil(sizeOf(shape) / (isWide ? 2 : 4));
  const own = context.element(state, points);
  const low: Tile = stateWord(state, 1, points, context);
  const moved = low.add(constantTile(u64, count));
  const isCarried = moved.lt(low);
  const place = tileOfIndex(points.axis(0));
  const second = select(place.eq(1), moved, own);
  const upper = select(isCarried, own.add(constantTile(u64, 1)), own);
  return select(place.eq(2), upper, second);
}

function generatorSteps(op: Generator): readonly KernelStep[] {
  const [state, bits] = op.results;
  if (state === undefined || bits === undefined) return [];
  const { rng_algorithm: algorithm } = op.attributes;
  const inputs = [op.operands.initial_state];
  const size = typeText(bits.type);
  return [
    {
      title: "bits",
      inputs,
      results: [bits],
      key: `${algorithm} bits`,
      rule: (points, context) => [randomBitsAt(op, points, context)],
    },
    {
      title: "state",
      inputs,
      results: [state],
      key: `${algorithm} state after ${size}`,
      rule: (points, context) => [randomStateAt(op, points, context)],
    },
  ];
}

/** Below so many elements a lane may as well hash for each of its own. */
const leastElements = 1 << 14;

const operations = new Map<string, Operation>();

/** One operation for all states and elements of a kind, whatever the sizes: their kernels are shared. */
function operationOf(stateWords: 2 | 3, dtype: DType): Operation {
  const key = `${stateWords} ${dtype.name}`;
  const made = operations.get(key) ?? rngBitGenerator(stateWords, dtype);
  operations.set(key, made);
  return made;
}

function libraryBits(op: Generator): LibraryCall {
  const { initial_state: state } = op.operands;
  const [, bits] = op.results;
  if (bits === undefined) throw new Error("a generator has bits");
  const words = tensorTypeOf(state).shape[0] === 3 ? 3 : 2;
  return {
    operation: operationOf(words, dtypeOf(bits)),
    inputs: [{ name: "state", value: state, shape: [words] }],
    outputs: [
      { name: "after", shape: [words] },
      { name: "bits", shape: [sizeOf(tensorTypeOf(bits).shape)] },
    ],
  };
}

/** Of many elements of 32 bits by Philox the library draws four a hash. */
function isDrawnByLibrary(op: Generator): boolean {
  const [, bits] = op.results;
  if (bits === undefined || op.attributes.rng_algorithm === "THREE_FRY") return false;
  return dtypeOf(bits).bits === 32 && sizeOf(tensorTypeOf(bits).shape) >= leastElements;
}

export const generatorLowering: Lowering<"stablehlo.rng_bit_generator"> = {
  form: "choose",
  by: (op) =>
    isDrawnByLibrary(op)
      ? { form: "library", call: libraryBits }
      : { form: "steps", steps: generatorSteps },
};
