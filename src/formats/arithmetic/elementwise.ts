/**
 * Elementwise arithmetic on lanes, in the format's own precision: each function here picks, once a
 * call, the loop for its function and format, and runs it over the lanes piece by piece.
 *
 *   binaryLanes("add", bf16, left, right, target)
 *     load   left, right → float registers      registers.ts
 *     loop   floatBinaryLoops.add               float-loops.ts
 *     store  round to bf16 → target             registers.ts
 *
 * `target` may be one of the operands. All lanes of a call have the same length. That a function is
 * defined for a format is the caller's to check, with the tests in `functions.ts`.
 */
import type { DType, Lanes } from "../dtype.ts";
import {
  classifyLoops,
  floatBinaryLoops,
  floatCompareLoops,
  floatUnaryLoops,
} from "./float-loops.ts";
import type { FloatBinaryFunction, FloatUnaryFunction, LoopPredicate } from "./float-loops.ts";
import { acceptsBinary, acceptsClassify, acceptsCompare, acceptsUnary } from "./functions.ts";
import type {
  BinaryFunction,
  ClassifyFunction,
  ComparePredicate,
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
  registerLanes,
  storeFlags,
  storeFloats,
  storeIntegers,
  storeWides,
  storeWords,
  wideRegisters,
} from "./registers.ts";
import type { RegisterKind } from "./registers.ts";
import { wideBinaryLoops, wideCompareLoops, wideUnaryLoops } from "./wide-loops.ts";

const integers = integerRegisters;
const wides = wideRegisters;
const flags = flagRegister;
const second = registerLanes;
const secondWide = 2 * registerLanes;

function requireDefined(accepted: boolean, name: string, dtype: DType): void {
  if (!accepted) throw new Error(`${name} is not defined for ${dtype.name}`);
}

function requireLength(expected: Lanes, ...others: readonly Lanes[]): void {
  for (const lanes of others) {
    if (lanes.length !== expected.length) {
      throw new Error(`lanes of ${lanes.length} and ${expected.length} elements`);
    }
  }
}

/* ---- one operand ---- */

type UnaryRunner = (fn: UnaryFunction, dtype: DType, source: Lanes, target: Lanes) => void;

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
function changeSigns(fn: "neg" | "abs", dtype: DType, source: Lanes, target: Lanes): void {
  const sourceBits = laneBits(source);
  const targetBits = laneBits(target);
  const wordsPerLane = dtype.bits === 64 ? 2 : 1;
  const sign = dtype.bits === 16 ? 0x8000 : 0x80000000;
  const flip = fn === "neg" ? sign : 0;
  const keep = fn === "neg" ? -1 : ~sign;
  forEachPiece(targetBits.length, (start, count) => {
    loadIntegers(sourceBits, start, count, 0);
    changeWords(count, wordsPerLane, keep, flip);
    storeWords(targetBits, start, count);
  });
}

/** The sign of an f64 is in its second word. */
function changeWords(count: number, wordsPerLane: number, keep: number, flip: number): void {
  for (let i = wordsPerLane - 1; i < count; i += wordsPerLane) {
    integers[i] = ((integers[i] as number) & keep) ^ flip;
  }
}

/** `fn` of every lane. */
export function unaryLanes(fn: UnaryFunction, dtype: DType, source: Lanes, target: Lanes): void {
  requireDefined(acceptsUnary(fn, dtype), fn, dtype);
  requireLength(target, source);
  unaryRunners[registerKind(dtype)](fn, dtype, source, target);
}

/** Whether each lane is of a class of floats. */
export function classifyLanes(
  fn: ClassifyFunction,
  dtype: DType,
  source: Lanes,
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
  left: Lanes,
  right: Lanes,
  target: Lanes,
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

/** `fn` of every pair of lanes. */
export function binaryLanes(
  fn: BinaryFunction,
  dtype: DType,
  left: Lanes,
  right: Lanes,
  target: Lanes,
): void {
  requireDefined(acceptsBinary(fn, dtype), fn, dtype);
  requireLength(target, left, right);
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
  left: Lanes,
  right: Lanes,
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

/** Whether `predicate` holds for every pair of lanes. */
export function compareLanes(
  predicate: ComparePredicate,
  dtype: DType,
  left: Lanes,
  right: Lanes,
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

/** Each lane from `ifTrue` or from `ifFalse`, of any format, bit for bit. */
export function selectLanes(
  condition: Uint8Array,
  ifTrue: Lanes,
  ifFalse: Lanes,
  target: Lanes,
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
