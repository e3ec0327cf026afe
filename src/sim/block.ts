/**
 * Blocks and clusters at run time: their allocations, the barriers of their threads, and what is left to
 * check when they end. The blocks of a cluster start together; their memory stays until all of them
 * have ended, so that an access that comes too late is seen.
 */
import type { AnyOp } from "../ir/node.ts";
import { u8 } from "../formats/dtype.ts";
import { Agent } from "./agent.ts";
import type { AgentMachine, AsyncOperation } from "./agent.ts";
import { BarrierArray } from "./barriers.ts";
import { Knowledge } from "../happens-before/knowledge.ts";
import { ExecutionBarrier } from "../happens-before/execution-barrier.ts";
import type { SlotValue } from "./values.ts";
import { wholeView } from "./view.ts";
import { WaitList } from "./wait-queue.ts";

/** A set of agents that meet, and who waits for the others. */
export class SyncPoint {
  readonly name: string;
  readonly state: ExecutionBarrier;
  readonly waiters = new WaitList();

  constructor(name: string, needed: number) {
    this.name = name;
    this.state = new ExecutionBarrier(needed);
  }
}

export class Cluster {
  readonly blocks: readonly Block[];
  readonly syncPoint: SyncPoint;
  /** Where its threads meet at the beginning of scopes whose barriers other blocks arrive on. */
  readonly scopePoint: SyncPoint;
  /** Asynchronous operations that its threads have issued and that have not completed. */
  readonly pending = new Set<AsyncOperation>();
  /** Barriers of scopes that ended while something could still arrive on them. */
  readonly #retired: BarrierArray[] = [];
  readonly #machine: AgentMachine;

  constructor(machine: AgentMachine, blocks: readonly (readonly number[])[]) {
    this.#machine = machine;
    const threads = machine.program.kernel.threads.length;
    this.syncPoint = new SyncPoint("the cluster's barrier", blocks.length * threads);
    this.scopePoint = new SyncPoint("the cluster to enter the scope", blocks.length * threads);
    this.blocks = blocks.map((coordinates, rank) => new Block(machine, this, coordinates, rank));
  }

  get ended(): boolean {
    return this.blocks.every(({ ended }) => ended);
  }

  complete(operation: AsyncOperation): void {
    if (this.pending.delete(operation)) this.#machine.complete(operation);
  }

  /** Takes barriers whose scope has ended. What they hold is only known once nothing is pending. */
  retire(barriers: BarrierArray): void {
    if (this.pending.size === 0) this.#machine.checker?.leftovers(barriers);
    else this.#retired.push(barriers);
  }

  /** Lets what is still pending complete and looks at what the barriers are left with. */
  finish(): void {
    for (const operation of this.pending) this.complete(operation);
    for (const barriers of this.#retired) this.retire(barriers);
    for (const { allocated } of this.blocks)
      for (const value of allocated) if (value instanceof BarrierArray) this.retire(value);
  }
}

export class Block {
  readonly machine: AgentMachine;
  readonly cluster: Cluster;
  readonly coordinates: readonly number[];
  readonly rank: number;
  readonly syncPoint: SyncPoint;
  /** Allocations by their number in the program. */
  readonly allocated: SlotValue[] = [];
  readonly agents: readonly Agent[];
  /** What all threads that have ended knew. */
  #endKnowledge = Knowledge.none;
  #running: number;

  constructor(
    machine: AgentMachine,
    cluster: Cluster,
    coordinates: readonly number[],
    rank: number,
  ) {
    const { threads } = machine.program.kernel;
    this.machine = machine;
    this.cluster = cluster;
    this.coordinates = coordinates;
    this.rank = rank;
    this.syncPoint = new SyncPoint("blockSync", threads.length);
    this.agents = threads.map((_, thread) => new Agent(this, thread));
    this.#running = threads.length;
  }

  get ended(): boolean {
    return this.#running === 0;
  }

  /** The allocation of a number, made when first asked for. */
  allocation(site: number): SlotValue {
    return (this.allocated[site] ??= this.makeAllocation(site));
  }

  makeAllocation(site: number): SlotValue {
    const { machine } = this;
    const { op } = machine.allocation(site);
    if (op.kind === "alloc_barrier")
      return new BarrierArray(op, this, site, machine.checks && this.cluster.blocks.length > 1);
    const memory = machine.takeShared(site);
    memory.renew(this);
    if (op.kind === "alloc_union") return wholeView(memory, u8, [op.attributes.bytes]);
    if (op.kind === "alloc" || op.kind === "alloc_tmem")
      return wholeView(memory, op.attributes.dtype, op.attributes.shape.map(Number));
    throw new Error(`${op.kind} is not in shared memory`);
  }

  /** Ends one thread of the block; the last one ends the block. */
  threadEnded(agent: Agent, ending: AnyOp): void {
    this.#endKnowledge = this.#endKnowledge.join(agent.publish());
    this.#running -= 1;
    if (this.#running > 0) return;
    this.machine.checker?.blockEnded(this, agent, ending, this.#endKnowledge);
    if (this.cluster.ended) this.machine.clusterEnded(this.cluster);
  }

  /** Gives the memory back. */
  release(): void {
    for (const [site, value] of this.allocated.entries())
      if (value !== undefined) this.machine.giveShared(site, value);
    this.allocated.length = 0;
  }
}
