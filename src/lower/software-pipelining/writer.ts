/** Writes the ops of an expansion: numbers, slots of a ring, and ops made once more of other operands. */
import { i32 } from "../../formats/dtype.ts";
import { Builder } from "../../ir/builder.ts";
import type { AnyOp, Kernel, Region, Value } from "../../ir/node.ts";
import type { OpAttributes, OpKind, OpOperands, OpRegions } from "../../ir/ops.ts";
import { nextValueId } from "../../ir/rewrite/analysis.ts";
import { substituteOperands } from "../../ir/rewrite/substitute.ts";
import type { Type } from "../../ir/types.ts";
import type { Location } from "../../support/location.ts";

/** A place in a ring, and whether the next is its beginning. */
export interface NextSlot {
  readonly slot: Value;
  readonly wraps: Value;
}

export class Writer {
  /** Of the ops that are written. */
  location: Location;
  readonly #builder: Builder;

  constructor(kernel: Kernel, location: Location) {
    this.location = location;
    this.#builder = new Builder(kernel, nextValueId(kernel));
  }

  add<K extends OpKind>(
    kind: K,
    operands: OpOperands<K>,
    attributes: OpAttributes<K>,
    regions: OpRegions<K>,
  ): readonly Value[] {
    return this.#builder.add(kind, operands, attributes, regions, this.location);
  }

  /** An op without regions and with one result. */
  one<K extends OpKind>(kind: K, operands: OpOperands<K>, attributes: OpAttributes<K>): Value {
    const [result] = this.add(kind, operands, attributes, {} as OpRegions<K>);
    if (result === undefined) throw new Error(`${kind} has no result`);
    return result;
  }

  append(op: AnyOp): void {
    this.#builder.append(op);
  }

  /** The op of other operands, as they are mapped; its results are mapped in turn. */
  again(op: AnyOp, mapped: Map<Value, Value>): void {
    const { kind, operands, attributes, regions } = substituteOperands(op, mapped);
    // The op's own parts fit its kind, which TypeScript cannot see for a union.
    const results = this.add(kind, operands, attributes, regions);
    op.results.forEach((old, position) => {
      const result = results[position];
      if (result !== undefined) mapped.set(old, result);
    });
  }

  region(
    types: readonly Type[],
    write: (parameters: readonly Value[]) => readonly Value[],
  ): Region {
    const parameters = this.#builder.openRegion(types);
    return this.#builder.closeRegion(write(parameters), this.location);
  }

  number(value: number): Value {
    return this.one("constant", {}, { value, dtype: i32, shape: [] });
  }

  binary(fn: OpAttributes<"binary">["fn"], left: Value, right: Value): Value {
    return this.one("binary", { left, right }, { fn });
  }

  /** The window of one slot. */
  slotOf(ref: Value, slot: Value): Value {
    if (ref.type.kind !== "ref") throw new Error("a ring is memory");
    const [, ...shape] = ref.type.shape;
    const zero = this.number(0);
    const offsets = [slot, ...shape.map(() => zero)];
    return this.one("slice_ref", { ref, offsets }, { sizes: [1, ...shape], dropped: [0] });
  }

  /** The slot before another. */
  preceding(slot: Value, depth: number): Value {
    const operands = { left: slot, right: this.number(0) };
    const condition = this.one("compare", operands, { predicate: "eq" });
    const ifFalse = this.binary("sub", slot, this.number(1));
    return this.one("select", { condition, ifTrue: this.number(depth - 1), ifFalse }, {});
  }

  /** The slot behind another, without a division. */
  following(slot: Value, depth: number): NextSlot {
    const next = this.binary("add", slot, this.number(1));
    const operands = { left: next, right: this.number(depth) };
    const wraps = this.one("compare", operands, { predicate: "eq" });
    const choice = { condition: wraps, ifTrue: this.number(0), ifFalse: next };
    return { slot: this.one("select", choice, {}), wraps };
  }
}
