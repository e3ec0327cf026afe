/**
 * Which places an op accesses, and who does: its traits, with each operand traced back to its memory.
 *
 *   %3 = slice_ref %0 …
 *   store %3, %2            traits: ref is written by lanes      %3 ← %0, the array x: threads write x
 *
 * A place is a global array, or a group of buffers of shared or tensor memory whose bytes or columns overlap. The phases of all barriers are one place: a copy that one
 * thread starts may complete phases while other warps still wait for an earlier one, and a warp that falls behind by two phases would wait
 * for ever. Scratch of an op is written by its threads.
 */
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { definingOps } from "../../ir/rewrite/analysis.ts";
import type { Access } from "../../ir/schema.ts";
import {
  accessesOf,
  chosenAmong,
  onlyComputes,
  synchronizationsOf,
  windowedBy,
} from "../../ir/traits.ts";
import { walkOps } from "../../ir/traverse.ts";
import { placedBuffers, scratchOperand } from "../../layout/model/placed-types.ts";
import type { PlacedBuffer } from "../../layout/model/placed-types.ts";
import { placedColumns } from "../../layout/model/tensor-memory.ts";
import type { Box, BoxFinder } from "./disjoint-windows.ts";

export interface Place {
  readonly name: string;
  readonly space: "smem" | "tmem" | "gmem" | "phases";
}

const nothing: readonly PlaceAccess[] = Object.freeze([]);

const phases: Place = { name: "a barrier's phase", space: "phases" };

export interface PlaceAccess extends Omit<Access, "of"> {
  /** All places whose bytes it may touch. */
  readonly places: readonly Place[];
  /** Whether they are those of another block. */
  readonly ofPeer: boolean;
  /** All elements that it may touch, where fewer than those of the whole place. */
  readonly box: Box | undefined;
}

/** How boxes of windows are found. */
type BoxFinding = new (kernel: Kernel, definitions: ReadonlyMap<Value, AnyOp>) => BoxFinder;

export class AccessFinder {
  readonly #kernel: Kernel;
  readonly #definitions: ReadonlyMap<Value, AnyOp>;
  /** Of each buffer those that it shares bytes or columns with. */
  readonly #buffers = new Map<Value, readonly Place[]>();
  readonly #arrays = new Map<Value, Place>();
  /** Loops are followed several times, and each program thread on its own. */
  readonly #known = new Map<AnyOp, readonly PlaceAccess[]>();
  readonly #boxes: BoxFinder;
  #unasked: ReadonlySet<Place> | undefined;

  constructor(kernel: Kernel, Boxes: BoxFinding) {
    this.#kernel = kernel;
    this.#definitions = definingOps(kernel.body);
    this.#boxes = new Boxes(kernel, this.#definitions);
    this.#group("smem", placedBuffers(kernel));
    const columns = placedColumns(kernel);
    this.#group(
      "tmem",
      columns.map((each) => ({ ...each, bytes: each.columns })),
    );
    for (const { name, value } of kernel.parameters)
      this.#arrays.set(value, { name, space: "gmem" });
  }

  #group(space: "smem" | "tmem", buffers: readonly Stretch[]): void {
    const places = buffers.map(({ name }): Place => ({ name, space }));
    for (const buffer of buffers) {
      const touched = places.filter((_, index) => overlap(buffer, buffers[index]));
      this.#buffers.set(buffer.value, touched);
    }
  }

  /** Places that the asynchronous proxy reads for an op of which users think that it only computes. */
  readUnasked(): ReadonlySet<Place> {
    this.#unasked ??= this.#findUnasked();
    return this.#unasked;
  }

  #findUnasked(): ReadonlySet<Place> {
    const found = new Set<Place>();
    walkOps(this.#kernel.body, (op) => {
      if (!onlyComputes(op)) return;
      for (const { proxy, places } of this.#own(op))
        if (proxy === "async") for (const place of places) found.add(place);
    });
    return found;
  }

  of(op: AnyOp): readonly PlaceAccess[] {
    const known = this.#known.get(op);
    if (known !== undefined) return known;
    const found = this.#find(op);
    this.#known.set(op, found);
    return found;
  }

  /**
   * What is done when the op is over and lanes have met: one of them takes the barriers of a scope out of use, by writing their bytes;
   * others read from scratch what one has found.
   */
  behind(op: AnyOp): readonly PlaceAccess[] {
    if (synchronizationsOf(op).some(({ at }) => at === "after")) {
      const scratch = scratchOperand(op);
      if (scratch !== undefined) return [{ places: this.#placesOfWindow(scratch), ...byLanes }];
    }
    if (op.kind !== "scoped") return nothing;
    return op.regions.body.ops.flatMap((inner) => {
      const [barrier] = inner.results;
      if (inner.kind !== "alloc_barrier" || barrier === undefined) return nothing;
      return [{ places: this.#placesOfWindow(barrier), ...byLanes }];
    });
  }

  #find(op: AnyOp): readonly PlaceAccess[] {
    const scratch = scratchOperand(op);
    const places = scratch === undefined ? [] : this.#placesOfWindow(scratch);
    return places.length === 0 ? this.#own(op) : [{ places, ...byLanes }, ...this.#own(op)];
  }

  #own(op: AnyOp): readonly PlaceAccess[] {
    const accesses = accessesOf(op, methodOf(op));
    if (accesses.length === 0) return nothing;
    return accesses.map(({ mode, actor, proxy, done, value }) => ({
      mode,
      actor,
      proxy,
      done,
      places: this.#places(value),
      ofPeer: value.type.kind === "ref" && value.type.space === "peer",
      box: value.type.kind === "ref" ? this.#boxes.of(value) : undefined,
    }));
  }

  /** Registers are no place: each lane has its own. */
  #places(value: Value): readonly Place[] {
    if (value.type.kind === "barrier") return [phases];
    return value.type.kind === "ref" ? this.#placesOfWindow(value) : [];
  }

  #placesOfWindow(window: Value): readonly Place[] {
    const root = this.#root(window);
    const op = this.#definitions.get(root);
    const among = op === undefined ? [] : chosenAmong(op);
    if (among.length > 0) return [...new Set(among.flatMap((ref) => this.#placesOfWindow(ref)))];
    const buffer = this.#buffers.get(root);
    if (buffer !== undefined) return buffer;
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

function methodOf(op: AnyOp): string | undefined {
  if (op.kind === "copy_async") return op.attributes.by;
  return op.kind === "dot" ? op.attributes.instruction : undefined;
}

const byLanes = {
  mode: "write",
  actor: "threads",
  proxy: "generic",
  done: "at once",
  ofPeer: false,
  box: undefined,
} as const;

/** A buffer's bytes of shared memory, or its columns of tensor memory. */
type Stretch = Pick<PlacedBuffer, "name" | "value" | "offset" | "bytes">;

function overlap(left: Stretch, right: Stretch | undefined): boolean {
  if (right === undefined) return false;
  return left.offset < right.offset + right.bytes && right.offset < left.offset + left.bytes;
}
