/**
 * Barriers across the blocks of a cluster: each block has one, arriving tells those of all blocks along some axes, and waiting is for all of them.
 *
 *   cluster { i: 2, j: 2 }      clusterBarrier("j")      rank 0 arrives in 0 and 1, rank 2 in 2 and 3
 *                               clusterBarrier()         every rank arrives in all four
 */
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { ClusterBarrierSpec } from "./arguments.ts";
import { Barrier } from "./barriers.ts";
import type { Index } from "./indices.ts";
import type { Scalar } from "./elementwise.ts";
import { peersAlong } from "./multicast.ts";
import type { Peers } from "./multicast.ts";
import { emitOrigin } from "./trace.ts";
import type { Trace } from "./trace.ts";
import { origin, Traced } from "./traced.ts";
import type { All, Slice } from "./window.ts";

/** A barrier of the blocks of a cluster along some axes, or an array of them. */
export class ClusterBarrier extends Traced {
  /** Tells a barrier of a cluster from other traced objects. */
  readonly kind = "cluster barrier";
  readonly #own: Barrier;
  readonly #peers: Peers;

  /** @internal */
  constructor(own: Barrier, peers: Peers) {
    super(own[origin]);
    this.#own = own;
    this.#peers = peers;
  }

  /** One barrier of the array, or a part of it: an index drops its axis, a slice or `all` keeps it. */
  at(...indices: readonly (Index | Slice | All)[]): ClusterBarrier {
    return new ClusterBarrier(this.#own.at(...indices), this.#peers);
  }

  /** Arrives once in every block along the axes, this one too. */
  arrive(): void {
    const location = captureLocation();
    atLocation(location, () => {
      for (const peer of this.#peers.ranks()) this.#own.arrive({ peer });
    });
  }

  /** Waits until all blocks along the axes have arrived: for the next phase that this thread has not waited for, or for the phase of a parity. */
  wait(options: { readonly parity?: Index } = {}): void {
    const location = captureLocation();
    atLocation(location, () => {
      this.#own.wait(options);
    });
  }

  /** Whether a phase of the parity is complete, without waiting; where it is, this orders what a wait for it would. */
  test(parity: Index): Scalar<"bool"> {
    const location = captureLocation();
    return atLocation(location, () => this.#own.test(parity));
  }
}

/** Allocates this block's barriers, on which all blocks along the axes arrive. */
export function allocateClusterBarrier(
  trace: Trace,
  name: string,
  { axes, count, shape, arrivals, location }: ClusterBarrierSpec,
): ClusterBarrier {
  const shared = trace.context.grid.filter(({ cluster }) => cluster > 1);
  if (shared.length === 0)
    throw new TilewrightError({
      code: "TW1107",
      message: `${name} is a barrier of clusters, which the kernel has none of`,
      location,
      expected: "a cluster in the kernel's specification",
      found: "single blocks",
      remedy: "write cluster: { i: 2 }, or take a barrier of the block",
    });
  if (trace.runners < trace.context.threads.length || trace.warps !== undefined)
    throw new TilewrightError({
      code: "TW2210",
      message: `not all program threads reach ${name}, a barrier of clusters`,
      location,
      expected: "the kernel's scratch, or a scope that all threads enter",
      found: `the code of ${trace.thread ?? "single warps"}`,
      remedy: "declare it in the kernel's scratch, or around the code of the threads",
    });
  const peers = peersAlong(trace, axes ?? shared.map((each) => each.name), location);
  const attributes = {
    count,
    ...(shape.length > 1 && { shape }),
    arrivals: arrivals * peers.count,
    name,
  };
  return new ClusterBarrier(
    new Barrier(emitOrigin("alloc_barrier", {}, attributes, location), shape),
    peers,
  );
}
