/**
 * The cost of a whole launch: what every block's program threads execute, loops unrolled in thought.
 *
 *   cost of a region = Σ op, once × program threads that run it × trips of the loops around it
 *
 * How often a loop runs is found by evaluating its bounds from constants, dimensions and the size of
 * the grid. Where that is not enough (bounds that depend on the block or on data, every `while`) the
 * body counts once and the loop is listed in `unknownLoops`. Of branches whose condition is not known,
 * the costliest counts.
 */
import type { BinaryFunction } from "../../formats/arithmetic/functions.ts";
import { isInteger } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import { applyRule } from "../ops.ts";
import { evaluateSize, multiplySizes } from "../size.ts";
import type { DimensionValues } from "../size.ts";
import { regionList } from "../traverse.ts";
import { addCosts, largestCost, noCost, scaleCost } from "./cost.ts";
import type { Cost } from "./cost.ts";
import { costRules } from "./rules.ts";

export interface KernelCost extends Cost {
  /** Loops whose number of trips could not be found; their bodies count once. */
  readonly unknownLoops: readonly (Op<"loop"> | Op<"while">)[];
}

const warpsOfThread = 4;

/** The cost of a launch with these values of the kernel's dimensions. */
export function kernelCost(kernel: Kernel, dimensions: DimensionValues): KernelCost {
  const walk = new CostWalk(kernel, dimensions);
  const blocks = evaluateSize(
    multiplySizes(...kernel.grid.map(({ extent }) => extent)),
    dimensions,
  );
  return {
    ...scaleCost(walk.region(kernel.body, kernel.threads.length), blocks),
    unknownLoops: walk.unknownLoops,
  };
}

class CostWalk {
  readonly unknownLoops: (Op<"loop"> | Op<"while">)[] = [];
  readonly #kernel: Kernel;
  readonly #dimensions: DimensionValues;
  readonly #scalars = new Map<Value, number>();

  constructor(kernel: Kernel, dimensions: DimensionValues) {
    this.#kernel = kernel;
    this.#dimensions = dimensions;
  }

  region(region: Region, threads: number): Cost {
    return addCosts(region.ops.map((op) => this.#op(op, threads)));
  }

  #op(op: AnyOp, threads: number): Cost {
    const scalar = this.#evaluate(op);
    const [result] = op.results;
    if (scalar !== undefined && result !== undefined) this.#scalars.set(result, scalar);
    const context = { dimensions: this.#dimensions, grid: this.#kernel.grid };
    const own = scaleCost(applyRule(costRules, op, context), threads);
    const regions = regionList(op);
    return regions.length === 0 ? own : addCosts([own, this.#inner(op, regions, threads)]);
  }

  #inner(op: AnyOp, regions: readonly Region[], threads: number): Cost {
    if (op.kind === "if") {
      const condition = this.#scalars.get(op.operands.condition);
      return this.#branch(regions, condition === undefined ? undefined : 1 - condition, threads);
    }
    if (op.kind === "switch")
      return this.#branch(regions, this.#scalars.get(op.operands.index), threads);
    const active = op.kind === "on_threads" ? op.attributes.threads.length : threads;
    const once = addCosts(regions.map((region) => this.region(region, active)));
    return scaleCost(once, this.#repetitions(op));
  }

  #branch(regions: readonly Region[], index: number | undefined, threads: number): Cost {
    if (index === undefined)
      return largestCost(regions.map((region) => this.region(region, threads)));
    const region = regions[Math.min(Math.max(index, 0), regions.length - 1)];
    return region === undefined ? noCost : this.region(region, threads);
  }

  #repetitions(op: AnyOp): number {
    if (op.kind === "warps") return warpsOfThread;
    if (op.kind !== "loop" && op.kind !== "while") return 1;
    const trips = op.kind === "loop" ? this.#trips(op) : undefined;
    if (trips === undefined) this.unknownLoops.push(op);
    return trips ?? 1;
  }

  #trips({ operands }: Op<"loop">): number | undefined {
    const lower = this.#scalars.get(operands.lower);
    const upper = this.#scalars.get(operands.upper);
    const step = this.#scalars.get(operands.step);
    if (lower === undefined || upper === undefined || step === undefined) return undefined;
    return Math.max(0, Math.ceil((upper - lower) / step));
  }

  /** The op's scalar result where it follows from constants, dimensions and the grid. */
  #evaluate(op: AnyOp): number | undefined {
    if (op.results.length !== 1 || op.results[0]?.type.kind !== "scalar") return undefined;
    if (op.kind === "constant") return Number(op.attributes.value);
    if (op.kind === "size") return evaluateSize(op.attributes.of, this.#dimensions);
    if (op.kind === "grid_size") {
      const axis = this.#kernel.grid.find(({ name }) => name === op.attributes.axis);
      return axis === undefined ? undefined : evaluateSize(axis.extent, this.#dimensions);
    }
    if (op.kind === "binary" && isInteger(op.results[0].type.dtype)) {
      const left = this.#scalars.get(op.operands.left);
      const right = this.#scalars.get(op.operands.right);
      if (left === undefined || right === undefined) return undefined;
      return sizeFunctions[op.attributes.fn]?.(left, right);
    }
    return undefined;
  }
}

/** The arithmetic that bounds of loops are made of; sizes are small enough not to wrap. */
const sizeFunctions: { readonly [F in BinaryFunction]?: (left: number, right: number) => number } =
  {
    add: (left, right) => left + right,
    sub: (left, right) => left - right,
    mul: (left, right) => left * right,
    div: (left, right) => Math.trunc(left / right),
    rem: (left, right) => left % right,
    min: Math.min,
    max: Math.max,
  };
