/**
 * Numbers that divide a scalar whatever its value at run time: how far the start of a window is aligned.
 *
 *   i.mul(64)              64
 *   i.mul(64).add(16)      16
 *   step.rem(2)            1
 *   the index of loop(0, n, 32)   32
 *
 * 0 divides by everything and has the divisor 0.
 */
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { walkOps } from "../../ir/traverse.ts";

const most = 2 ** 20;

export function greatestCommonDivisor(left: number, right: number): number {
  let [a, b] = [Math.abs(left), Math.abs(right)];
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}

export class Divisors {
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #counters = new Map<Value, AnyOp & { readonly kind: "loop" }>();
  readonly #multiples: ReadonlyMap<string, number>;
  readonly #known = new Map<Value, number>();

  constructor(kernel: Kernel, definitions: ReadonlyMap<Value, AnyOp>) {
    this.#definitions = definitions;
    this.#multiples = new Map(kernel.dimensions.map(({ name, multipleOf }) => [name, multipleOf]));
    walkOps(kernel.body, (op) => {
      if (op.kind !== "loop") return;
      const [counter] = op.regions.body.parameters;
      if (counter !== undefined) this.#counters.set(counter, op);
    });
  }

  /** The value where it is a constant. */
  constant(value: Value): number | undefined {
    const op = this.#definitions.get(value);
    if (op?.kind !== "constant" || value.type.kind !== "scalar") return undefined;
    return Number(op.attributes.value);
  }

  of(value: Value): number {
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    // A value that is being worked out, as in a loop, is known to be divisible by 1 at least.
    this.#known.set(value, 1);
    const divisor = Math.min(most, this.#compute(value));
    this.#known.set(value, divisor);
    return divisor;
  }

  #compute(value: Value): number {
    const loop = this.#counters.get(value);
    if (loop !== undefined)
      return greatestCommonDivisor(this.of(loop.operands.lower), this.of(loop.operands.step));
    const op = this.#definitions.get(value);
    if (op?.kind === "constant") return Math.abs(Number(op.attributes.value));
    if (op?.kind === "dimension_size") return this.#multiples.get(op.attributes.name) ?? 1;
    if (op?.kind === "cast") return this.of(op.operands.source);
    if (op?.kind !== "binary") return 1;
    const [left, right] = [this.of(op.operands.left), this.of(op.operands.right)];
    if (op.attributes.fn === "mul") return left * right;
    const keeps = ["add", "sub", "rem", "min", "max"].includes(op.attributes.fn);
    return keeps ? greatestCommonDivisor(left, right) : 1;
  }
}
