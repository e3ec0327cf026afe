/**
 * Which windows on global memory are disjoint, however the kernel is launched. Between stores to disjoint windows no barrier is needed:
 *
 *   out.at(row, slice(first, 64))                    from first
 *   out.at(row, slice(first.add(64), 64))            from first + 64: disjoint
 *   out.at(row, slice(second, 64))                   second may be anything
 *
 * Offsets are linear sums of opaque values. Integers wrap around, so sums are taken modulo 2³², and windows are disjoint only where they are
 * in both directions. Elements narrower than a byte share bytes with others, and strides that the launch decides may reach the same element
 * twice: of arrays with strides of their own the ranges of memory are compared.
 *
 * The result is verified by a method that knows no sums (`sampled-windows.ts`).
 */
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import type { Size } from "../../ir/size.ts";
import { isWindow } from "../../ir/traits.ts";
import { refOf } from "../../ir/traverse.ts";
import { dtypes } from "../../formats/dtype.ts";

/** A constant, and the factors of values that are added to it. */
interface Sum {
  readonly constant: bigint;
  readonly factors: ReadonlyMap<Value, bigint>;
}

/** Elements of one array that an access may touch. */
export interface Box {
  /** Whether it has no element in common with another one of the array, found by the same finder. */
  isApart(other: this): boolean;
}

export interface BoxFinder {
  /** A box that holds the whole window; undefined where that may be anywhere in its array. */
  of(window: Value): Box | undefined;
}

/** From an offset on each axis, so many. */
class SummedBox implements Box {
  readonly offsets: readonly Sum[];
  readonly sizes: readonly number[];
  /** Elements from one to the next along each axis, of arrays that do not lie in row-major order. */
  readonly strides: readonly Size[] | undefined;

  constructor(
    offsets: readonly Sum[],
    sizes: readonly number[],
    strides: readonly Size[] | undefined,
  ) {
    this.offsets = offsets;
    this.sizes = sizes;
    this.strides = strides;
  }

  isApart(other: SummedBox): boolean {
    return this.offsets.some((offset, axis) => {
      const there = other.offsets[axis];
      const apart = there && distance(offset, there);
      const size = Math.max(this.sizes[axis] ?? 1, other.sizes[axis] ?? 1);
      if (apart === undefined || apart < size) return false;
      return this.strides === undefined || liesApart(this, other, axis, apart);
    });
  }
}

/** Finds boxes by what their offsets are sums of. */
export class SummedBoxes implements BoxFinder {
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #strides: ReadonlyMap<Value, readonly Size[] | undefined>;
  readonly #sums = new Map<Value, Sum>();

  constructor({ parameters }: Kernel, definitions: ReadonlyMap<Value, AnyOp>) {
    this.#definitions = definitions;
    this.#strides = new Map(parameters.map(({ value, strides }) => [value, strides]));
  }

  of(window: Value): SummedBox | undefined {
    const op = this.#definitions.get(window);
    if (op === undefined || !isWindow(op)) return undefined;
    const { ref } = op.operands;
    const within = this.of(ref);
    if (within !== undefined || op.kind !== "slice_ref") return within;
    const isArray = this.#windowed(ref) === undefined;
    if (!isArray || refOf(ref).space !== "gmem" || refOf(ref).dtype.bits < 8) return undefined;
    const { sizes } = op.attributes;
    if (!sizes.every((size) => typeof size === "number")) return undefined;
    const offsets = op.operands.offsets.map((offset) => this.#sum(offset));
    return new SummedBox(offsets, sizes, this.#strides.get(ref));
  }

  #windowed(ref: Value): Value | undefined {
    const op = this.#definitions.get(ref);
    return op !== undefined && isWindow(op) ? op.operands.ref : undefined;
  }

  #sum(value: Value): Sum {
    const known = this.#sums.get(value) ?? this.#summed(value);
    this.#sums.set(value, known);
    return known;
  }

  #summed(value: Value): Sum {
    const op = this.#definitions.get(value);
    const own = { constant: 0n, factors: new Map([[value, 1n]]) };
    if (op === undefined || value.type.kind !== "scalar" || value.type.dtype !== dtypes.i32)
      return own;
    if (op.kind === "constant")
      return { constant: BigInt(op.attributes.value), factors: new Map() };
    if (op.kind !== "binary") return own;
    const { fn } = op.attributes;
    if (fn !== "add" && fn !== "sub" && fn !== "mul") return own;
    const [left, right] = [this.#sum(op.operands.left), this.#sum(op.operands.right)];
    if (fn !== "mul") return combined(left, right, fn === "add" ? 1n : -1n);
    if (left.factors.size === 0) return combined(nothing, right, left.constant);
    return right.factors.size === 0 ? combined(nothing, left, right.constant) : own;
  }
}

const nothing: Sum = { constant: 0n, factors: new Map() };
const word = 32;

/** The first sum, and the second so many times. */
function combined(left: Sum, right: Sum, times: bigint): Sum {
  const factors = new Map(left.factors);
  for (const [value, factor] of right.factors) {
    const all = BigInt.asIntN(word, (factors.get(value) ?? 0n) + factor * times);
    if (all === 0n) factors.delete(value);
    else factors.set(value, all);
  }
  return { constant: BigInt.asIntN(word, left.constant + right.constant * times), factors };
}

/** How far apart offsets are at least, on the shorter way around, or undefined. */
function distance(left: Sum, right: Sum): number | undefined {
  const { constant, factors } = combined(left, right, -1n);
  return factors.size === 0 ? Math.abs(Number(constant)) : undefined;
}

/** Whether boxes that differ in their offsets along one axis alone lie on stretches of memory that do not meet. */
function liesApart(left: SummedBox, right: SummedBox, along: number, apart: number): boolean {
  let stretch = 1;
  for (const [axis, stride] of (left.strides ?? []).entries()) {
    const [here, there] = [left.offsets[axis], right.offsets[axis]];
    const size = Math.max(left.sizes[axis] ?? 1, right.sizes[axis] ?? 1);
    if (axis !== along && (!here || !there || distance(here, there) !== 0)) return false;
    if (size === 1 && axis !== along) continue;
    if (typeof stride !== "number") return false;
    stretch += (size - 1) * stride;
  }
  const step = left.strides?.[along];
  return typeof step === "number" && apart * step >= stretch;
}
