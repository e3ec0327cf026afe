/**
 * What memory each op touches, and who does it.
 *
 *   | op                       | memory             | by       | proxy   |
 *   |--------------------------|--------------------|----------|---------|
 *   | load, store, atomic      | its window         | lanes    | generic |
 *   | copyAsync, tensor map    | both windows       | one lane | async   |
 *   | copyAsync, otherwise     | both windows       | lanes    | generic |
 *   | wgmma, dot by wgmma      | its operands       | lanes    | async   |
 *   | conversion, reduction …  | its scratch        | lanes    | generic |
 *   | barrier.wait             | phases             | lanes    |         |
 *
 * A place is a global array, or a group of shared buffers whose bytes overlap. The phases of all barriers
 * are one place: a copy that one lane starts may let phases end, while other warps still wait for one that
 * ended before. A warp that falls behind by two phases would wait for ever.
 */
import type { AnyOp, Op, Value } from "../../../ir/node.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { Windows } from "../../../layout/model/windows.ts";
import type { SharedBuffer } from "../../../layout/plan/budget.ts";
import type { Placement } from "../../../layout/plan/place.ts";

export interface Place {
  readonly name: string;
  readonly space: "smem" | "gmem" | "phases";
}

const phases: Place = { name: "a barrier's phase", space: "phases" };

export interface Access {
  /** All places whose bytes it may touch. */
  readonly places: readonly Place[];
  readonly mode: "read" | "write";
  readonly by: "lanes" | "one";
  readonly proxy: "generic" | "async";
}

export class AccessFinder {
  readonly #placement: Placement;
  readonly #windows: Windows;
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #placesOf = new Map<SharedBuffer, readonly Place[]>();
  readonly #buffers = new Map<Value, SharedBuffer>();
  readonly #scratch = new Map<AnyOp, SharedBuffer>();
  readonly #arrays = new Map<Value, Place>();

  constructor(placement: Placement) {
    this.#placement = placement;
    this.#windows = new Windows(placement.kernel);
    this.#definitions = this.#windows.definitions;
    const { buffers } = placement.memory;
    const places = buffers.map(({ name }): Place => ({ name, space: "smem" }));
    buffers.forEach((buffer) => {
      const touched = places.filter((_, index) => overlap(buffer, buffers[index]));
      this.#placesOf.set(buffer, touched);
      if (buffer.value !== undefined) this.#buffers.set(buffer.value, buffer);
    });
    for (const [op, { offset }] of placement.memory.scratch) {
      const areas = buffers.filter((each) => each.value === undefined && each.offset === offset);
      const [largest] = areas.sort((left, right) => right.bytes - left.bytes);
      if (largest !== undefined) this.#scratch.set(op, largest);
    }
    for (const { name, value } of placement.kernel.parameters)
      this.#arrays.set(value, { name, space: "gmem" });
  }

  /** Places that a `dot` reads by the asynchronous proxy, of which its user need not know. */
  readByDots(): ReadonlySet<Place> {
    const places = new Set<Place>();
    walkOps(this.#placement.kernel.body, (op) => {
      if (op.kind !== "dot") return;
      for (const access of this.#own(op)) for (const place of access.places) places.add(place);
    });
    return places;
  }

  of(op: AnyOp): readonly Access[] {
    const scratch = this.#scratch.get(op);
    const places = (scratch && this.#placesOf.get(scratch)) ?? [];
    return places.length === 0 ? this.#own(op) : [lanes("write", places), ...this.#own(op)];
  }

  /** Ops that are not named here touch nothing but registers. */
  #own(op: AnyOp): readonly Access[] {
    if (op.kind === "load")
      return this.#isElided(op.results[0]) ? [] : [lanes("read", this.#places(op.operands.ref))];
    if (op.kind === "store" || op.kind === "atomic" || op.kind === "atomic_compare_exchange")
      return [lanes("write", this.#places(op.operands.ref))];
    if (op.kind === "copy_async") return this.#copy(op);
    if (op.kind === "barrier_wait") return [lanes("read", [phases])];
    if (op.kind === "wgmma")
      return [op.operands.a, op.operands.b].flatMap((operand) => this.#operand(operand));
    return op.kind === "dot" ? this.#dot(op) : [];
  }

  #copy(op: Op<"copy_async">): readonly Access[] {
    const tensor = this.#placement.copies.get(op)?.method === "tensor";
    const how = tensor
      ? ({ by: "one", proxy: "async" } as const)
      : ({ by: "lanes", proxy: "generic" } as const);
    const ends = tensor && op.operands.barrier !== undefined ? [phases] : [];
    return [
      { places: this.#places(op.operands.source), mode: "read", ...how },
      { places: [...this.#places(op.operands.destination), ...ends], mode: "write", ...how },
    ];
  }

  #dot(op: Op<"dot">): readonly Access[] {
    if (this.#placement.products.get(op)?.instruction !== "wgmma") return [];
    return [op.operands.left, op.operands.right].flatMap((operand) => {
      const load = this.#definitions.get(operand);
      const elided = load?.kind === "load" && this.#isElided(operand);
      return elided ? this.#operand(load.operands.ref) : [];
    });
  }

  /** The tensor cores read for all warps of the thread. */
  #operand(operand: Value): readonly Access[] {
    if (operand.type.kind !== "ref") return [];
    return [{ places: this.#places(operand), mode: "read", by: "lanes", proxy: "async" }];
  }

  #isElided(value: Value | undefined): boolean {
    return value !== undefined && value.type.kind === "tile" && !this.#placement.layouts.has(value);
  }

  #places(ref: Value): readonly Place[] {
    const root = this.#root(ref);
    const buffer = this.#buffers.get(root);
    if (buffer !== undefined) return this.#placesOf.get(buffer) ?? [];
    const known = this.#arrays.get(root);
    if (known !== undefined) return [known];
    const made: Place = { name: `%${root.id}`, space: "gmem" };
    this.#arrays.set(root, made);
    return [made];
  }

  /** The parameter, allocation or union that a window lies in. */
  #root(ref: Value): Value {
    let root = ref;
    for (;;) {
      const op = this.#definitions.get(root);
      if (
        op?.kind === "slice_ref" ||
        op?.kind === "transpose_ref" ||
        op?.kind === "reshape_ref" ||
        op?.kind === "peer_ref"
      )
        root = op.operands.ref;
      else if (op?.kind === "union_member") root = op.operands.union;
      else return root;
    }
  }
}

function lanes(mode: Access["mode"], places: readonly Place[]): Access {
  return { places, mode, by: "lanes", proxy: "generic" };
}

function overlap(left: SharedBuffer, right: SharedBuffer | undefined): boolean {
  if (right === undefined) return false;
  return left.offset < right.offset + right.bytes && right.offset < left.offset + left.bytes;
}
