/**
 * Which places an op touches, and who does it: its traits, with each operand led back to its memory.
 *
 *   %3 = slice_ref %0 …
 *   store %3, %2            traits: ref is written by lanes      %3 ← %0, the array x: lanes write x
 *
 * A place is a global array, or a group of shared buffers whose bytes overlap. The phases of all barriers
 * are one place: a copy that one lane starts may let phases end, while other warps still wait for one that
 * ended before. A warp that falls behind by two phases would wait for ever. Scratch of an op is written by its lanes.
 */
import type { AnyOp, Value } from "../../../ir/node.ts";
import type { Access } from "../../../ir/schema.ts";
import { accessesOf, onlyComputes, windowedBy } from "../../../ir/traits.ts";
import { walkOps } from "../../../ir/traverse.ts";
import { Windows } from "../../../layout/model/windows.ts";
import type { SharedBuffer } from "../../../layout/plan/budget.ts";
import type { Placement } from "../../../layout/plan/place.ts";

export interface Place {
  readonly name: string;
  readonly space: "smem" | "gmem" | "phases";
}

const phases: Place = { name: "a barrier's phase", space: "phases" };

export interface PlaceAccess extends Omit<Access, "of"> {
  /** All places whose bytes it may touch. */
  readonly places: readonly Place[];
  /** Whether they are those of another block. */
  readonly ofPeer: boolean;
}

export class AccessFinder {
  readonly #placement: Placement;
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  readonly #placesOf = new Map<SharedBuffer, readonly Place[]>();
  readonly #buffers = new Map<Value, SharedBuffer>();
  readonly #scratch = new Map<AnyOp, SharedBuffer>();
  readonly #arrays = new Map<Value, Place>();

  constructor(placement: Placement) {
    this.#placement = placement;
    this.#definitions = new Windows(placement.kernel).definitions;
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

  /** Places that the asynchronous proxy reads for an op of which users think that it only computes. */
  readUnasked(): ReadonlySet<Place> {
    const found = new Set<Place>();
    walkOps(this.#placement.kernel.body, (op) => {
      if (!onlyComputes(op)) return;
      for (const { proxy, places } of this.#own(op))
        if (proxy === "async") for (const place of places) found.add(place);
    });
    return found;
  }

  of(op: AnyOp): readonly PlaceAccess[] {
    const scratch = this.#scratch.get(op);
    const places = (scratch && this.#placesOf.get(scratch)) ?? [];
    return places.length === 0 ? this.#own(op) : [{ ...usesScratch, places }, ...this.#own(op)];
  }

  #own(op: AnyOp): readonly PlaceAccess[] {
    if (op.results.some((result) => this.#isElided(result))) return [];
    return accessesOf(op, this.#methodOf(op)).map(({ value, ...access }) => ({
      ...access,
      places: this.#places(value),
      ofPeer: value.type.kind === "ref" && value.type.space === "peer",
    }));
  }

  #methodOf(op: AnyOp): string | undefined {
    if (op.kind === "copy_async") return this.#placement.copies.get(op)?.method;
    return op.kind === "dot" ? this.#placement.products.get(op)?.instruction : undefined;
  }

  #isElided(value: Value): boolean {
    return value.type.kind === "tile" && !this.#placement.layouts.has(value);
  }

  /** Registers are no place: each lane has its own. */
  #places(value: Value): readonly Place[] {
    if (value.type.kind === "barrier") return [phases];
    if (value.type.kind === "ref") return this.#placesOfWindow(value);
    const load = this.#isElided(value) ? this.#definitions.get(value) : undefined;
    return load?.kind === "load" ? this.#placesOfWindow(load.operands.ref) : [];
  }

  #placesOfWindow(window: Value): readonly Place[] {
    const root = this.#root(window);
    const buffer = this.#buffers.get(root);
    if (buffer !== undefined) return this.#placesOf.get(buffer) ?? [];
    const known = this.#arrays.get(root);
    if (known !== undefined) return [known];
    const made: Place = { name: `%${root.id}`, space: "gmem" };
    this.#arrays.set(root, made);
    return [made];
  }

  /** The parameter, allocation or union that a window lies in. */
  #root(window: Value): Value {
    const op = this.#definitions.get(window);
    const source = op && windowedBy(op);
    return source === undefined ? window : this.#root(source);
  }
}

const usesScratch = {
  mode: "write",
  actor: "lanes",
  proxy: "generic",
  done: "at once",
  ofPeer: false,
} as const;

function overlap(left: SharedBuffer, right: SharedBuffer | undefined): boolean {
  if (right === undefined) return false;
  return left.offset < right.offset + right.bytes && right.offset < left.offset + left.bytes;
}
