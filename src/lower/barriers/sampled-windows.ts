/**
 * Which windows are disjoint, found by sampling: how the verifier checks what `disjoint-windows.ts` has decided. Every value of which nothing is known
 * gets random integers, one for each sample, and offsets are computed from them as the kernel would:
 *
 *   sample                       0     1     2   …
 *   first                      713   -42  9001   …
 *   first.add(64)              777    22  9065   …      64 behind it in every sample: windows of 64 elements are disjoint
 *   second                    -318   610    77   …      another distance in every sample: nothing is known
 *
 * Distances are sums of products of these integers modulo 2³². One that is not the same for all integers differs in at least half of the
 * samples on average, so that a wrong one agrees in all of them at most once in 32,768 times; it must also have been decided.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import type { Size } from "../../ir/size.ts";
import { windowedBy } from "../../ir/traits.ts";
import { refOf } from "../../ir/traverse.ts";
import { Random } from "../../support/random.ts";
import type { Box, BoxFinder } from "./disjoint-windows.ts";

const tries = 16;
const around = 2 ** 32;

interface Axis {
  /** Where the window begins, in each try. */
  readonly starts: Int32Array;
  readonly size: number;
  /** Elements of memory from one index to the next; undefined where arrays lie in row-major order. */
  readonly stride: Size | undefined;
}

class TriedBox implements Box {
  readonly axes: readonly Axis[];

  constructor(axes: readonly Axis[]) {
    this.axes = axes;
  }

  isApart(other: TriedBox): boolean {
    const pairs = this.axes.map((here, axis): Pair => {
      const there = other.axes[axis];
      if (there === undefined) throw new Error("windows of one array have the same axes");
      return { here, there, gap: steadyGap(here.starts, there.starts) };
    });
    // In row-major order windows are apart if they are along any axis.
    if (pairs.every(({ here }) => here.stride === undefined)) return pairs.some(skips);
    return pairs.some(skips) && stretchesApart(pairs);
  }
}

/** An axis of two windows, and how far behind the first one the second begins: the same in all tries, or unknown. */
interface Pair {
  readonly here: Axis;
  readonly there: Axis;
  readonly gap: number | undefined;
}

/** Modulo 2³², from 0. */
function steadyGap(from: Int32Array, to: Int32Array): number | undefined {
  const gap = ((to[0] as number) - (from[0] as number)) >>> 0;
  for (let each = 1; each < tries; each += 1)
    if (((to[each] as number) - (from[each] as number)) >>> 0 !== gap) return undefined;
  return gap;
}

/** Whether each window ends before the other begins, on the way around all integers. */
function skips({ here, there, gap }: Pair): boolean {
  return gap !== undefined && gap >= here.size && around - gap >= there.size;
}

/** Whether no element of one window can lie at the address of one of the other, wherever integers wrapped around. */
function stretchesApart(pairs: readonly Pair[]): boolean {
  let distances: readonly (readonly [least: bigint, most: bigint])[] = [[0n, 0n]];
  for (const { here, there, gap } of pairs) {
    const fixed = here.size === 1 && there.size === 1 && gap === 0;
    if (fixed) continue;
    const { stride } = here;
    if (gap === undefined || typeof stride !== "number") return false;
    const gaps = gap === 0 ? [0] : [gap, gap - around];
    distances = distances.flatMap(([least, most]) =>
      gaps.map((each): [bigint, bigint] => [
        least + BigInt(each - (here.size - 1)) * BigInt(stride),
        most + BigInt(each + (there.size - 1)) * BigInt(stride),
      ]),
    );
  }
  return distances.every(([least, most]) => least > 0n || most < 0n);
}

/** Finds boxes by integers that are tried. */
export class SampledBoxes implements BoxFinder {
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #strides: ReadonlyMap<Value, readonly Size[] | undefined>;
  readonly #tried = new Map<Value, Int32Array>();
  readonly #random = new Random(1);

  constructor({ parameters }: Kernel, definitions: ReadonlyMap<Value, AnyOp>) {
    this.#definitions = definitions;
    this.#strides = new Map(parameters.map(({ value, strides }) => [value, strides]));
  }

  of(window: Value): TriedBox | undefined {
    // The first window that was cut from the array holds all that were cut from it.
    let first: AnyOp | undefined;
    let ref = window;
    for (let op = this.#definitions.get(ref); op !== undefined; op = this.#definitions.get(ref)) {
      const outer = windowedBy(op);
      if (outer === undefined) break;
      first = op;
      ref = outer;
    }
    if (first?.kind !== "slice_ref") return undefined;
    const { space, dtype } = refOf(ref);
    // Of shared memory others know the bytes, and elements narrower than one share them.
    if (space !== "gmem" || dtype.bits < 8) return undefined;
    const strides = this.#strides.get(ref);
    const axes: Axis[] = [];
    for (const [axis, offset] of first.operands.offsets.entries()) {
      const size = first.attributes.sizes[axis];
      if (typeof size !== "number") return undefined;
      axes.push({ starts: this.#integers(offset), size, stride: strides?.[axis] });
    }
    return new TriedBox(axes);
  }

  #integers(value: Value): Int32Array {
    const known = this.#tried.get(value);
    if (known !== undefined) return known;
    const found =
      this.#computed(value) ?? Int32Array.from({ length: tries }, () => this.#random.bits());
    this.#tried.set(value, found);
    return found;
  }

  /** What the kernel would compute; undefined where that is not looked into. */
  #computed(value: Value): Int32Array | undefined {
    const op = this.#definitions.get(value);
    if (op === undefined || value.type.kind !== "scalar" || value.type.dtype !== dtypes.i32)
      return undefined;
    if (op.kind === "constant") return new Int32Array(tries).fill(Number(op.attributes.value));
    const compute = op.kind === "binary" ? arithmetic[op.attributes.fn] : undefined;
    if (op.kind !== "binary" || compute === undefined) return undefined;
    const right = this.#integers(op.operands.right);
    return this.#integers(op.operands.left).map((left, each) =>
      compute(left, right[each] as number),
    );
  }
}

/** Of 32 bits; an Int32Array drops all others. */
const arithmetic: { readonly [fn: string]: (left: number, right: number) => number } = {
  add: (left, right) => left + right,
  sub: (left, right) => left - right,
  mul: Math.imul,
};
