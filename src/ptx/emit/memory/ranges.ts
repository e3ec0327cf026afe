/**
 * Between what an index lies, whatever the launch. Windows that are inside their array for certain need
 * no test at run time; most are, since they start at an axis of the grid or a loop's counter times a tile.
 *
 *   | index                           | least | below                                   |
 *   |---------------------------------|-------|-----------------------------------------|
 *   | block_index "i" of ceildiv(n, 64) | 0   | ceildiv(n, 64)                          |
 *   | that times 64                   | 0     | 64 * ceildiv(n, 64), and n              |
 *   | the counter of loop(0, k, 32)   | 0     | k                                       |
 *   | t / 8, t below 8 * m            | 0     | m                                       |
 *   | t % m                           | 0     | m, and what t is below                  |
 */
import type { AnyOp, Kernel, Op, Value } from "../../../ir/node.ts";
import { walkOps } from "../../../ir/traverse.ts";
import {
  ceilDivSize,
  divideSizeExactly,
  knownDivisor,
  multiplySizes,
  sameSize,
  sizeText,
} from "../../../ir/size.ts";
import type { Size } from "../../../ir/size.ts";
import type { Divisors } from "../../../layout/model/divisors.ts";

export interface Range {
  readonly least: number;
  readonly below: readonly Size[];
}

const unknown: Range = { least: -Infinity, below: [] };

type Binary = Op<"binary">;
type Rule = (ranges: Ranges, op: Binary) => Range;

export class Ranges {
  readonly divisors: Divisors;
  readonly #kernel: Kernel;
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #loops = new Map<Value, Op<"loop">>();
  readonly #known = new Map<Value, Range>();

  constructor(kernel: Kernel, definitions: ReadonlyMap<Value, AnyOp>, divisors: Divisors) {
    this.#kernel = kernel;
    this.#definitions = definitions;
    this.divisors = divisors;
    walkOps(kernel.body, (op) => {
      if (op.kind !== "loop") return;
      const [counter] = op.regions.body.parameters;
      if (counter !== undefined) this.#loops.set(counter, op);
    });
  }

  of(value: Value): Range {
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    // Nothing is known of a value while it is being worked out, as in a loop.
    this.#known.set(value, unknown);
    const range = this.#compute(value);
    this.#known.set(value, range);
    return range;
  }

  /** The value as a size, where it is one. */
  sizeOf(value: Value): Size | undefined {
    const op = this.#definitions.get(value);
    if (op?.kind === "constant") return this.divisors.constant(value);
    if (op?.kind === "dimension_size")
      return this.#kernel.dimensions.find(({ name }) => name === op.attributes.name);
    if (op?.kind === "grid_size") return this.#axis(op.attributes.axis)?.extent;
    if (op?.kind !== "binary") return undefined;
    const [left, right] = [this.sizeOf(op.operands.left), this.sizeOf(op.operands.right)];
    if (op.attributes.fn === "mul" && left !== undefined && right !== undefined)
      return multiplySizes(left, right);
    return op.attributes.fn === "div" && typeof right === "number" && right > 0
      ? this.#roundedUp(op.operands.left, right)
      : undefined;
  }

  /** (size + by − 1) / by. */
  #roundedUp(value: Value, by: number): Size | undefined {
    const op = this.#definitions.get(value);
    if (op?.kind !== "binary" || op.attributes.fn !== "add") return undefined;
    const size = this.sizeOf(op.operands.left);
    const rounds = this.divisors.constant(op.operands.right) === by - 1;
    return size !== undefined && rounds ? ceilDivSize(size, by) : undefined;
  }

  #axis(name: string) {
    return this.#kernel.grid.find((axis) => axis.name === name);
  }

  #compute(value: Value): Range {
    const loop = this.#loops.get(value);
    if (loop !== undefined) return this.#counter(loop);
    const size = this.sizeOf(value);
    if (typeof size === "number") return { least: size, below: [size + 1] };
    if (size !== undefined) return { least: 0, below: [] };
    const op = this.#definitions.get(value);
    if (op?.kind === "block_index") {
      const extent = this.#axis(op.attributes.axis)?.extent;
      return { least: 0, below: extent === undefined ? [] : [extent] };
    }
    if (op?.kind === "cluster_rank")
      return { least: 0, below: [this.#axis(op.attributes.axis)?.cluster ?? 1] };
    if (op?.kind === "thread_index") return { least: 0, below: [this.#kernel.threads.length] };
    if (op?.kind !== "binary") return unknown;
    return rules[op.attributes.fn]?.(this, op) ?? unknown;
  }

  #counter({ operands: { lower, upper, step } }: Op<"loop">): Range {
    if (this.of(step).least < 1) return unknown;
    const end = this.sizeOf(upper);
    const { least } = this.of(lower);
    return { least, below: end === undefined ? this.of(upper).below : [end] };
  }
}

function add(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const [a, b] = [ranges.of(left), ranges.of(right)];
  const below = [...sumsBelow(ranges, left, right), ...sumsBelow(ranges, right, left)];
  for (const bound of a.below)
    for (const other of b.below)
      if (typeof bound === "number" && typeof other === "number") below.push(bound + other - 1);
  return { least: a.least + b.least, below };
}

/** A multiple of g below a multiple of g stays below it when less than g is added. */
function sumsBelow(ranges: Ranges, left: Value, right: Value): readonly Size[] {
  const step = ranges.divisors.of(left);
  const small = ranges
    .of(right)
    .below.some((bound) => typeof bound === "number" && (step === 0 || bound <= step));
  if (!small) return [];
  return ranges
    .of(left)
    .below.filter((bound) => typeof bound !== "number" && knownDivisor(bound) % step === 0);
}

function subtract(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const [a, b] = [ranges.of(left), ranges.of(right)];
  const most = Math.min(...b.below.filter((bound) => typeof bound === "number")) - 1;
  return { least: a.least - most, below: b.least >= 0 ? a.below : [] };
}

function multiply(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const [a, b] = [ranges.of(left), ranges.of(right)];
  if (a.least < 0 || b.least < 0) return unknown;
  const least = a.least * b.least;
  for (const [factor, range] of [
    [ranges.sizeOf(right), a],
    [ranges.sizeOf(left), b],
  ] as const)
    if (factor !== undefined) return { least, below: multiplesBelow(range.below, factor) };
  return { least, below: [] };
}

function multiplesBelow(below: readonly Size[], factor: Size): readonly Size[] {
  return below.flatMap((bound): readonly Size[] => {
    if (typeof bound === "number" && typeof factor === "number") return [(bound - 1) * factor + 1];
    const scaled = multiplySizes(bound, factor);
    const whole = typeof bound !== "number" && bound.kind === "ceildiv" && bound.by === factor;
    return whole ? [scaled, bound.of] : [scaled];
  });
}

function divide(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const by = ranges.sizeOf(right);
  const { least, below } = ranges.of(left);
  if (least < 0 || by === undefined || by === 0) return unknown;
  const quotients = below.flatMap((bound): readonly Size[] => {
    const exact = divideSizeExactly(bound, by);
    if (exact !== undefined) return [exact];
    return typeof by === "number" && by > 0 ? [ceilDivSize(bound, by)] : [];
  });
  return { least: 0, below: quotients };
}

function remainder(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const by = ranges.sizeOf(right);
  const { least, below } = ranges.of(left);
  if (least < 0) return unknown;
  return { least: 0, below: by === undefined || by === 0 ? below : [by, ...below] };
}

function minimum(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const [a, b] = [ranges.of(left), ranges.of(right)];
  return { least: Math.min(a.least, b.least), below: [...a.below, ...b.below] };
}

function maximum(ranges: Ranges, { operands: { left, right } }: Binary): Range {
  const [a, b] = [ranges.of(left), ranges.of(right)];
  const both = a.below.filter((bound) => b.below.some((other) => sameSize(bound, other)));
  return { least: Math.max(a.least, b.least), below: both };
}

const rules: { readonly [F in Binary["attributes"]["fn"]]?: Rule } = {
  add,
  sub: subtract,
  mul: multiply,
  div: divide,
  rem: remainder,
  min: minimum,
  max: maximum,
};

/** The greatest value that the range allows, where that is a number. */
export function greatest({ below }: Range): number {
  return Math.min(...below.filter((bound) => typeof bound === "number"), Infinity) - 1;
}

/**
 * Whether `size` elements from an index on end at or before `end`: by numbers, or as a multiple of g below
 * a multiple of g leaves room for g more.
 */
export function endsWithin(
  range: Range & { readonly divisor: number },
  size: Size,
  end: Size,
): boolean {
  if (greatest(range) === 0 && sizeText(size) === sizeText(end)) return true;
  if (typeof size !== "number") return false;
  const { divisor } = range;
  const most = greatest(range);
  const last = divisor === 0 ? 0 : Math.floor(most / divisor) * divisor;
  if (typeof end === "number" && last + size <= end) return true;
  if (typeof end === "number" || divisor === 0 || size > divisor) return false;
  return knownDivisor(end) % divisor === 0 && range.below.some((bound) => sameSize(bound, end));
}
