/**
 * Agents: what runs a program. A program thread is one, and inside `warps` so is each of its warps. An
 * agent is a position in the code and its slots; between any two steps it can be put aside.
 *
 *   ready --> running --blocked--> waiting --woken--> ready
 *                     --ended---->
 */
import { CopyGroups, ProductQueue, TensorQueue } from "./asynchronous.ts";
import type { BarrierElement } from "./barriers.ts";
import type { Block, Cluster } from "./block.ts";
import type { Allocation } from "./allocation.ts";
import type { Checker } from "./checker.ts";
import type { Grid } from "./grid.ts";
import type { Memory } from "./memory.ts";
import type { Findings, Statistics } from "./reports.ts";
import type { AnyOp, Kernel } from "../ir/node.ts";
import type { Access, Origin, Place } from "../happens-before/access.ts";
import { Knowledge, Timeline } from "../happens-before/knowledge.ts";
import { AsyncAgents } from "../happens-before/async-agents.ts";
import type { SlotValue } from "./values.ts";
import { WaitList, waitForChange } from "./wait-queue.ts";
import type { Polled, PolledVersions } from "./wait-queue.ts";

/** What became of an agent by a step. */
export type Outcome = "proceed" | "looked" | "switch" | "blocked" | "ended";

/**
 * One step of an agent. `proceed`: go on. `switch`: done, and others may notice it, so the scheduler may
 * choose another. `looked`: the same, but nothing has changed for others. `blocked`: nothing was done; try again once woken. `ended`: the agent is done.
 */
export type Step = (agent: Agent) => Outcome;

/** What reports say about a step. */
export interface Site {
  readonly op: AnyOp;
  /** Slots of the indices of the loops around it, outermost first. */
  readonly loops: readonly number[];
}

export interface Program {
  readonly kernel: Kernel;
  readonly steps: readonly Step[];
  readonly sites: readonly Site[];
  readonly slots: number;
  readonly allocations: readonly Allocation[];
  readonly parameterSlots: readonly number[];
  /** The names of unions' members, by their number less one. */
  readonly members: readonly string[];
}

/** The machine as agents, blocks and the rules of ops use it. */
export interface AgentMachine {
  readonly program: Program;
  readonly grid: Grid;
  readonly axes: readonly string[];
  readonly checks: boolean;
  readonly checker: Checker | undefined;
  readonly findings: Findings;
  readonly print: (line: string) => void;
  readonly statistics: Statistics;
  newAgentNumber(): number;
  /** The agent can go on. */
  ready(agent: Agent): void;
  issue(operation: AsyncOperation): void;
  complete(operation: AsyncOperation): void;
  clusterEnded(cluster: Cluster): void;
  /** Takes a cluster that has not started, which then never does: the number of its first block; undefined where none is given. */
  takeBlock(): number | undefined;
  allocation(site: number): Allocation;
  gridAllocation(site: number): SlotValue;
  /** Shared memory for an allocation, used before or new. */
  takeShared(site: number): Memory;
  giveShared(site: number, value: SlotValue): void;
}

/** What the scheduler completes. Of one agent's wgmma the oldest completes first, whichever is picked. */
export interface AsyncOperation {
  readonly issuer: Agent;
  readonly origin: Origin;
  /** Gives the origin of what has completed. */
  complete(): Origin;
}

/** One round of a loop that may be a poll. */
export interface Poll {
  readonly loop: AnyOp;
  /** What the round began with. */
  readonly carried: readonly SlotValue[];
  /** The agent's changes before it. */
  readonly changes: number;
  readonly polled: Map<Polled, number>;
}

/** What a warp takes over from its thread. */
interface Inheritance {
  readonly parent: Agent;
  readonly warp: number;
  readonly groups: CopyGroups;
  readonly tensor: TensorQueue;
}

export class Agent {
  readonly machine: AgentMachine;
  readonly block: Block;
  readonly thread: number;
  readonly warp: number | undefined;
  readonly parent: Agent | undefined;
  readonly slots: SlotValue[];
  position = 0;
  ended = false;
  /** Where a blocked agent's wait is described, for a report of deadlock. */
  waitingFor: (() => string) | undefined;
  /** The adversarial scheduler's liking for it. */
  priority = 0;
  /** How many of its steps others may have noticed. */
  changes = 0;
  /** Where it repeats a loop, and what it has looked at since that began anew. */
  poll: Poll | undefined;
  /** When it may go on, by the timed scheduler. */
  cycles = 0;
  /** Without checks there is no timeline. */
  readonly timeline: Timeline | undefined;
  readonly asyncAgents: AsyncAgents;
  /** How many phases of each barrier this agent has waited for. */
  readonly phases: Map<BarrierElement, number>;
  /** Barriers that warps of this thread have waited for unequally often: hardware keeps parities alone. */
  readonly unevenWaits: Set<BarrierElement>;
  readonly groups: CopyGroups;
  /** Those of its warps, which go on from one time that they run on their own to the next. */
  readonly #groupsOfWarps: CopyGroups[] = [];
  /** What it has started on tensor memory; its warps have queues of their own, which go on likewise. */
  readonly tensor: TensorQueue;
  readonly #tensorOfWarps: TensorQueue[] = [];
  readonly products = new ProductQueue();
  /** Its own scoped allocations, by their number. */
  readonly allocated: SlotValue[] = [];
  warps: readonly Agent[] = [];
  /** Woken when something this agent started is done: a copy, a wgmma, a warp. */
  readonly ownWork = new WaitList();

  constructor(block: Block, thread: number, inheritance?: Inheritance) {
    const { machine } = block;
    const parent = inheritance?.parent;
    this.machine = machine;
    this.block = block;
    this.thread = thread;
    this.parent = parent;
    this.warp = inheritance?.warp;
    this.groups = inheritance?.groups ?? new CopyGroups();
    this.tensor = inheritance?.tensor ?? new TensorQueue();
    this.slots =
      parent === undefined
        ? new Array<SlotValue>(machine.program.slots).fill(undefined)
        : parent.slots.slice();
    this.phases = new Map(parent?.phases);
    this.unevenWaits = new Set(parent?.unevenWaits);
    this.timeline = machine.checks
      ? new Timeline(() => machine.newAgentNumber(), parent?.timeline?.knowledge)
      : undefined;
    this.asyncAgents = new AsyncAgents(() => machine.newAgentNumber());
  }

  /** The step that is running, or that a blocked agent will repeat. */
  get site(): Site {
    const site = this.machine.program.sites[this.position - 1];
    if (site === undefined) throw new Error("the agent is not running");
    return site;
  }

  place(site: Site = this.site): Place {
    const { kernel } = this.machine.program;
    return {
      thread: kernel.threads[this.thread] ?? String(this.thread),
      axes: this.machine.axes,
      block: this.block.coordinates,
      iterations: site.loops.map((slot) => Number(this.slots[slot])),
      warp: this.warp,
    };
  }

  origin(): Origin {
    return { op: this.site.op, place: this.place() };
  }

  /** An ordinary access by this agent in its present step. */
  access(timeline: Timeline, mode: Access["mode"], member: number): Access {
    const { agent, count } = timeline;
    return { agent, count, ...this.origin(), mode, proxy: "generic", member };
  }

  /** Releases what this agent knows. */
  publish(): Knowledge {
    return this.timeline?.publish() ?? Knowledge.none;
  }

  acquire(knowledge: Knowledge): void {
    this.timeline?.acquire(knowledge);
  }

  /** Puts the agent aside until `list` is woken and it can pass; the step will run again. */
  wait(list: WaitList, canPass: () => boolean, describe: () => string): Outcome {
    this.waitingFor = describe;
    list.add(this, canPass);
    return "blocked";
  }

  /** Puts the agent aside until something that it has polled changes; the step will run again. */
  waitForChange(polled: PolledVersions, describe: () => string): Outcome {
    this.waitingFor = describe;
    waitForChange(this, polled);
    return "blocked";
  }

  /** Notes what the agent looks at, with its version before the agent itself changes it. */
  polls(looked: Polled): void {
    const polled = this.poll?.polled;
    if (polled !== undefined && !polled.has(looked)) polled.set(looked, looked.version);
  }

  resume(): void {
    this.waitingFor = undefined;
    this.position -= 1;
    this.machine.ready(this);
  }

  /** Starts the warps at the present position with all this agent knows. */
  fork(indexSlot: number): void {
    // The step after this one belongs to the warps.
    const start = this.position;
    this.warps = Array.from({ length: this.machine.program.kernel.warps }, (_, warp) => {
      const groups = (this.#groupsOfWarps[warp] ??= new CopyGroups());
      const tensor = (this.#tensorOfWarps[warp] ??= new TensorQueue());
      const agent = new Agent(this.block, this.thread, { parent: this, warp, groups, tensor });
      agent.position = start;
      agent.slots[indexSlot] = warp;
      return agent;
    });
    this.timeline?.tick();
    for (const agent of this.warps) this.machine.ready(agent);
  }

  /** Groups of copies that it can wait for: a thread for those of its warps, too. */
  get awaitable(): readonly CopyGroups[] {
    return [this.groups, ...this.#groupsOfWarps];
  }

  warpsEnded(): boolean {
    return this.warps.every(({ ended }) => ended);
  }

  /** Takes over what the warps know once all have ended; false before. */
  join(): boolean {
    if (!this.warpsEnded()) return false;
    const before = new Map(this.phases);
    for (const warp of this.warps) {
      this.acquire(warp.publish());
      for (const element of warp.unevenWaits) this.unevenWaits.add(element);
      for (const [element, phase] of warp.phases)
        this.#takeOver(element, phase, before.get(element) ?? 0);
    }
    this.warps = [];
    return true;
  }

  /** A thread has waited for what any of its warps has waited for; those that did wait should agree. */
  #takeOver(element: BarrierElement, phase: number, before: number): void {
    if (phase === before) return;
    const known = this.phases.get(element) ?? 0;
    if (known !== before && known !== phase) this.unevenWaits.add(element);
    this.phases.set(element, Math.max(phase, known));
  }
}
