/**
 * A loop with copies ahead. Blocks lie in rings of `depth` stages; each stage has a barrier on which all copies of a step
 * arrive. With a depth of 3:
 *
 *   step                     0   1   2   3
 *   reads slot               0   1   2   0
 *   copies begin   0  1      2   3   4   5       two steps before the loop, in the loop always two ahead,
 *   fills slot     0  1      2   0   1   2       into the slot that was read one step ago
 *
 * Where sums stay in flight, the products of one step run on while the next waits for its blocks, and a step refills
 * once the products before its own are over. Where they do not, a step refills first and computes then. What is written
 * is what `pipeline` of the language would have recorded.
 */
import { i32 } from "../../formats/dtype.ts";
import { noSlots, opOf } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Value } from "../../ir/node.ts";
import {
  changeRegions,
  substituteOperands,
  substituteRegion,
} from "../../ir/rewrite/substitute.ts";
import { yieldedValues } from "../../ir/traverse.ts";
import { scalarType } from "../../ir/types.ts";
import { tileOf } from "../../layout/model/product-instructions.ts";
import type { CopiedLoad, LoopPlan } from "./plan.ts";
import { Writer } from "./writer.ts";

/** The loop of a plan with room for `depth` steps, as an op that has the same results. */
export function expandLoop(kernel: Kernel, plan: LoopPlan, depth: number): AnyOp {
  const { results, location } = plan.loop;
  const writer = new Writer(kernel, location);
  const body = writer.region([], () => new Expansion(writer, plan, depth).write());
  const regions = Object.freeze({ body });
  const parts = {
    kind: "scoped",
    operands: noSlots,
    attributes: noSlots,
    regions,
    location,
  } as const;
  return opOf(parts, results);
}

/** Blocks of one load. */
interface Ring {
  readonly copied: CopiedLoad;
  readonly memory: Value;
}

class Expansion {
  readonly #writer: Writer;
  readonly #plan: LoopPlan;
  readonly #depth: number;
  /** Which carries are sums in flight. */
  readonly #sums: ReadonlySet<number>;
  /** Those of them that lie in tensor memory, by their carries, and the barrier of each stage that their products are told by. */
  readonly #tensors = new Map<number, Value>();
  readonly #multiplied: Value | undefined;
  /** Rings of the factors that are computed. */
  readonly #stored = new Map<Value, Value>();
  readonly #rings: readonly Ring[];
  readonly #full: Value;
  /** What lies between the index of a step and that of the step which is copied in it. */
  readonly #ahead: Value;

  constructor(writer: Writer, plan: LoopPlan, depth: number) {
    this.#writer = writer;
    this.#plan = plan;
    this.#depth = depth;
    this.#sums = new Set(plan.products.map(({ carry }) => carry));
    this.#rings = plan.copies.map((copied) => {
      const { name, type } = copied;
      const shape = [depth, ...type.shape];
      const attributes = {
        space: "smem",
        dtype: type.dtype,
        shape,
        name: `${name}_ahead`,
      } as const;
      return { copied, memory: writer.one("alloc", {}, attributes) };
    });
    for (const { carry, dot, sums } of plan.products) {
      const [type] = dot.results.map((result) => result.type);
      if (sums !== "tensor" || type?.kind !== "tile") continue;
      const attributes = { dtype: type.dtype, shape: type.shape, name: "sums" };
      this.#tensors.set(carry, writer.one("alloc_tmem", {}, attributes));
    }
    for (const value of plan.products.flatMap(({ stored }) => stored)) {
      const { dtype, shape } = tileOf(value);
      const attributes = {
        space: "smem",
        dtype,
        shape: [depth, ...shape],
        name: "factor",
      } as const;
      this.#stored.set(value, writer.one("alloc", {}, attributes));
    }
    const tells = { count: depth, arrivals: 1, name: "multiplied" };
    this.#multiplied =
      this.#tensors.size === 0 ? undefined : writer.one("alloc_barrier", {}, tells);
    const barriers = { count: depth, arrivals: plan.copies.length, name: "landed" };
    this.#full = writer.one("alloc_barrier", {}, barriers);
    this.#ahead = writer.number((depth - 1) * plan.step);
  }

  /** Everything; gives the results of the loop. */
  write(): readonly Value[] {
    const writer = this.#writer;
    const { lower, upper, step } = this.#plan.loop.operands;
    const filled = this.#copyFirst();
    const zero = writer.number(0);
    const initial = [...this.#begun(), zero, zero, filled];
    const types = [lower, ...initial].map(({ type }) => type);
    const body = writer.region(types, (parameters) => this.#step(parameters));
    const results = writer.add("loop", { lower, upper, step, initial }, {}, { body });
    this.#waitLast(results.at(-3));
    return results.slice(0, -3).map((value, carry) => {
      if (!this.#sums.has(carry)) return value;
      const ref = this.#tensors.get(carry);
      if (ref !== undefined) return writer.one("tmem_load", { ref }, {});
      return writer.one("wgmma_wait", { accumulator: value }, { pending: 0, gives: "tile" });
    });
  }

  /** What is carried at first, with accumulators for the sums in flight. */
  #begun(): readonly Value[] {
    return this.#plan.loop.operands.initial.map((initial, carry) => {
      if (!this.#sums.has(carry) || initial.type.kind !== "tile") return initial;
      const ref = this.#tensors.get(carry);
      if (ref !== undefined) {
        this.#writer.add("tmem_store", { ref, value: initial }, {}, {});
        return this.#writer.number(0);
      }
      const { dtype, shape } = initial.type;
      return this.#writer.one("accumulator", { initial }, { dtype, shape });
    });
  }

  /** Starts the copies of the first steps; gives the slot that is filled next. */
  #copyFirst(): Value {
    const writer = this.#writer;
    const { lower, upper, step } = this.#plan.loop.operands;
    // Differences of numbers from 0 on do not leave the integers, where the sum of an index and a distance might.
    const length = writer.binary("sub", writer.binary("max", upper, lower), lower);
    const end = writer.binary("add", lower, writer.binary("min", length, this.#ahead));
    const body = writer.region([lower.type, scalarType(i32)], ([index, slot]) => {
      if (index === undefined || slot === undefined) throw new Error("an index and a slot");
      this.#copyStep(index, slot);
      return [writer.following(slot, this.#depth).slot];
    });
    const operands = { lower, upper: end, step, initial: [writer.number(0)] };
    const [filled] = writer.add("loop", operands, {}, { body });
    if (filled === undefined) throw new Error("a loop gives what it carries");
    return filled;
  }

  /** The body of the loop; gives what it yields. */
  #step(parameters: readonly Value[]): readonly Value[] {
    const writer = this.#writer;
    const [index, [slot, phase, filling]] = [parameters[0], parameters.slice(-3)];
    if (index === undefined || slot === undefined || phase === undefined || filling === undefined)
      throw new Error("an index, a slot, its phase, and the slot to fill");
    writer.add("barrier_wait", { barrier: this.#full, index: slot, parity: phase }, {}, {});
    const flies = this.#sums.size > 0;
    if (!flies) this.#refill(index, filling);
    const yielded = this.#compute(parameters, slot);
    if (this.#multiplied !== undefined) this.#tell(index, slot);
    const handed = flies && this.#tensors.size === 0 ? this.#wait(yielded) : yielded;
    if (flies) this.#refill(index, filling);
    const next = writer.following(slot, this.#depth);
    const wraps = writer.one("cast", { source: next.wraps }, { dtype: i32 });
    const turned = writer.binary("xor", phase, wraps);
    return [...handed, next.slot, turned, writer.following(filling, this.#depth).slot];
  }

  /** What the body computes, with the blocks of a slot in place of what it loaded; gives what it yields. */
  #compute(parameters: readonly Value[], slot: Value): readonly Value[] {
    const { body } = this.#plan.loop.regions;
    const substitution = new Map<Value, Value>();
    body.parameters.forEach((old, position) => {
      const parameter = parameters[position];
      if (parameter !== undefined) substitution.set(old, parameter);
    });
    const windows = new Map<Value, Value>();
    const flying = new Set<AnyOp>(this.#plan.products.map(({ dot }) => dot));
    for (const op of body.ops.slice(0, -1)) {
      const [result] = op.results;
      const ring = this.#rings.find(({ copied }) => copied.load === op);
      if (ring !== undefined && result !== undefined) {
        const ref = this.#block(ring, slot);
        windows.set(result, ref);
        // Nobody uses it where products read the window themselves.
        substitution.set(result, this.#writer.one("load", { ref, indices: [] }, {}));
      } else if (op.kind === "dot" && flying.has(op) && result !== undefined)
        substitution.set(result, this.#product(op, substitution, windows, slot));
      else
        this.#writer.append(
          changeRegions(substituteOperands(op, substitution), (region) =>
            substituteRegion(region, substitution),
          ),
        );
    }
    return yieldedValues(body).map((value) => substitution.get(value) ?? value);
  }

  /** The product, where its sum lies; gives what is carried of that. */
  #product(
    dot: Op<"dot">,
    substitution: ReadonlyMap<Value, Value>,
    windows: ReadonlyMap<Value, Value>,
    slot: Value,
  ): Value {
    const { carry } = this.#plan.products.find((each) => each.dot === dot) ?? { carry: -1 };
    const sums = this.#tensors.get(carry);
    if (sums === undefined) return this.#multiply(dot, substitution, windows);
    const factor = (value: Value): Value =>
      windows.get(value) ??
      this.#storedFactor(value, substitution, slot) ??
      this.#turnedWindow(value, windows);
    const [a, b] = [factor(dot.operands.left), factor(dot.operands.right)];
    if (this.#stored.has(dot.operands.left) || this.#stored.has(dot.operands.right))
      this.#writer.add("proxy_fence", {}, { space: "smem" }, {});
    this.#writer.add("tcgen05_mma", { sums, a, b }, {}, {});
    return this.#writer.number(0);
  }

  /** A computed factor in the slot of its ring, where products read it; undefined where it is none. */
  #storedFactor(
    value: Value,
    substitution: ReadonlyMap<Value, Value>,
    slot: Value,
  ): Value | undefined {
    const memory = this.#stored.get(value);
    if (memory === undefined) return undefined;
    const ref = this.#writer.slotOf(memory, slot);
    const stored = substitution.get(value) ?? value;
    this.#writer.add("store", { ref, value: stored, indices: [] }, {}, {});
    return ref;
  }

  /** The block that a factor is the transpose of, turned. */
  #turnedWindow(value: Value, windows: ReadonlyMap<Value, Value>): Value {
    const op = this.#plan.loop.regions.body.ops.find(({ results }) => results.includes(value));
    const ref = op?.kind === "transpose" ? windows.get(op.operands.source) : undefined;
    if (ref === undefined) throw new Error("a product of copied blocks");
    return this.#writer.one("transpose_ref", { ref }, { permutation: [1, 0] });
  }

  #multiply(
    { operands }: Op<"dot">,
    substitution: ReadonlyMap<Value, Value>,
    windows: ReadonlyMap<Value, Value>,
  ): Value {
    const { left, right } = operands;
    const accumulator = operands.accumulator && substitution.get(operands.accumulator);
    const b = windows.get(right);
    if (accumulator === undefined || b === undefined) throw new Error("a sum of copied blocks");
    const a = windows.get(left) ?? substitution.get(left) ?? left;
    return this.#writer.one("wgmma", { accumulator, a, b }, {});
  }

  /** A commit arrives when the products of this step are over; those of the step before are from here on. */
  #tell(index: Value, slot: Value): void {
    const writer = this.#writer;
    const barrier = this.#multiplied;
    if (barrier === undefined) return;
    writer.add("tcgen05_commit", { barrier, index: slot }, {}, {});
    this.#waitIf(this.#plan.loop.operands.lower, index, slot);
  }

  /** The products of the last step, if there was one. */
  #waitLast(behind: Value | undefined): void {
    const { lower, upper } = this.#plan.loop.operands;
    if (behind !== undefined) this.#waitIf(lower, upper, behind);
  }

  /** Waits for the products of the slot before another where one number is less than another. */
  #waitIf(left: Value, right: Value, behind: Value): void {
    const writer = this.#writer;
    const barrier = this.#multiplied;
    if (barrier === undefined) return;
    const condition = writer.one("compare", { left, right }, { predicate: "lt" });
    const then = writer.region([], () => {
      const index = writer.preceding(behind, this.#depth);
      writer.add("barrier_wait", { barrier, index }, {}, {});
      return [];
    });
    writer.add("if", { condition }, {}, { then, otherwise: writer.region([], () => []) });
  }

  /** The products of the step before are over from here on; those of this one run on. */
  #wait(yielded: readonly Value[]): readonly Value[] {
    const [first] = this.#sums;
    const attributes = { pending: this.#sums.size, gives: "accumulator" } as const;
    return yielded.map((value, carry) =>
      carry === first ? this.#writer.one("wgmma_wait", { accumulator: value }, attributes) : value,
    );
  }

  /** Starts the copies of the step that lies ahead, if there is one. */
  #refill(index: Value, slot: Value): void {
    const writer = this.#writer;
    // What lanes read themselves, products have not waited for.
    if (this.#lanesRead()) writer.add("proxy_fence", {}, { space: "smem" }, {});
    const left = writer.binary("sub", this.#plan.loop.operands.upper, index);
    const condition = writer.one("compare", { left, right: this.#ahead }, { predicate: "gt" });
    const then = writer.region([], () => {
      this.#copyStep(writer.binary("add", index, this.#ahead), slot);
      return [];
    });
    const otherwise = writer.region([], () => []);
    writer.add("if", { condition }, {}, { then, otherwise });
  }

  /** Whether a block is read otherwise than by products in flight. */
  #lanesRead(): boolean {
    const { copies, products } = this.#plan;
    const read = new Set(
      products.flatMap(({ dot: { operands } }) => [operands.left, operands.right]),
    );
    return copies.some(({ load }) => !load.results.every((result) => read.has(result)));
  }

  /** The copies of one step into a slot. */
  #copyStep(index: Value, slot: Value): void {
    const writer = this.#writer;
    const [parameter] = this.#plan.loop.regions.body.parameters;
    if (parameter === undefined) throw new Error("a loop has an index");
    const made = new Map<Value, Value>([[parameter, index]]);
    for (const { copied, memory } of this.#rings) {
      const { location } = writer;
      writer.location = copied.load.location;
      for (const op of copied.address)
        if (!op.results.every((result) => made.has(result))) writer.again(op, made);
      const source = made.get(copied.window) ?? copied.window;
      const operands = { source, destination: writer.slotOf(memory, slot) };
      const landing = { barrier: this.#full, index: slot };
      const attributes = { fill: "zero", multicast: [], reduction: "none" } as const;
      writer.add("copy_async", { ...operands, ...landing }, attributes, {});
      writer.location = location;
    }
  }

  /** The block of a slot, turned to be what was loaded. */
  #block({ copied, memory }: Ring, slot: Value): Value {
    return copied.transposes.reduce(
      (ref, { attributes }) => this.#writer.one("transpose_ref", { ref }, attributes),
      this.#writer.slotOf(memory, slot),
    );
  }
}
