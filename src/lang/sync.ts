/**
 * How program threads and blocks order themselves: semaphores, and the points where all threads of a block or a cluster meet.
 * Barriers are in `barriers.ts`.
 */
import type { Value } from "../ir/node.ts";
import { memoryScopes } from "../ir/schema.ts";
import type { MemoryScope } from "../ir/schema.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { indexValue, requireWithin } from "./indices.ts";
import type { Index } from "./indices.ts";
import { Scalar } from "./elementwise.ts";
import { emit, emitOrigin } from "./trace.ts";
import type { Origin } from "./trace.ts";
import { describe, origin, Traced, useValue, wrongKind } from "./traced.ts";

/** Counters in global memory that all blocks share. */
export class Semaphore extends Traced {
  /** Tells a semaphore from other traced objects. */
  readonly kind = "semaphore";
  readonly #indices: readonly Index[];

  /** @internal */
  constructor(made: Origin, indices: readonly Index[] = []) {
    super(made);
    this.#indices = indices;
  }

  /** One counter. */
  at(...indices: readonly Index[]): Semaphore {
    return new Semaphore(this[origin], [...this.#indices, ...indices]);
  }

  /** Adds to the counter; whoever in the `scope` waits for the sum sees what this thread did before. */
  signal(increment: Index = 1, options: { readonly scope?: MemoryScope } = {}): void {
    const location = captureLocation();
    requireKnownOptions("signal", options, ["scope"], "TW1033", location);
    const operands = {
      ...this.#operands(location),
      increment: indexValue("an increment", increment, location),
    };
    emit("semaphore_signal", operands, scopeAttribute(options.scope, location), location);
  }

  /**
   * Waits until the counter is at least `value`; with `decrement`, then subtracts it. It hears signals of its `scope`: of the block, the
   * cluster, the device (unless given), or of whoever shares the memory.
   */
  wait(
    value: Index,
    options: { readonly decrement?: boolean; readonly scope?: MemoryScope } = {},
  ): void {
    const location = captureLocation();
    const operands = {
      ...this.#operands(location),
      value: indexValue("the value of a wait", value, location),
    };
    requireKnownOptions("wait", options, ["decrement", "scope"], "TW1033", location);
    const { decrement = false, scope } = options;
    const attributes = { decrement, ...scopeAttribute(scope, location) };
    emit("semaphore_wait", operands, attributes, location);
  }

  /** What the counter is at, without waiting; what came before the signals it has counted is visible from here on. */
  read(options: { readonly scope?: MemoryScope } = {}): Scalar<"i32"> {
    const location = captureLocation();
    requireKnownOptions("read", options, ["scope"], "TW1033", location);
    const attributes = scopeAttribute(options.scope, location);
    return new Scalar(emitOrigin("semaphore_read", this.#operands(location), attributes, location));
  }

  #operands(location: Location): {
    readonly semaphore: Value;
    readonly indices: readonly Value[];
  } {
    const semaphore = useValue(this, location);
    const shape = semaphore.type.kind === "semaphore" ? semaphore.type.shape : [];
    for (const [axis, index] of this.#indices.entries())
      requireWithin(`axis ${axis} of ${describe(this)}`, index, shape[axis], location);
    return {
      semaphore,
      indices: this.#indices.map((index) =>
        indexValue("the index of a semaphore", index, location),
      ),
    };
  }
}

/** The scope of an op on a counter, in words that are known; none where it is the device's. */
function scopeAttribute(
  scope: MemoryScope | undefined,
  location: Location,
): { readonly scope?: MemoryScope } {
  if (scope === undefined) return {};
  if (!memoryScopes.includes(scope))
    wrongKind("a scope", memoryScopes.map((word) => `"${word}"`).join(", "), scope, location);
  return scope === "device" ? {} : { scope };
}

/** Nanoseconds; hardware waits no longer. */
const longestDelay = 1_000_000;

/** Lets about as many nanoseconds pass, before something is tried again. A hint: how long it takes is up to the hardware, up to a millisecond. */
export function delay(nanoseconds: Index): void {
  const location = captureLocation();
  requireWithin("a delay of up to a million nanoseconds", nanoseconds, longestDelay + 1, location);
  const operands = { nanoseconds: indexValue("the nanoseconds of a delay", nanoseconds, location) };
  emit("delay", operands, {}, location);
}

/** All program threads of the block meet here. */
export function blockSync(): void {
  emit("block_sync", {}, {}, captureLocation());
}

/** Tells the cluster that this thread has come here, without waiting. */
export function clusterArrive(): void {
  emit("cluster_arrive", {}, {}, captureLocation());
}

/** Waits until every program thread of the cluster has called `clusterArrive`. */
export function clusterWait(): void {
  emit("cluster_wait", {}, {}, captureLocation());
}

/** All program threads of the cluster meet here. */
export function clusterSync(): void {
  const location = captureLocation();
  emit("cluster_arrive", {}, {}, location);
  emit("cluster_wait", {}, {}, location);
}

/**
 * From here on this program thread keeps `count` registers a lane: a thread that only copies gives some
 * up, one that multiplies takes them. A hint to the hardware; results do not depend on it.
 */
export function setRegisters(count: number): void {
  emit("set_registers", {}, { count }, captureLocation());
}

/**
 * Waits for the kernel that was launched before this one. A kernel that says so is started early; before this line it must not touch
 * global memory, in any of its program threads and warps. `independent` names inputs that may be read before: those that the launch before it in
 * the plan of an operation leaves alone. Launched otherwise, such a kernel is not started early.
 */
export function waitForPreviousKernel(
  options: { readonly independent?: readonly string[] } = {},
): void {
  const location = captureLocation();
  requireKnownOptions("waitForPreviousKernel", options, ["independent"], "TW1033", location);
  const { independent: settled } = options;
  // A list that the caller may change is copied; what is no list is refused with the op's other attributes.
  const copied = (names: readonly string[]): readonly string[] => Object.freeze([...names]);
  const names = Array.isArray(settled) ? copied(settled) : settled;
  const attributes = { action: "wait", ...(names !== undefined && { settled: names }) } as const;
  emit("grid_dependency", {}, attributes, location);
}

/** Lets a kernel that waits for this one start, once every block has come here or ended. */
export function launchNextKernel(): void {
  emit("grid_dependency", {}, { action: "launch" }, captureLocation());
}

/** The block's position in its cluster along an axis of the grid, or of the cluster alone. */
export function clusterRank(axis: string): Scalar<"i32"> {
  return new Scalar(emitOrigin("cluster_rank", {}, { axis }, captureLocation()));
}

/** The number of blocks along a grid axis. */
export function gridSize(axis: string): Scalar<"i32"> {
  return new Scalar(emitOrigin("grid_size", {}, { axis }, captureLocation()));
}

/** The index of the program thread in its block. */
export function threadIndex(): Scalar<"i32"> {
  return new Scalar(emitOrigin("thread_index", {}, {}, captureLocation()));
}
