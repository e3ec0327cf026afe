/** Counters in global memory that the whole grid shares. */
import { rowMajorStrides } from "../formats/shape.ts";
import type { Kernel, Op } from "../ir/node.ts";
import { walkOps } from "../ir/traverse.ts";
import { SemaphoreState } from "../happens-before/semaphore.ts";
import { ShadowMemory } from "../happens-before/shadow.ts";
import type { DiagnosticDetails } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import type { Findings } from "./reports.ts";
import { product } from "./view.ts";
import { WaitList } from "./wait-queue.ts";
import type { Polled } from "./wait-queue.ts";

export class Semaphore implements Polled {
  readonly state = new SemaphoreState();
  readonly waiters = new WaitList();
  readonly array: SemaphoreArray;
  /** Which counter of the array it is. */
  readonly position: number;

  constructor(array: SemaphoreArray, position: number) {
    this.array = array;
    this.position = position;
  }

  /** How reports name it: `semaphore done[2, 0]`. */
  get name(): string {
    const { name, shape, strides } = this.array;
    const indices = shape.map(
      (extent, axis) => Math.floor(this.position / (strides[axis] ?? 1)) % extent,
    );
    return indices.length === 0 ? name : `${name}[${indices.join(", ")}]`;
  }

  /** A read finds something else once the counter is at another number. */
  get version(): number {
    return this.state.value;
  }
}

export class SemaphoreArray {
  readonly op: Op<"alloc_semaphore">;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  /** Who has used each counter, where some ops on them reach a part of the grid alone. */
  readonly shadow: ShadowMemory | undefined;
  readonly #counters: readonly Semaphore[];

  constructor(op: Op<"alloc_semaphore">, shape: readonly number[], narrow = false) {
    this.op = op;
    this.shape = shape;
    this.strides = rowMajorStrides(shape);
    this.#counters = Array.from(
      { length: product(shape) },
      (_, position) => new Semaphore(this, position),
    );
    const granules = this.#counters.length;
    this.shadow = narrow
      ? new ShadowMemory({ granules, space: "gmem", initialised: true })
      : undefined;
  }

  /** How reports name the array. */
  get name(): string {
    const { name } = this.op.attributes;
    return name === undefined ? "the semaphore" : `semaphore ${name}`;
  }

  /** Those of the counters that are not 0. */
  get pending(): readonly Semaphore[] {
    return this.#counters.filter(({ state }) => state.value !== 0);
  }

  /** The counter at the indices; undefined where one of them is out of bounds. */
  at(indices: readonly number[]): Semaphore | undefined {
    let position = 0;
    for (const [axis, index] of indices.entries()) {
      if (index < 0 || index >= (this.shape[axis] ?? 0)) return undefined;
      position += index * (this.strides[axis] ?? 0);
    }
    return this.#counters[position];
  }
}

/** Whether an op on these counters reaches only its block or its cluster. */
export function hasNarrowScope(kernel: Kernel, { results }: Op<"alloc_semaphore">): boolean {
  let found = false;
  walkOps(kernel.body, ({ operands, attributes }) => {
    if (!("semaphore" in operands) || !results.includes(operands.semaphore)) return;
    const scope = "scope" in attributes ? attributes.scope : undefined;
    found ||= scope === "block" || scope === "cluster";
  });
  return found;
}

/** Reports counters that should have come back to 0 by the end of a run and have not. */
export function reportUnrestored(findings: Findings, arrays: readonly unknown[]): void {
  for (const array of arrays) {
    if (!(array instanceof SemaphoreArray) || array.op.attributes.restored !== true) continue;
    const left = array.pending.map(({ name, state: { value } }) => ({ name, value }));
    const report = unrestoredReport(left, array.op.location);
    if (report !== undefined) findings.add(report, array.op);
  }
}

/** What is said of counters that are left at other values than 0; nothing where there are none. */
export function unrestoredReport(
  left: readonly { readonly name: string; readonly value: number }[],
  location: Location,
): DiagnosticDetails | undefined {
  const [first, ...others] = left;
  if (first === undefined) return undefined;
  const more = others.length === 0 ? "" : `, and ${others.length} more are not 0`;
  return {
    code: "TW3025",
    message: `${first.name} is not left at 0`,
    location,
    expected: "every counter of a restored semaphore at 0 when the kernel ends",
    found: `${first.name} at ${first.value}${more}`,
    remedy: "wait for every signal with { decrement: true }, or leave out restored",
  };
}
