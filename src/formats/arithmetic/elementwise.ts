/**
 * Elementwise arithmetic on elements, in the format's own precision: each function here picks, once a
 * call, the loop for its function and format, and runs it over the elements piece by piece.
 *
 *   binaryElements("add", bf16, left, right, target)
 *     load   left, right → float registers      registers.ts
 *     loop   floatBinaryLoops.add               float-loops.ts
 *     store  round to bf16 → target             registers.ts
 *
 * `target` may be one of the operands. All elements of a call have the same length. That a function is
 * defined for a format is the caller's to check, with the tests in `functions.ts`.
 */
import type { DType, Elements } from "../dtype.ts";
import {
  classifyLoops,
  floatBinaryLoops,
  floatCompareLoops,
  floatUnaryLoops,
} from "./float-loops.ts";
import type { FloatBinaryFunction, FloatUnaryFunction, LoopPredicate } from "./float-loops.ts";
import {
  acceptsBinary,
  acceptsClassify,
  acceptsCompare,
  acceptsUnary,
  isRounded,
} from "./functions.ts";
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
  RoundingManner,
  UnaryFunction,
} from "./functions.ts";
import {
  integerBinaryLoops,
  integerCompareLoops,
  integerUnaryLoops,
  invertBools,
  unsignedBinaryLoops,
  unsignedCompareLoops,
  unsignedUnaryLoops,
} from "./integer-loops.ts";
import type { IntegerBinaryFunction, IntegerLoop, IntegerUnaryFunction } from "./integer-loops.ts";
import {
  flagRegister,
  forEachPiece,
  integerRegisters,
  laneBits,
  loadFlags,
  loadFloats,
  loadIntegers,
  loadWides,
  registerKind,
  registerElements,
  storeFlags,
  storeFloats,
  storeIntegers,
  storeWides,
  storeWords,
  wideRegisters,
} from "./registers.ts";
import type { RegisterKind } from "./registers.ts";
import { isMannered, roundedElements } from "./rounded.ts";
import { wideBinaryLoops, wideCompareLoops, wideUnaryLoops } from "./wide-loops.ts";

const integers = integerRegisters;
const wides = wideRegisters;
const flags = flagRegister;
const second = registerElements;
const secondWide = 2 * registerElements;

function requireDefined(accepted: boolean, name: string, dtype: DType): void {
  if (!accepted) throw new Error(`${name} is not defined for ${dtype.name}`);
}

function requireLength(expected: Elements, ...others: readonly Elements[]): void {
  for (const elements of others) {
    if (elements.length !== expected.length) {
      throw new Error(`elements of ${elements.length} and ${expected.length} elements`);
    }
  }
}

/* ---- one operand ---- */

type UnaryRunner = (fn: UnaryFunction, dtype: DType, source: Elements, target: Elements) => void;

const unaryRunners: { readonly [K in RegisterKind]: UnaryRunner } = {
  float(fn, dtype, source, target) {
    if (fn === "neg" || fn === "abs") {
      changeSigns(fn, dtype, source, target);
      return;
    }
    const loop = floatUnaryLoops[fn as FloatUnaryFunction];
    forEachPiece(target.length, (start, count) => {
      loadFloats(dtype, source, start, count, 0);
      loop(count);
      storeFloats(dtype, target, start, count);
    });
  },
  integer(fn, dtype, source, target) {
    const loop = integerUnaryLoop(fn as IntegerUnaryFunction, dtype);
    forEachPiece(target.length, (start, count) => {
      loadIntegers(source, start, count, 0);
      loop(count, dtype.bits);
      storeIntegers(dtype, target, start, count);
    });
  },
  wide(fn, dtype, source, target) {
    const loop = wideUnaryLoops[fn as IntegerUnaryFunction];
    const sourceWords = laneBits(source);
    const targetWords = laneBits(target);
    forEachPiece(target.length, (start, count) => {
      loadWides(sourceWords, start, count, 0);
      loop(count, dtype.kind === "signed");
      storeWides(targetWords, start, count);
    });
  },
};

function integerUnaryLoop(fn: IntegerUnaryFunction, dtype: DType): IntegerLoop {
  if (dtype.kind === "bool") return invertBools;
  return (dtype.name === "u32" ? unsignedUnaryLoops : integerUnaryLoops)[fn];
}

/** Negation and magnitude of floats change the sign bit and nothing else, also of a NaN. */
function changeSigns(fn: "neg" | "abs", dtype: DType, source: Elements, target: Elements): void {
  const sourceBits = laneBits(source);
  const targetBits = laneBits(target);
  const wordsPerElement = dtype.bits === 64 ? 2 : 1;
  const sign = dtype.bits === 16 ? 0x8000 : 0x80000000;
  const flip = fn === "neg" ? sign : 0;
  const keep = fn === "neg" ? -1 : ~sign;
  forEachPiece(targetBits.length, (start, count) => {
    loadIntegers(sourceBits, start, count, 0);
    changeWords(count, wordsPerElement, keep, flip);
    storeWords(targetBits, start, count);
  });
}

/** The sign of an f64 is in its second word. */
function changeWords(count: number, wordsPerElement: number, keep: number, flip: number): void {
  for (let i = wordsPerElement - 1; i < count; i += wordsPerElement) {
    integers[i] = ((integers[i] as number) & keep) ^ flip;
  }
}

/** `fn` of every element. */
export function unaryElements(
  fn: UnaryFunction,
  dtype: DType,
  source: Elements,
  target: Elements,
  manner: RoundingManner = {},
): void {
  requireDefined(acceptsUnary(fn, dtype), fn, dtype);
  requireLength(target, source);
  if (isMannered(manner) && isRounded(fn)) {
    roundedElements(fn, dtype, [source], target, manner);
    return;
  }
  unaryRunners[registerKind(dtype)](fn, dtype, source, target);
}

/** Whether each element is of a class of floats. */
export function classifyElements(
  fn: ClassifyFunction,
  dtype: DType,
  source: Elements,
  target: Uint8Array,
): void {
  requireDefined(acceptsClassify(fn, dtype), fn, dtype);
  requireLength(target, source);
  const loop = classifyLoops[fn];
  forEachPiece(target.length, (start, count) => {
    loadFloats(dtype, source, start, count, 0);
    loop(count);
    storeFlags(target, start, count);
  });
}

/* ---- two operands ---- */

type BinaryRunner = (
  fn: BinaryFunction,
  dtype: DType,
  left: Elements,
  right: Elements,
  target: Elements,
) => void;

const binaryRunners: { readonly [K in RegisterKind]: BinaryRunner } = {
  float(fn, dtype, left, right, target) {
    const loop = floatBinaryLoops[fn as FloatBinaryFunction];
    forEachPiece(target.length, (start, count) => {
      loadFloats(dtype, left, start, count, 0);
      loadFloats(dtype, right, start, count, 1);
      loop(count);
      storeFloats(dtype, target, start, count);
    });
  },
  integer(fn, dtype, left, right, target) {
    const loops = dtype.name === "u32" ? unsignedBinaryLoops : integerBinaryLoops;
    const loop = loops[fn as IntegerBinaryFunction];
    forEachPiece(target.length, (start, count) => {
      loadIntegers(left, start, count, 0);
      loadIntegers(right, start, count, 1);
      loop(count, dtype.bits);
      storeIntegers(dtype, target, start, count);
    });
  },
  wide(fn, dtype, left, right, target) {
    const loop = wideBinaryLoops[fn as IntegerBinaryFunction];
    const leftWords = laneBits(left);
    const rightWords = laneBits(right);
    const targetWords = laneBits(target);
    forEachPiece(target.length, (start, count) => {
      loadWides(leftWords, start, count, 0);
      loadWides(rightWords, start, count, 1);
      loop(count, dtype.kind === "signed");
      storeWides(targetWords, start, count);
    });
  },
};

/** `fn` of every pair of elements. */
export function binaryElements(
  fn: BinaryFunction,
  dtype: DType,
  left: Elements,
  right: Elements,
  target: Elements,
  manner: RoundingManner = {},
): void {
  requireDefined(acceptsBinary(fn, dtype), fn, dtype);
  requireLength(target, left, right);
  if (isMannered(manner) && isRounded(fn)) {
    roundedElements(fn, dtype, [left, right], target, manner);
    return;
  }
  binaryRunners[registerKind(dtype)](fn, dtype, left, right, target);
}

/* ---- comparison ---- */

/** Each predicate as one that has loops, and whether its operands change places. */
const predicateLoops: {
  readonly [P in ComparePredicate]: readonly [predicate: LoopPredicate, exchanged: boolean];
} = {
  eq: ["eq", false],
  ne: ["ne", false],
  lt: ["lt", false],
  le: ["le", false],
  gt: ["lt", true],
  ge: ["le", true],
};

type CompareRunner = (
  predicate: LoopPredicate,
  dtype: DType,
  left: Elements,
  right: Elements,
  target: Uint8Array,
) => void;

const compareRunners: { readonly [K in RegisterKind]: CompareRunner } = {
  float(predicate, dtype, left, right, target) {
    const loop = floatCompareLoops[predicate];
    forEachPiece(target.length, (start, count) => {
      loadFloats(dtype, left, start, count, 0);
      loadFloats(dtype, right, start, count, 1);
      loop(count);
      storeFlags(target, start, count);
    });
  },
  integer(predicate, dtype, left, right, target) {
    const loops = dtype.name === "u32" ? unsignedCompareLoops : integerCompareLoops;
    const loop = loops[predicate];
    forEachPiece(target.length, (start, count) => {
      loadIntegers(left, start, count, 0);
      loadIntegers(right, start, count, 1);
      loop(count, dtype.bits);
      storeFlags(target, start, count);
    });
  },
  wide(predicate, dtype, left, right, target) {
    const loop = wideCompareLoops[predicate];
    const leftWords = laneBits(left);
    const rightWords = laneBits(right);
    forEachPiece(target.length, (start, count) => {
      loadWides(leftWords, start, count, 0);
      loadWides(rightWords, start, count, 1);
      loop(count, dtype.kind === "signed");
      storeFlags(target, start, count);
    });
  },
};

/** Whether `predicate` holds for every pair of elements. */
export function compareElements(
  predicate: ComparePredicate,
  dtype: DType,
  left: Elements,
  right: Elements,
  target: Uint8Array,
): void {
  requireDefined(acceptsCompare(predicate, dtype), predicate, dtype);
  requireLength(target, left, right);
  const [loop, exchanged] = predicateLoops[predicate];
  const run = compareRunners[registerKind(dtype)];
  if (exchanged) run(loop, dtype, right, left, target);
  else run(loop, dtype, left, right, target);
}

/* ---- selection ---- */

function selectWords(count: number): void {
  for (let i = 0; i < count; i++) {
    const other = integers[second + i] as number;
    integers[i] = other ^ ((other ^ (integers[i] as number)) & -Number(flags[i] !== 0));
  }
}

function selectWides(count: number): void {
  for (let i = 0; i < count; i++) {
    const taken = -Number(flags[i] !== 0);
    const low = wides[secondWide + 2 * i] as number;
    const high = wides[secondWide + 2 * i + 1] as number;
    wides[2 * i] = low ^ ((low ^ (wides[2 * i] as number)) & taken);
    wides[2 * i + 1] = high ^ ((high ^ (wides[2 * i + 1] as number)) & taken);
  }
}

/** Each element from `ifTrue` or from `ifFalse`, of any format, bit for bit. */
export function selectElements(
  condition: Uint8Array,
  ifTrue: Elements,
  ifFalse: Elements,
  target: Elements,
): void {
  requireLength(target, condition, ifTrue, ifFalse);
  const trueBits = laneBits(ifTrue);
  const falseBits = laneBits(ifFalse);
  const targetBits = laneBits(target);
  forEachPiece(target.length, (start, count) => {
    loadFlags(condition, start, count);
    if (target.BYTES_PER_ELEMENT === 8) {
      loadWides(trueBits, start, count, 0);
      loadWides(falseBits, start, count, 1);
      selectWides(count);
      storeWides(targetBits, start, count);
    } else {
      loadIntegers(trueBits, start, count, 0);
      loadIntegers(falseBits, start, count, 1);
      selectWords(count);
      storeWords(targetBits, start, count);
    }
  });
}
