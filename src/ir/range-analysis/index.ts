/**
 * Facts about the integers of a kernel, worked out when asked for, from what defines them. Of a tile a fact
 * holds of each element. What memory holds and what comes from floats may be anything; of what loops carry, facts are
 * found by induction (`carried.ts`).
 *
 *   loop(cdiv(k, 64), (step) => …)     step: from 0, below ceildiv(k, 64)
 *   x.at(slice(step.mul(64), 64))      step · 64: from 0, a multiple of 64, below k
 */
import { noSlots } from "../make-op.ts";
import type { AnyOp, GridAxis, Kernel, Op, Value } from "../node.ts";
import { ruleOf } from "../ops.ts";
import type { OpRules } from "../ops.ts";
import { definingOps } from "../rewrite/analysis.ts";
import type { Size } from "../size.ts";
import { onlyComputes, repeats } from "../traits.ts";
import { walkOps, yieldedValues } from "../traverse.ts";
import { isData } from "../types.ts";
import { makesAlike, sameValues } from "./alike.ts";
import { assumed } from "../promises.ts";
import { binaryFact, unaryFact } from "./arithmetic.ts";
import { carriedBy, carriedInto, covers, guesses, refined } from "./carried.ts";
import type { Carried } from "./carried.ts";
import { anyOf, between, constantOf, divisorOf, either, exactly, gcd, stored } from "./fact.ts";
import { rangeOf, tightened } from "./fact.ts";
import type { Fact, Range } from "./fact.ts";
import { endsWithin, isAtMost, SizeFacts } from "./sizes.ts";

export { exactly } from "./fact.ts";
export type { Fact } from "./fact.ts";

const indexRange: Range = { least: -(2n ** 31n), greatest: 2n ** 31n - 1n };

/** Guesses about loops within loops that rest on each other; deeper ones are not made. */
const deepestGuess = 4;

/** Divisors are cut off at what no alignment asks for. */
const greatestDivisor = 2n ** 20n;

/** A fact, and a bit for each layer of guesses that it follows from. */
interface Known {
  readonly fact: Fact;
  readonly rests: number;
}

/** The highest layer of guesses among those; 0 where there is none. */
function highestBit(rests: number): number {
  return rests === 0 ? 0 : 31 - Math.clz32(rests);
}

export class Facts {
  readonly definitions: ReadonlyMap<Value, AnyOp>;
  readonly sizes: SizeFacts;
  readonly #kernel: Kernel;
  /** What gives the indices of its body a value. */
  readonly #indices = new Map<Value, Op<"loop"> | Op<"warps">>();
  readonly #carried = new Map<Value, Carried>();
  /** What is known for good, and above it what follows from guesses that are being tried. */
  readonly #known: Map<Value, Known>[];
  /** The guesses on which what is being worked out rests; what rests on none is kept for good. */
  #rests = 0;

  /** `before` are the facts of a kernel from which this one was made; they are taken over where both compute the same. */
  constructor(kernel: Kernel, before?: Facts) {
    this.#kernel = kernel;
    this.definitions = definingOps(kernel.body);
    const sameGrid = before !== undefined && before.#kernel.grid === kernel.grid;
    this.sizes = sameGrid ? before.sizes : new SizeFacts(kernel.grid);
    walkOps(kernel.body, (op) => {
      if (op.regions === noSlots) return;
      if (repeats(op))
        for (const carried of carriedBy(op))
          for (const parameter of carried.parameters) this.#carried.set(parameter, carried);
      if (op.kind !== "loop" && op.kind !== "warps") return;
      const [index] = op.regions.body.parameters;
      if (index !== undefined) this.#indices.set(index, op);
    });
    const taken = before !== undefined && this.#computesAs(before) ? before.#known[0] : undefined;
    this.#known = [new Map<Value, Known>(taken)];
  }

  /** Whether integers that both kernels have are computed in the same way, from the same values. */
  #computesAs(other: Facts): boolean {
    const { grid, threads, warps } = other.#kernel;
    const own = this.#kernel;
    if (grid !== own.grid || threads.length !== own.threads.length || warps !== own.warps)
      return false;
    let same = true;
    this.definitions.forEach((op, value) => {
      same &&= !isInteger(value) || other.#makes(value, op);
    });
    return (
      same &&
      [...this.#carried].every(
        ([parameter, carried]) => !isInteger(parameter) || other.#carries(parameter, carried),
      ) &&
      [...this.#indices].every(([parameter, op]) => other.#counts(parameter, op))
    );
  }

  /** Whether the value, if there is one here, is the result of such an op. */
  #makes(value: Value, op: AnyOp): boolean {
    const own = this.definitions.get(value);
    if (own === undefined) return !this.#isParameter(value);
    // Of what memory and tensor cores give nothing is known, whatever it is made of; through arithmetic, comparisons
    // above all, rules of other ops look.
    const isUnknown = rules[op.kind] === anything && !onlyComputes(op);
    if (own.kind === op.kind && isUnknown) return true;
    // What a loop gives is what it carries there, which is asked of by itself; tiles beside it may have become others.
    if (repeats(op) && repeats(own))
      return carriedInto(op, value) === carriedInto(own, value) && op.kind === own.kind;
    return makesAlike(op, own);
  }

  /** Whether the parameter, if there is one here, is carried in the same way. */
  #carries(parameter: Value, { initial, yielded, parameters }: Carried): boolean {
    const own = this.#carried.get(parameter);
    if (own === undefined) return !this.#indices.has(parameter) && !this.definitions.has(parameter);
    return (
      own.initial === initial && own.yielded === yielded && sameValues(own.parameters, parameters)
    );
  }

  /** Whether the parameter, if there is one here, is the index of such an op. */
  #counts(parameter: Value, op: Op<"loop"> | Op<"warps">): boolean {
    const own = this.#indices.get(parameter);
    if (own === undefined) return !this.#carried.has(parameter) && !this.definitions.has(parameter);
    return own.kind === op.kind && sameValues(boundsOf(own), boundsOf(op));
  }

  #isParameter(value: Value): boolean {
    return this.#carried.has(value) || this.#indices.has(value);
  }

  /** The fact of an integer or bool, or of the elements of a tile of them. */
  of(value: Value): Fact {
    for (let layer = this.#known.length - 1; layer >= 0; layer -= 1) {
      const known = this.#known[layer]?.get(value);
      if (known === undefined) continue;
      this.#rests |= known.rests;
      return known.fact;
    }
    const range = isData(value.type) ? rangeOf(value.type.dtype) : undefined;
    if (range === undefined) throw new Error(`%${value.id} is no integer`);
    const before = this.#rests;
    this.#rests = 0;
    const fact = this.#compute(value, range);
    const rests = this.#rests;
    this.#known[highestBit(rests)]?.set(value, { fact, rests });
    this.#rests |= before;
    return fact;
  }

  /** Of a float, or of what is no number, nothing is known. */
  ofAny(value: Value): Fact | undefined {
    return isInteger(value) ? this.of(value) : undefined;
  }

  /** The value of an integer where that is known now. */
  constant(value: Value): number | undefined {
    const constant = constantOf(this.of(value));
    return constant === undefined ? undefined : Number(constant);
  }

  /** A number that divides the integer; 0 divides by everything and has the divisor 0. */
  divisor(value: Value): number {
    return divisorNumber(this.of(value));
  }

  axis(name: string): GridAxis {
    const axis = this.#kernel.grid.find((each) => each.name === name);
    if (axis === undefined) throw new Error(`the grid has no axis ${name}`);
    return axis;
  }

  get threads(): number {
    return this.#kernel.threads.length;
  }

  /** A size that is an i32, which the launch sees to. */
  indexSize(size: Size): Fact {
    const fact = this.sizes.of(size);
    return fact.greatest > indexRange.greatest
      ? tightened({ ...fact, greatest: indexRange.greatest })
      : fact;
  }

  /** An index from 0 below an extent. */
  indexOf(extent: Size): Fact {
    const { greatest } = this.indexSize(extent);
    return between(0n, greatest - 1n, typeof extent === "number" ? [] : [extent]);
  }

  isAtMost(fact: Fact, size: Size): boolean {
    return isAtMost(fact, size, this.sizes);
  }

  endsWithin(fact: Fact, count: Size, end: Size): boolean {
    return endsWithin(fact, count, end, this.sizes);
  }

  #compute(value: Value, range: Range): Fact {
    const indexed = this.#indices.get(value);
    if (indexed?.kind === "warps") return this.indexOf(this.#kernel.warps);
    if (indexed?.kind === "loop") return this.#counter(indexed, range);
    const carried = this.#carried.get(value);
    if (carried !== undefined) return this.#byInduction(carried, range);
    const op = this.definitions.get(value);
    if (op === undefined) return anyOf(range);
    return ruleOf(rules, op)(op, { facts: this, range, position: op.results.indexOf(value) });
  }

  /** What a loop gives in this place: what it began with, or what a step handed on. */
  resultOf(op: Op<"loop"> | Op<"while">, position: number, range: Range): Fact {
    const [parameter] = carriedBy(op)[position]?.parameters ?? [];
    return parameter === undefined ? anyOf(range) : this.of(parameter);
  }

  /** The first guess that a step keeps. */
  #byInduction(carried: Carried, range: Range): Fact {
    if (this.#known.length > deepestGuess) {
      // Less deep, more is known: this is forgotten with the guess above it.
      this.#rests |= 1 << (this.#known.length - 1);
      return anyOf(range);
    }
    const start = this.of(carried.initial);
    const afterOne = (guess: Fact): Fact => this.#supposing(carried, guess);
    for (const { guess, next } of guesses(carried, start, afterOne, this.definitions))
      if (covers(guess, start) && covers(guess, next)) return guess;
    return anyOf(range);
  }

  /** What a step hands on where the guess holds of it; nothing that follows from the guess is kept. */
  #supposing({ parameters, yielded }: Carried, guess: Fact): Fact {
    const own = 1 << this.#known.length;
    this.#known.push(new Map(parameters.map((each) => [each, { fact: guess, rests: own }])));
    try {
      return this.of(yielded);
    } finally {
      this.#known.pop();
      this.#rests &= ~own;
    }
  }

  /** A loop counts from `lower` by whole steps while it is below `upper`; it does not wrap. */
  #counter({ operands }: Op<"loop">, range: Range): Fact {
    const [lower, upper, step] = [operands.lower, operands.upper, operands.step].map((value) =>
      this.of(value),
    );
    if (lower === undefined || upper === undefined || step === undefined || step.least < 1n)
      return anyOf(range);
    const { size } = upper;
    return tightened({
      least: lower.least,
      greatest: upper.greatest - 1n,
      modulus: gcd(lower.modulus, divisorOf(step)),
      residue: lower.residue,
      below: size === undefined || typeof size === "number" ? upper.below : [size],
    });
  }
}

/** What an index counts from, up to and by; the index of a warp by nothing of its op's. */
function boundsOf(op: Op<"loop"> | Op<"warps">): readonly Value[] {
  return op.kind === "loop" ? [op.operands.lower, op.operands.upper, op.operands.step] : [];
}

const known = new WeakMap<Kernel, Facts>();
const madeFrom = new WeakMap<Kernel, Kernel>();

/** Says that a stage has made one kernel from another, whose facts may hold of it, too. Gives the new one. */
export function following(before: Kernel, kernel: Kernel): Kernel {
  if (before !== kernel) madeFrom.set(kernel, before);
  return kernel;
}

/** The facts of a kernel, which all that ask about it share. */
export function factsOf(kernel: Kernel): Facts {
  const found = known.get(kernel);
  if (found !== undefined) return found;
  const facts = new Facts(kernel, factsBefore(kernel));
  known.set(kernel, facts);
  return facts;
}

/** The facts of the last kernel on the way to this one of which somebody has asked. */
function factsBefore(kernel: Kernel): Facts | undefined {
  let before = madeFrom.get(kernel);
  while (before !== undefined && !known.has(before)) before = madeFrom.get(before);
  return before && known.get(before);
}

/** The sum of two i32, which wraps around. */
export function sumOfIndices(left: Fact, right: Fact): Fact {
  return binaryFact("add", left, right, indexRange);
}

/** A number that divides the integer. */
export function divisorNumber(fact: Fact): number {
  const divisor = divisorOf(fact);
  return Number(divisor < greatestDivisor ? divisor : gcd(divisor, greatestDivisor));
}

/** Whether it is an integer or a bool, or a tile of them. */
function isInteger({ type }: Value): boolean {
  return isData(type) && rangeOf(type.dtype) !== undefined;
}

interface Request {
  readonly facts: Facts;
  readonly range: Range;
  /** Which of the op's results is asked for. */
  readonly position: number;
}

type Rule = (op: unknown, request: Request) => Fact;

const anything: Rule = (_, { range }) => anyOf(range);

/** The one that leaves fewer values, of two that both hold. */
function narrower(first: Fact, second: Fact): Fact {
  return first.greatest - first.least < second.greatest - second.least ? first : second;
}

/** The elements of the result are elements of the source. */
function elementsOf(
  { operands }: { readonly operands: { readonly source: Value } },
  { facts }: Request,
): Fact {
  return facts.of(operands.source);
}

function oneOf(values: readonly (Value | undefined)[], { facts, range }: Request): Fact {
  const known = values.map((value) => (value === undefined ? anyOf(range) : facts.of(value)));
  return known.length === 0 ? anyOf(range) : known.reduce(either);
}

/** A reduction that picks one of the elements. */
function picked(op: Op<"reduce"> | Op<"scan">, { facts, range }: Request): Fact {
  const { fn } = op.attributes;
  return fn === "min" || fn === "max" ? facts.of(op.operands.source) : anyOf(range);
}

const rules: OpRules<[Request], Fact> = {
  constant: ({ attributes }) => exactly(BigInt(attributes.value)),
  block_index: ({ attributes }, { facts }) => facts.indexOf(facts.axis(attributes.axis).extent),
  grid_size: ({ attributes }, { facts }) => facts.indexSize(facts.axis(attributes.axis).extent),
  cluster_rank: ({ attributes }, { facts }) => facts.indexOf(facts.axis(attributes.axis).cluster),
  thread_index: (_, { facts }) => facts.indexOf(facts.threads),
  size: ({ attributes }, { facts }) => facts.indexSize(attributes.of),
  iota: ({ attributes: { shape, axis } }, { facts }) => facts.indexOf(shape[axis] ?? 1),
  unary: ({ operands, attributes }, { facts, range }) =>
    unaryFact(attributes.fn, facts.of(operands.source), range),
  classify: anything,
  binary: ({ operands, attributes }, { facts, range }) =>
    binaryFact(attributes.fn, facts.of(operands.left), facts.of(operands.right), range),
  compare: anything,
  fma: anything,
  assume: ({ operands, attributes }, { facts }) => assumed(facts.of(operands.source), attributes),
  select: ({ operands }, { facts, range }) => {
    const condition = facts.definitions.get(operands.condition);
    const constant = (value: Value): bigint | undefined => constantOf(facts.of(value));
    const known = (value: Value, holds: boolean): Fact =>
      refined(value, facts.of(value), condition, holds, constant);
    /** Of what is computed from the value that the condition asks about, as `x < 0 ? x + 4 : x`, what follows from it there. */
    const chosen = (value: Value, holds: boolean): Fact => {
      const op = facts.definitions.get(value);
      if (op?.kind !== "binary") return known(value, holds);
      const { left, right } = op.operands;
      const follows = binaryFact(op.attributes.fn, known(left, holds), known(right, holds), range);
      return narrower(follows, known(value, holds));
    };
    return either(chosen(operands.ifTrue, true), chosen(operands.ifFalse, false));
  },
  cast: ({ operands, attributes }, { facts, range }) => {
    const source = facts.ofAny(operands.source);
    if (source === undefined) return anyOf(range);
    return attributes.overflow === "saturate" ? saturated(source, range) : converted(source, range);
  },
  bitcast: anything,
  bitcast_width: anything,
  broadcast: elementsOf,
  reshape: elementsOf,
  transpose: elementsOf,
  layout_cast: elementsOf,
  convert_layout: elementsOf,
  alloc_scratch: anything,
  lane_barrier: anything,
  barriers_ready: anything,
  products_wait: anything,
  cluster_barrier: anything,
  copies_read: anything,
  slice: elementsOf,
  concatenate: ({ operands }, request) => oneOf(operands.parts, request),
  reduce: picked,
  scan: picked,
  arg_reduce: ({ operands, attributes }, { facts, range }) =>
    operands.source.type.kind === "tile"
      ? facts.indexOf(operands.source.type.shape[attributes.axis] ?? 1)
      : anyOf(range),
  sort: ({ operands, attributes }, request) => {
    const { keys, payloads } = operands;
    const moved = [keys, ...payloads][request.position];
    if (moved !== undefined) return oneOf([moved], request);
    return keys.type.kind === "tile"
      ? request.facts.indexOf(keys.type.shape[attributes.axis] ?? 1)
      : anyOf(request.range);
  },
  inline_ptx: anything,
  inline_ptx_memory: anything,
  is_simulated: anything,
  address_of: anything,
  optimization_barrier: anything,
  scaled_dot: anything,
  dot: anything,
  alloc: anything,
  alloc_union: anything,
  union_member: anything,
  slice_ref: anything,
  transpose_ref: anything,
  reshape_ref: anything,
  peer_ref: anything,
  select_ref: anything,
  load: anything,
  store: anything,
  atomic: anything,
  atomic_compare_exchange: anything,
  atomic_load: anything,
  atomic_store: anything,
  take_block: anything,
  taken_block: anything,
  copy_async: anything,
  prefetch: anything,
  prefetch_maps: anything,
  commit_group: anything,
  wait_group: anything,
  proxy_fence: anything,
  accumulator: anything,
  wgmma: anything,
  wgmma_wait: anything,
  alloc_tmem: anything,
  tmem_member: anything,
  tmem_load: anything,
  tmem_store: anything,
  tcgen05_mma: anything,
  tcgen05_copy: anything,
  tcgen05_commit: anything,
  alloc_barrier: anything,
  linear_index: ({ attributes: { extents, strides } }) => {
    const last = extents.reduce(
      (sum, extent, axis) => sum + (extent - 1) * (strides[axis] ?? 0),
      0,
    );
    return between(0n, BigInt(last));
  },
  barrier_arrive: anything,
  barrier_wait: anything,
  barrier_test: anything,
  delay: anything,
  block_sync: anything,
  cluster_arrive: anything,
  cluster_wait: anything,
  set_registers: anything,
  grid_dependency: anything,
  alloc_semaphore: anything,
  semaphore_signal: anything,
  semaphore_wait: anything,
  semaphore_read: anything,
  loop: (op, { facts, range, position }) => facts.resultOf(op, position, range),
  while: (op, { facts, range, position }) => facts.resultOf(op, position, range),
  if: ({ regions }, request) =>
    oneOf(
      [regions.then, regions.otherwise].map((region) => yieldedValues(region)[request.position]),
      request,
    ),
  switch: ({ regions }, request) =>
    oneOf(
      regions.cases.map((region) => yieldedValues(region)[request.position]),
      request,
    ),
  scoped: ({ regions }, request) => oneOf([yieldedValues(regions.body)[request.position]], request),
  on_threads: anything,
  warps: anything,
  yield: anything,
  debug_print: anything,
  print_layout: anything,
  profile_mark: anything,
  assert: anything,
  debug_break: anything,
};

/** What is known of a number holds only where nothing of it is cut. */
function saturated(source: Fact, range: Range): Fact {
  const isCut = source.least < range.least || source.greatest > range.greatest;
  return isCut ? anyOf(range) : source;
}

/** Conversions between integers keep the low bits. */
function converted(source: Fact, range: Range): Fact {
  if (range.greatest === 1n) return anyOf(range);
  return stored(source, range);
}
