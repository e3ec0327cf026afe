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
 * the program thread, threads are walked one by one.
 */
import type { Location } from "../../support/location.ts";
import type { AnyOp, Kernel, Op, Region } from "../node.ts";
import { ruleOf } from "../ops.ts";
import { evaluateSize, multiplySizes } from "../size.ts";
import type { DimensionValues } from "../size.ts";
import { regionList, walkOps } from "../traverse.ts";
import { addCosts, equalCosts, largestCost, noCost, scaleCost } from "./cost.ts";
import type { Cost } from "./cost.ts";
import { costRules } from "./rules.ts";
import { KnownScalars } from "./scalars.ts";

type UnknownLoop = Op<"loop"> | Op<"while">;

export interface KernelCost extends Cost {
  /** Loops whose number of trips could not be found; their bodies count once. */
  readonly unknownLoops: readonly {
    readonly kind: "loop" | "while";
    readonly location: Location;
  }[];
}

const warpsOfThread = 4;
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
  if (!any.guessed || blocks <= 1)
    return { ...scaleCost(any.cost, blocks), unknownLoops: described(any.unknownLoops) };
  const walked = Math.min(blocks, walkedBlocks);
  const unknownLoops = new Set<UnknownLoop>();
  const costs = Array.from({ length: walked }, (_, index) => {
    const block = Math.floor((index * blocks) / walked);
    const one = walkBlock(kernel, dimensions, crews, indicesOf(block, extents));
    for (const loop of one.unknownLoops) unknownLoops.add(loop);
    return one.cost;
  });
  return { ...scaleCost(addCosts(costs), blocks / walked), unknownLoops: described(unknownLoops) };
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
    const once = addCosts(regions.map((region) => this.region(region, active)));
    if (op.kind === "while") this.#unknown(op);
    return op.kind === "warps" ? scaleCost(once, warpsOfThread) : once;
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
    const before = { unknown: new Set(this.unknownLoops), guessed: this.guessed };
    this.guessed = false;
    this.#scalars.forget(op.regions.body.parameters);
    const once = this.region(op.regions.body, threads);
    const alike = !this.guessed;
    if (lower === undefined || upper === undefined || step === undefined || step <= 0) {
      this.#unknown(op);
      return once;
    }
    const trips = Math.max(0, Math.ceil((upper - lower) / step));
    const [counter] = op.regions.body.parameters;
    if (alike || trips > this.#steps || counter === undefined) {
      this.guessed ||= before.guessed;
      return scaleCost(once, trips);
    }
    this.#steps -= trips;
    this.unknownLoops.clear();
    for (const loop of before.unknown) this.unknownLoops.add(loop);
    this.guessed = before.guessed;
    const costs = Array.from({ length: trips }, (_, trip) => {
      this.#scalars.set(counter, lower + trip * step);
      return this.region(op.regions.body, threads);
    });
    return addCosts(costs);
  }

  #unknown(op: UnknownLoop): void {
    this.unknownLoops.add(op);
    this.guessed = true;
  }
}
