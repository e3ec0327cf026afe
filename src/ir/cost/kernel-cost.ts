/**
 * The cost of a whole launch: what every block's program threads execute, loops unrolled in thought.
 *
 *   cost of a region = Σ op, once × program threads that run it × trips of the loops around it
 *
 * How often a loop runs is found by evaluating its bounds from constants, dimensions and the size of the grid.
 * Where they depend on the block (persistent kernels, causal attention), blocks are walked one by one, or an even
 * sample of them; where they depend on the counter of a loop around them, that loop is walked step by step:
 *
 *   for tile = block; tile < 143; tile += 132     11 blocks have two tiles, 121 have one: 143 in all
 *
 * Where that is not enough (bounds that depend on data, every `while`) the body counts once and the loop is listed
 * in `unknownLoops`. Of branches whose condition is not known, the costliest counts. Where a kernel asks for the number of
 * the program thread, threads are walked one by one; where a branch asks for the number of the warp, warps are.
 */
import { packedBytes } from "../../formats/dtype.ts";
import type { Location } from "../../support/location.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import { ruleOf } from "../ops.ts";
import { evaluateSize, multiplySizes } from "../size.ts";
import type { DimensionValues } from "../size.ts";
import { regionList, walkOps } from "../traverse.ts";
import { addCosts, equalCosts, gmemBytes, largestCost, noCost, scaleCost } from "./cost.ts";
import type { Cost } from "./cost.ts";
import { costRules } from "./rules.ts";
import { KnownScalars } from "./scalars.ts";

type UnknownLoop = Op<"loop"> | Op<"while">;

/** What one launch of a kernel takes. */
export interface KernelCost extends Cost {
  /**
   * What memory has to move at least: an array counts once for each way, however many blocks read it, since what was read
   * before is in the cache.
   */
  readonly memoryBytes: number;
  /** Loops whose number of trips could not be found; their bodies count once. */
  readonly unknownLoops: readonly {
    readonly kind: "loop" | "while";
    readonly location: Location;
  }[];
}

/** Blocks that are walked where they differ; more than a wave of any GPU. */
const walkedBlocks = 512;
/** Steps of loops that are walked one by one in a block, in all. */
const walkedSteps = 4096;

/** The cost of a launch with these values of the kernel's dimensions. */
export function kernelCost(kernel: Kernel, dimensions: DimensionValues): KernelCost {
  const extents = kernel.grid.map(({ extent }) => evaluateSize(extent, dimensions));
  const blocks = evaluateSize(
    multiplySizes(...kernel.grid.map(({ extent }) => extent)),
    dimensions,
  );
  const crews = crewsOf(kernel);
  const any = walkBlock(kernel, dimensions, crews);
  const whole = (cost: Cost, loops: Iterable<UnknownLoop>): KernelCost => ({
    ...cost,
    memoryBytes: Math.min(gmemBytes(cost), arrayBytes(kernel, dimensions)),
    unknownLoops: described(loops),
  });
  if (!any.guessed || blocks <= 1) return whole(scaleCost(any.cost, blocks), any.unknownLoops);
  const walked = Math.min(blocks, walkedBlocks);
  const unknownLoops = new Set<UnknownLoop>();
  const costs = Array.from({ length: walked }, (_, index) => {
    const block = Math.floor((index * blocks) / walked);
    const one = walkBlock(kernel, dimensions, crews, indicesOf(block, extents));
    for (const loop of one.unknownLoops) unknownLoops.add(loop);
    return one.cost;
  });
  return whole(scaleCost(addCosts(costs), blocks / walked), unknownLoops);
}

/** The bytes of all arrays in global memory; those that are read and written count twice. */
function arrayBytes({ parameters, body }: Kernel, dimensions: DimensionValues): number {
  const bytesOf = ({ type }: Value): number =>
    type.kind === "ref" && type.space === "gmem"
      ? packedBytes(type.dtype, evaluateSize(multiplySizes(...type.shape), dimensions))
      : 0;
  let bytes = 0;
  for (const { role, value } of parameters) bytes += bytesOf(value) * (role === "inout" ? 2 : 1);
  walkOps(body, (op) => {
    if (op.kind === "alloc") for (const scratch of op.results) bytes += 2 * bytesOf(scratch);
  });
  return bytes;
}

/** Program threads that do the same: all of them, or each alone where the kernel asks which it is. */
function crewsOf({ body, threads }: Kernel): readonly (readonly number[])[] {
  let asks = false;
  walkOps(body, ({ kind }) => {
    asks ||= kind === "thread_index";
  });
  const numbers = threads.map((_, thread) => thread);
  return asks ? numbers.map((thread) => [thread]) : [numbers];
}

/** What the threads of a block execute: of this one, or of any. */
function walkBlock(
  kernel: Kernel,
  dimensions: DimensionValues,
  crews: readonly (readonly number[])[],
  block?: readonly number[],
): { readonly cost: Cost; readonly guessed: boolean; readonly unknownLoops: Set<UnknownLoop> } {
  const unknownLoops = new Set<UnknownLoop>();
  let guessed = false;
  const costs = crews.map((threads) => {
    const thread = threads.length === 1 ? threads[0] : undefined;
    const scalars = new KnownScalars(kernel, dimensions, { block, thread });
    const walk = new CostWalk(kernel, scalars, dimensions);
    const cost = walk.region(kernel.body, threads);
    guessed ||= walk.guessed;
    for (const loop of walk.unknownLoops) unknownLoops.add(loop);
    return cost;
  });
  return { cost: addCosts(costs), guessed, unknownLoops };
}

function described(loops: Iterable<UnknownLoop>): KernelCost["unknownLoops"] {
  return [...loops].map(({ kind, location }) => ({ kind, location }));
}

/** The block's index along each axis; the last one is fastest. */
function indicesOf(block: number, extents: readonly number[]): readonly number[] {
  const indices: number[] = [];
  let rest = block;
  for (const extent of extents.toReversed()) {
    indices.unshift(rest % extent);
    rest = Math.floor(rest / extent);
  }
  return indices;
}

interface Mark {
  readonly unknownLoops: ReadonlySet<UnknownLoop>;
  readonly guessed: boolean;
}

class CostWalk {
  readonly unknownLoops = new Set<UnknownLoop>();
  /** Whether a loop or a branch was met whose way was not known. */
  guessed = false;
  #steps = walkedSteps;
  readonly #scalars: KnownScalars;
  readonly #kernel: Kernel;
  readonly #dimensions: DimensionValues;

  constructor(kernel: Kernel, scalars: KnownScalars, dimensions: DimensionValues) {
    this.#kernel = kernel;
    this.#scalars = scalars;
    this.#dimensions = dimensions;
  }

  region(region: Region, threads: readonly number[]): Cost {
    return addCosts(region.ops.map((op) => this.#op(op, threads)));
  }

  #op(op: AnyOp, threads: readonly number[]): Cost {
    this.#scalars.learn(op);
    const context = { dimensions: this.#dimensions, grid: this.#kernel.grid };
    const own = scaleCost(ruleOf(costRules, op)(op, context), threads.length);
    const regions = regionList(op);
    return regions.length === 0 ? own : addCosts([own, this.#inner(op, regions, threads)]);
  }

  #inner(op: AnyOp, regions: readonly Region[], threads: readonly number[]): Cost {
    if (op.kind === "if") {
      const condition = this.#scalars.get(op.operands.condition);
      return this.#branch(regions, condition === undefined ? undefined : 1 - condition, threads);
    }
    if (op.kind === "switch")
      return this.#branch(regions, this.#scalars.get(op.operands.index), threads);
    if (op.kind === "loop") return this.#loop(op, threads);
    const active =
      op.kind === "on_threads"
        ? threads.filter((thread) => op.attributes.threads.includes(thread))
        : threads;
    if (active.length === 0) return noCost;
    if (op.kind === "warps") return this.#warps(op, active);
    const once = addCosts(regions.map((region) => this.region(region, active)));
    if (op.kind === "while") this.#unknown(op);
    return once;
  }

  /** The body once for all warps where they do the same, else warp by warp: often one of them copies, and the others do nothing. */
  #warps(op: Op<"warps">, threads: readonly number[]): Cost {
    const { body } = op.regions;
    const [warp] = body.parameters;
    const before = this.#mark();
    this.#scalars.forget(body.parameters);
    const once = this.region(body, threads);
    if (!this.guessed || warp === undefined) {
      this.guessed ||= before.guessed;
      return scaleCost(once, this.#kernel.warps);
    }
    this.#return(before);
    const costs = Array.from({ length: this.#kernel.warps }, (_, number) => {
      this.#scalars.set(warp, number);
      return this.region(body, threads);
    });
    return addCosts(costs);
  }

  #branch(regions: readonly Region[], index: number | undefined, threads: readonly number[]): Cost {
    if (index === undefined) {
      const costs = regions.map((region) => this.region(region, threads));
      const [first = noCost, ...others] = costs;
      // Where all ways cost the same, as where one of them only waits, it does not matter which is taken.
      this.guessed ||= others.some((other) => !equalCosts(first, other));
      return largestCost(costs);
    }
    const region = regions[Math.min(Math.max(index, 0), regions.length - 1)];
    return region === undefined ? noCost : this.region(region, threads);
  }

  /** The body once for all steps where they cost the same, else step by step as long as the allowance lasts. */
  #loop(op: Op<"loop">, threads: readonly number[]): Cost {
    const lower = this.#scalars.get(op.operands.lower);
    const upper = this.#scalars.get(op.operands.upper);
    const step = this.#scalars.get(op.operands.step);
    const before = this.#mark();
    this.#scalars.forget(op.regions.body.parameters);
    const once = this.region(op.regions.body, threads);
    const alike = !this.guessed;
    // All rounds are counted of a loop that may break, of which nobody knows when.
    const breaks = op.attributes.breaks === true;
    if (lower === undefined || upper === undefined || step === undefined || step <= 0) {
      this.#unknown(op);
      return once;
    }
    const trips = Math.max(0, Math.ceil((upper - lower) / step));
    const [counter] = op.regions.body.parameters;
    if (alike || trips > this.#steps || counter === undefined) {
      this.guessed ||= before.guessed || breaks;
      return scaleCost(once, trips);
    }
    this.#steps -= trips;
    this.#return(before);
    const costs = Array.from({ length: trips }, (_, trip) => {
      this.#scalars.set(counter, lower + trip * step);
      return this.region(op.regions.body, threads);
    });
    this.guessed ||= breaks;
    return addCosts(costs);
  }

  /** What is not known so far; whether anything else is then shows in `guessed`. */
  #mark(): Mark {
    const mark = { unknownLoops: new Set(this.unknownLoops), guessed: this.guessed };
    this.guessed = false;
    return mark;
  }

  /** Forgets what was found since, before it is walked again more closely. */
  #return({ unknownLoops, guessed }: Mark): void {
    this.unknownLoops.clear();
    for (const loop of unknownLoops) this.unknownLoops.add(loop);
    this.guessed = guessed;
  }

  #unknown(op: UnknownLoop): void {
    this.unknownLoops.add(op);
    this.guessed = true;
  }
}
