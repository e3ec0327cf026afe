/**
 * Integers and conditions that are the same number each time a warp comes to them: made of constants, of the index of its thread and of its
 * own. They are computed by the language's own arithmetic:
 *
 *   warp.rem(2).eq(0)               known for each warp
 *   warp.eq(0).and(n.gt(4))         known of the warps for which the first half is false
 *   i.rem(2).eq(0)                  not known: blocks differ
 */
import {
  binaryElements,
  compareElements,
  unaryElements,
} from "../formats/arithmetic/elementwise.ts";
import { bool, i32 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import type { AnyOp, Op, Value } from "./node.ts";

/** An i32, or a truth as 0 or 1; undefined where it may be either. */
type Known = number | undefined;

/** What a truth decides by itself, whatever the other one is. */
const deciding: { readonly [fn: string]: number } = { and: 0, or: 1 };

export class WarpScalars {
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #thread: number;
  readonly #given: (value: Value) => Known;
  readonly #found = new Map<Value, Known>();

  /** `given` are numbers that no op makes, such as the index of a warp. */
  constructor(
    definitions: ReadonlyMap<Value, AnyOp>,
    thread: number,
    given: (value: Value) => Known,
  ) {
    this.#definitions = definitions;
    this.#thread = thread;
    this.#given = given;
  }

  of(value: Value): Known {
    const dtype = formatOf(value);
    if (dtype === undefined) return undefined;
    const op = this.#definitions.get(value);
    if (op === undefined) return this.#given(value);
    if (this.#found.has(value)) return this.#found.get(value);
    const known = this.#computed(op, dtype);
    this.#found.set(value, known);
    return known;
  }

  #computed(op: AnyOp, dtype: DType): Known {
    if (op.kind === "constant") return Number(op.attributes.value);
    if (op.kind === "thread_index") return this.#thread;
    if (op.kind === "unary") {
      const source = this.of(op.operands.source);
      if (source === undefined) return undefined;
      const target = lane(dtype, 0);
      unaryElements(op.attributes.fn, dtype, lane(dtype, source), target);
      return target[0];
    }
    if (op.kind === "binary") return this.#combined(op, dtype);
    return op.kind === "compare" ? this.#compared(op) : undefined;
  }

  #combined({ attributes: { fn }, operands }: Op<"binary">, dtype: DType): Known {
    const [left, right] = [this.of(operands.left), this.of(operands.right)];
    const decided = dtype === bool ? deciding[fn] : undefined;
    if (decided !== undefined && (left === decided || right === decided)) return decided;
    if (left === undefined || right === undefined) return undefined;
    const target = lane(dtype, 0);
    binaryElements(fn, dtype, lane(dtype, left), lane(dtype, right), target);
    return target[0];
  }

  #compared({ attributes: { predicate }, operands }: Op<"compare">): Known {
    const from = formatOf(operands.left);
    const [left, right] = [this.of(operands.left), this.of(operands.right)];
    if (from === undefined || left === undefined || right === undefined) return undefined;
    const target = new Uint8Array(1);
    compareElements(predicate, from, lane(from, left), lane(from, right), target);
    return target[0];
  }
}

/** The format of a scalar that is looked at. */
function formatOf({ type }: Value): DType | undefined {
  const isKnown = type.kind === "scalar" && (type.dtype === i32 || type.dtype === bool);
  return isKnown ? type.dtype : undefined;
}

function lane(dtype: DType, value: number): Int32Array | Uint8Array {
  return dtype === bool ? Uint8Array.of(value) : Int32Array.of(value);
}
