/**
 * What a launch keeps busy: instructions, tensor cores, memory, and how long a block takes however few others there are. Where `kernelCost`
 * counts what a program says, this counts what it takes to do it:
 *
 *   load x[128 elements, 4096 apart]      128 sectors of memory, not 512 bytes
 *   loop of 3,900 turns that load         3,900 times the latency of memory, one after the other
 *   tanh of 1024 bf16                     1024 × what a lane executes for it
 *
 * Blocks that do the same are counted once; of others a few are looked at, and of long loops whose turns differ a few turns.
 */
import { packedBytes } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import { evaluateSize, multiplySizes } from "../size.ts";
import type { DimensionValues } from "../size.ts";
import { operandValues, regionList, walkOps, yieldedValues } from "../traverse.ts";
import { productFormats } from "./cost.ts";
import type { ProductFormat } from "./cost.ts";
import { Definitions, IndexValues } from "./index-values.ts";
import { expenseOf, latencies } from "./expenses.ts";
import type { ElementCost, InstructionCosts } from "./expenses.ts";
import { KnownScalars } from "./scalars.ts";
import { sectorBytes, touchedBy } from "./touched.ts";
import type { Touched } from "./touched.ts";

/** What is read and written of an array in global memory. */
export interface ArrayTraffic {
  /** Bytes of the array. */
  readonly bytes: number;
  /** Bytes of elements that blocks ask for, in all. */
  readonly used: number;
  /** Bytes of sectors that come from beyond the processors, and go there. */
  readonly read: number;
  readonly written: number;
}

/** What a launch takes. */
export interface LaunchWork {
  readonly blocks: number;
  /** Lanes of a block. */
  readonly lanes: number;
  /** Bytes of shared memory of a block. */
  readonly sharedBytes: number;
  /** Blocks that a processor is to hold at once, where the kernel says. */
  readonly resident: number | undefined;
  /** Registers of a lane, roughly. */
  readonly registers: number;
  /** Of lanes. */
  readonly instructions: number;
  /** Those of them that only the special unit executes. */
  readonly special: number;
  readonly products: { readonly [F in ProductFormat]: number };
  /** Bytes that shared memory and the caches of processors give and take. */
  readonly sharedTraffic: number;
  readonly atomics: number;
  readonly arrays: ReadonlyMap<Value, ArrayTraffic>;
  /** Clocks from a block's begin to its end if it waits for nobody else: of the slowest that was looked at, and on average. */
  readonly clocks: { readonly most: number; readonly mean: number };
  /** Loops of which nobody knows how often they run; their bodies count once. */
  readonly unknownLoops: number;
}

/** Numbers of a piece of work, in a list: those below, then three for each array. */
const slots = 9;
const instructionsAt = 0;
const specialAt = 1;
const productsAt = 2;
const sharedAt = 7;
const atomicsAt = 8;
const [usedAt, readAt, writtenAt] = [0, 1, 2];

interface Piece {
  readonly work: Float64Array;
  readonly clocks: number;
}

/** What an op takes by itself, once, without its regions, and what a walk asks of it again and again. */
interface OwnPiece extends Piece {
  readonly isIdle: boolean;
  readonly regions: readonly Region[];
  readonly meets: boolean;
  readonly operands: readonly number[];
  readonly results: readonly number[];
}

const walkedBlocks = 4;
const walkedTurns = 6;
/** Turns of a short loop that the assembler writes one after the other, so that their loads wait together. */
const unrolled = 4;

/** Ops for which others of the block are waited for: turns around them stay one after the other. */
const meetings: ReadonlySet<AnyOp["kind"]> = new Set([
  ...(["block_sync", "cluster_arrive", "cluster_wait", "barrier_wait", "barrier_arrive"] as const),
  ...(["semaphore_wait", "reduce", "scan", "arg_reduce", "sort"] as const),
  ...(["wgmma", "wgmma_wait"] as const satisfies readonly AnyOp["kind"][]),
  ...(["loop", "while", "if", "switch", "warps", "on_threads", "atomic"] as const),
]);

function scaled({ work, clocks }: Piece, factor: number): Piece {
  return { work: work.map((each) => each * factor), clocks: clocks * factor };
}

/** Adds what is done besides; of clocks the longer. */
function addTo(total: Float64Array, work: Float64Array, factor = 1): void {
  for (let i = 0; i < total.length; i++) total[i] = (total[i] ?? 0) + factor * (work[i] ?? 0);
}

export function launchWork(
  kernel: Kernel,
  dimensions: DimensionValues,
  instructions: InstructionCosts,
  /** Bytes of the cache that all processors share. */
  cache: number,
): LaunchWork {
  const extents = kernel.grid.map(({ extent }) => evaluateSize(extent, dimensions));
  const blocks = extents.reduce((product, extent) => product * extent, 1);
  const shared = new Facts(kernel, dimensions, instructions, cache);
  const any = blockWork(shared);
  const pieces: Piece[] = [any.piece];
  let unknownLoops = any.unknownLoops;
  if (any.guessed && blocks > 1) {
    const count = Math.min(blocks, walkedBlocks);
    pieces.length = 0;
    unknownLoops = new Set();
    for (let i = 0; i < count; i++) {
      const block = count === 1 ? 0 : Math.round((i * (blocks - 1)) / (count - 1));
      const one = blockWork(shared, indicesOf(block, extents));
      pieces.push(one.piece);
      for (const loop of one.unknownLoops) unknownLoops.add(loop);
    }
  }
  const total = new Float64Array(shared.size);
  for (const { work } of pieces) addTo(total, work, blocks / pieces.length);
  const clocks = pieces.map((piece) => piece.clocks);
  return {
    blocks,
    lanes: 32 * kernel.warps * kernel.threads.length,
    sharedBytes: sharedBytesOf(kernel, dimensions),
    resident: kernel.resident,
    registers: shared.registers,
    instructions: total[instructionsAt] ?? 0,
    special: total[specialAt] ?? 0,
    products: productsOf(total),
    sharedTraffic: total[sharedAt] ?? 0,
    atomics: total[atomicsAt] ?? 0,
    arrays: shared.traffic(total),
    clocks: {
      most: Math.max(...clocks),
      mean: clocks.reduce((sum, each) => sum + each, 0) / clocks.length,
    },
    unknownLoops: unknownLoops.size,
  };
}

function productsOf(total: Float64Array): LaunchWork["products"] {
  const [f64 = 0, f32 = 0, tf32 = 0, half = 0, byte = 0] = total.slice(productsAt, sharedAt);
  return { f64, f32, tf32, half, byte };
}

function indicesOf(block: number, extents: readonly number[]): readonly number[] {
  const indices: number[] = [];
  let rest = block;
  for (const extent of extents.toReversed()) {
    indices.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return indices;
}

function sharedBytesOf({ body }: Kernel, dimensions: DimensionValues): number {
  let bytes = 0;
  walkOps(body, (op) => {
    if (op.kind === "alloc" && op.attributes.space === "smem")
      bytes += packedBytes(
        op.attributes.dtype,
        evaluateSize(multiplySizes(...op.attributes.shape), dimensions),
      );
    if (op.kind === "alloc_union") bytes += op.attributes.bytes;
  });
  return bytes;
}

/** What is the same for all blocks and threads: found once. */
class Facts {
  readonly kernel: Kernel;
  readonly dimensions: DimensionValues;
  readonly size: number;
  registers = 24;
  readonly #arrays: readonly Value[];
  readonly #numbers: ReadonlyMap<Value, number>;
  readonly #elementCost: (op: AnyOp) => ElementCost | undefined;
  readonly #cache: number;
  readonly #definitions: Definitions;
  readonly #values: IndexValues;
  readonly #later = new Map<AnyOp, IndexValues>();
  readonly #own = new Map<AnyOp, OwnPiece>();
  /** Regions without others within, which take the same wherever they are met. */
  readonly leaves = new Map<Region, Walked>();

  constructor(
    kernel: Kernel,
    dimensions: DimensionValues,
    instructions: InstructionCosts,
    cache: number,
  ) {
    this.kernel = kernel;
    this.dimensions = dimensions;
    this.#cache = cache;
    this.#definitions = new Definitions(kernel);
    const isConstant = (value: Value): boolean => this.#isConstant(value);
    this.#elementCost = (op) => instructions(op, isConstant);
    this.#values = new IndexValues(kernel, dimensions, this.#definitions);
    const isGlobal = ({ type }: Value): boolean => type.kind === "ref" && type.space === "gmem";
    const arrays = kernel.parameters.flatMap(({ value }) => (isGlobal(value) ? [value] : []));
    walkOps(kernel.body, (op) => {
      if (op.kind === "alloc") arrays.push(...op.results.filter(isGlobal));
    });
    this.#arrays = arrays;
    this.#numbers = new Map(arrays.map((array, i) => [array, slots + 3 * i]));
    this.size = slots + 3 * arrays.length;
  }

  #isConstant(value: Value): boolean {
    const op = this.#definitions.ops.get(value);
    if (op?.kind === "broadcast") return this.#isConstant(op.operands.source);
    return op?.kind === "constant" || op?.kind === "size";
  }

  own(op: AnyOp, lanes: number, around: Op<"loop"> | undefined, trips: number): OwnPiece {
    const known = this.#own.get(op);
    if (known !== undefined) return known;
    const piece = this.#make(op, lanes, around, trips);
    const regions = regionList(op);
    const made = {
      ...piece,
      isIdle: piece.work.every((each) => each === 0),
      regions,
      meets: regions.length > 0 || meetings.has(op.kind),
      operands: operandValues(op).map(({ id }) => id),
      results: op.results.map(({ id }) => id),
    };
    this.#own.set(op, made);
    return made;
  }

  #make(op: AnyOp, lanes: number, around: Op<"loop"> | undefined, trips: number): Piece {
    const work = new Float64Array(this.size);
    const { expense, accesses } = expenseOf(op, lanes, this.#elementCost);
    work[instructionsAt] = expense.instructions;
    work[specialAt] = expense.special;
    for (const [i, format] of productFormats.entries())
      if (expense.format === format) work[productsAt + i] = expense.products;
    work[sharedAt] = expense.sharedBytes;
    let { clocks } = expense;
    this.registers = Math.min(255, Math.max(this.registers, 24 + expense.registers));
    for (const { access, way, isAsynchronous } of accesses) {
      const { type } = access.ref;
      if (type.kind !== "ref") continue;
      if (type.space !== "gmem") {
        const count = evaluateSize(multiplySizes(...type.shape), this.dimensions);
        const moved = access.indices.length > 0 ? expense.elements : count;
        work[sharedAt] = (work[sharedAt] ?? 0) + packedBytes(type.dtype, moved);
        if (!isAsynchronous && way === "read") clocks += latencies.shared;
        continue;
      }
      const touched = touchedBy(access, this.kernel, this.#values, this.#after(around));
      const array = this.#numbers.get(touched.array);
      if (array === undefined) continue;
      const fresh = Math.max(touched.fresh, 1 / Math.max(1, trips));
      const bytes = sectorBytes * touched.sectors * fresh;
      if (!isAsynchronous) work[sharedAt] = (work[sharedAt] ?? 0) + sectorBytes * touched.asked;
      this.#count(work, array, way, touched, bytes);
      if (way === "both") work[atomicsAt] = expense.elements;
      if (isAsynchronous || way === "written") continue;
      const isCached = this.#bytesOf(touched.array) < this.#cache / 2;
      clocks += isCached ? latencies.cache : latencies.memory;
    }
    return { work, clocks };
  }

  #count(
    work: Float64Array,
    array: number,
    way: "read" | "written" | "both",
    touched: Touched,
    bytes: number,
  ): void {
    const add = (at: number, amount: number): void => {
      work[array + at] = (work[array + at] ?? 0) + amount;
    };
    if (way !== "written") add(readAt, bytes);
    if (way !== "written") add(usedAt, touched.bytes);
    if (way !== "read") add(writtenAt, bytes);
  }

  #after(around: Op<"loop"> | undefined): IndexValues | undefined {
    if (around === undefined) return undefined;
    const made =
      this.#later.get(around) ??
      new IndexValues(this.kernel, this.dimensions, this.#definitions, around);
    this.#later.set(around, made);
    return made;
  }

  #bytesOf({ type }: Value): number {
    return type.kind === "ref"
      ? packedBytes(type.dtype, evaluateSize(multiplySizes(...type.shape), this.dimensions))
      : 0;
  }

  traffic(total: Float64Array): LaunchWork["arrays"] {
    return new Map(
      this.#arrays.map((array) => {
        const at = this.#numbers.get(array) ?? 0;
        return [
          array,
          {
            bytes: this.#bytesOf(array),
            used: total[at + usedAt] ?? 0,
            read: total[at + readAt] ?? 0,
            written: total[at + writtenAt] ?? 0,
          },
        ];
      }),
    );
  }
}

type UnknownLoop = Op<"loop"> | Op<"while">;

interface BlockWork {
  readonly piece: Piece;
  readonly guessed: boolean;
  readonly unknownLoops: Set<UnknownLoop>;
}

/** What the threads of a block do: of this one, or of any. */
function blockWork(facts: Facts, block?: readonly number[]): BlockWork {
  const { kernel, dimensions, size } = facts;
  const work = new Float64Array(size);
  const unknownLoops = new Set<UnknownLoop>();
  let [clocks, guessed] = [0, false];
  for (const thread of kernel.threads.keys()) {
    const walk = new Walk(facts, new KnownScalars(kernel, dimensions, { block, thread }), thread);
    const piece = walk.region(kernel.body, 32 * kernel.warps).piece;
    addTo(work, piece.work);
    clocks = Math.max(clocks, piece.clocks);
    guessed ||= walk.guessed;
    for (const loop of walk.unknownLoops) unknownLoops.add(loop);
  }
  return { piece: { work, clocks }, guessed, unknownLoops };
}

interface Walked {
  readonly piece: Piece;
  /** Clocks from what the region is given to what it hands on. */
  readonly carried: number;
}

class Walk {
  guessed = false;
  readonly unknownLoops = new Set<UnknownLoop>();
  readonly #facts: Facts;
  readonly #scalars: KnownScalars;
  readonly #thread: number;
  #around: Op<"loop"> | undefined;
  #trips = 1;

  constructor(facts: Facts, scalars: KnownScalars, thread: number) {
    this.#facts = facts;
    this.#scalars = scalars;
    this.#thread = thread;
  }

  /** Ops begin when what they take is there; those with regions when all before them have ended. */
  region(region: Region, lanes: number): Walked {
    const facts = this.#facts;
    const known = facts.leaves.get(region);
    if (known !== undefined) return known;
    const work = new Float64Array(facts.size);
    let isLeaf = true;
    // Values of regions around this one are there from the beginning.
    const ready = new Map<number, number>();
    const carried = new Map<number, number>();
    for (const { id } of region.parameters) carried.set(id, 0);
    let [end, begin] = [0, 0];
    for (const op of region.ops) {
      this.#scalars.learn(op);
      const own = facts.own(op, lanes, this.#around, this.#trips);
      if (!own.isIdle) addTo(work, own.work);
      let { clocks } = own;
      const isWhole = own.regions.length > 0;
      if (isWhole) {
        isLeaf = false;
        const inner = this.#inner(op, lanes);
        addTo(work, inner.work);
        clocks += inner.clocks;
      }
      let from = begin;
      let link = -1;
      for (const id of own.operands) {
        from = Math.max(from, ready.get(id) ?? 0);
        link = Math.max(link, carried.get(id) ?? -1);
      }
      if (own.meets) from = end;
      const done = from + clocks;
      if (isWhole) begin = done;
      end = Math.max(end, done);
      for (const id of own.results) {
        if (done > begin) ready.set(id, done);
        if (link >= 0) carried.set(id, link + clocks);
      }
    }
    let longest = 0;
    for (const { id } of yieldedValues(region)) longest = Math.max(longest, carried.get(id) ?? 0);
    const walked = { piece: { work, clocks: end }, carried: longest };
    if (isLeaf) facts.leaves.set(region, walked);
    return walked;
  }

  #inner(op: AnyOp, lanes: number): Piece {
    if (op.kind === "if") {
      const condition = this.#scalars.get(op.operands.condition);
      const { then, otherwise } = op.regions;
      return this.#branch(
        [then, otherwise],
        condition === undefined ? undefined : 1 - condition,
        lanes,
      );
    }
    if (op.kind === "switch")
      return this.#branch(op.regions.cases, this.#scalars.get(op.operands.index), lanes);
    if (op.kind === "loop") return this.#loop(op, lanes);
    if (op.kind === "warps") return this.#warps(op);
    if (op.kind === "on_threads" && !op.attributes.threads.includes(this.#thread))
      return { work: new Float64Array(this.#facts.size), clocks: 0 };
    if (op.kind === "while") this.#unknown(op);
    const work = new Float64Array(this.#facts.size);
    let clocks = 0;
    for (const region of regionList(op)) {
      if (op.kind === "while") this.#scalars.forget(region.parameters);
      const { piece } = this.region(region, lanes);
      addTo(work, piece.work);
      clocks += piece.clocks;
    }
    return { work, clocks };
  }

  #unknown(op: UnknownLoop): void {
    this.unknownLoops.add(op);
    this.guessed = true;
  }

  /** Of ways of which nobody knows which is taken the costliest. */
  #branch(regions: readonly Region[], index: number | undefined, lanes: number): Piece {
    if (index !== undefined) {
      const region = regions[Math.min(Math.max(index, 0), regions.length - 1)];
      if (region !== undefined) return this.region(region, lanes).piece;
    }
    const work = new Float64Array(this.#facts.size);
    let clocks = 0;
    for (const [i, region] of regions.entries()) {
      const { piece } = this.region(region, lanes);
      for (let slot = 0; slot < work.length; slot++) {
        if (i > 0 && work[slot] !== piece.work[slot]) this.guessed = true;
        work[slot] = Math.max(work[slot] ?? 0, piece.work[slot] ?? 0);
      }
      clocks = Math.max(clocks, piece.clocks);
    }
    return { work, clocks };
  }

  /** The body once for all warps where they do the same, else warp by warp. */
  #warps(op: Op<"warps">): Piece {
    const { body } = op.regions;
    const { warps } = this.#facts.kernel;
    const [warp] = body.parameters;
    const before = this.guessed;
    this.guessed = false;
    this.#scalars.forget(body.parameters);
    const once = this.region(body, 32).piece;
    if (!this.guessed || warp === undefined) {
      this.guessed ||= before;
      return { work: scaled(once, warps).work, clocks: once.clocks };
    }
    this.guessed = before;
    const work = new Float64Array(this.#facts.size);
    let clocks = 0;
    for (let number = 0; number < warps; number++) {
      this.#scalars.set(warp, number);
      const { piece } = this.region(body, 32);
      addTo(work, piece.work);
      clocks = Math.max(clocks, piece.clocks);
    }
    return { work, clocks };
  }

  #loop(op: Op<"loop">, lanes: number): Piece {
    const { lower, upper, step } = op.operands;
    const [from, to, by] = [lower, upper, step].map((value) => this.#scalars.get(value));
    const isKnown = from !== undefined && to !== undefined && by !== undefined && by > 0;
    const trips = isKnown ? Math.max(0, Math.ceil((to - from) / by)) : 1;
    const outside = [this.#around, this.#trips] as const;
    [this.#around, this.#trips] = [op, trips];
    const piece = this.#turns(op, lanes, trips, from ?? 0, by ?? 1);
    [this.#around, this.#trips] = outside;
    this.#scalars.forget(op.results);
    if (!isKnown) this.#unknown(op);
    return piece;
  }

  #turns(op: Op<"loop">, lanes: number, trips: number, from: number, by: number): Piece {
    const { body } = op.regions;
    const before = this.guessed;
    const unknownBefore = new Set(this.unknownLoops);
    this.guessed = false;
    this.#scalars.forget(body.parameters);
    const once = this.region(body, lanes);
    const clocks = this.#turnClocks(op, once);
    if (!this.guessed || trips <= 1) {
      this.guessed ||= before;
      return scaled({ work: once.piece.work, clocks }, trips);
    }
    this.guessed = before;
    this.unknownLoops.clear();
    for (const loop of unknownBefore) this.unknownLoops.add(loop);
    const [counter, ...carried] = body.parameters;
    const count = Math.min(trips, walkedTurns);
    const isEach = count === trips;
    const work = new Float64Array(this.#facts.size);
    let sum = 0;
    let handed = op.operands.initial;
    for (let i = 0; i < count; i++) {
      const trip = isEach ? i : Math.round((i * (trips - 1)) / (count - 1));
      const known = i === 0 || isEach ? handed.map((value) => this.#scalars.get(value)) : [];
      this.#scalars.forget(body.parameters);
      if (counter !== undefined) this.#scalars.set(counter, from + trip * by);
      for (const [place, value] of carried.entries()) {
        const number = known[place];
        if (number !== undefined) this.#scalars.set(value, number);
      }
      const walked = this.region(body, lanes);
      addTo(work, walked.piece.work, trips / count);
      sum += (this.#turnClocks(op, walked) * trips) / count;
      handed = yieldedValues(body);
    }
    return { work, clocks: sum };
  }

  /** A turn begins where the one before it has handed on what it needs; loads of several short ones wait together. */
  #turnClocks(
    { attributes: { depth = 1 }, regions: { body } }: Op<"loop">,
    walked: Walked,
  ): number {
    const { clocks } = walked.piece;
    const meets = body.ops.some(({ kind }) => meetings.has(kind));
    const together = Math.max(depth, meets ? 1 : unrolled);
    return Math.max(walked.carried, clocks / together);
  }
}
