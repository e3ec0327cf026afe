/**
 * The machine: a grid on its way through a simulated GPU. Clusters start in order while they fit
 * for them; the schedule decides which agent or asynchronous operation goes on; the run ends when
 * nothing can happen any more, which is a deadlock unless everything has ended.
 */
import { packedBytes } from "../formats/dtype.ts";
import { lanesPerWarp, residentBlocks } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import { Random } from "../support/random.ts";
import { Agent } from "./agent.ts";
import type { AgentMachine, AsyncOperation, Program } from "./agent.ts";
import type { Allocation } from "./allocation.ts";
import { Cluster } from "./block.ts";
import { Checker } from "./checker.ts";
import { reportDeadlock } from "./deadlock.ts";
import type { WaitGraph } from "./deadlock.ts";
import { sharedFootprint } from "./footprint.ts";
import type { Grid } from "./grid.ts";
import { Memory } from "./memory.ts";
import { reportUnwrittenOutputs } from "./outputs.ts";
import { hasNarrowScope, SemaphoreArray, reportUnrestored } from "./semaphores.ts";
import { Findings, RunStopped } from "./reports.ts";
import type { Statistics } from "./reports.ts";
import { createSchedule } from "./scheduler.ts";
import type { Schedule, ScheduleName } from "./scheduler.ts";
import type { RunTimeline } from "./timeline.ts";
import type { SlotValue } from "./values.ts";
import { isView, product, wholeView } from "./view.ts";

export interface MachineOptions {
  readonly target: Target;
  readonly schedule: ScheduleName;
  readonly seed: number;
  readonly checks: boolean;
  readonly maxFindings: number;
  readonly onPrint: (line: string) => void;
  readonly timeline?: RunTimeline | undefined;
  readonly onDeadlock?: ((waits: WaitGraph) => void) | undefined;
}

/** Of so many requests for work of others one is given none, though there is some. */
const refusals = 8;

/** How many steps are taken between two looks at the time. */
const stepsPerLook = 4;

export class Machine implements AgentMachine {
  readonly program: Program;
  readonly grid: Grid;
  readonly axes: readonly string[];
  readonly checks: boolean;
  readonly checker: Checker | undefined;
  readonly findings: Findings;
  readonly print: (line: string) => void;
  readonly onDeadlock: ((waits: WaitGraph) => void) | undefined;
  readonly statistics: Statistics = { steps: 0, blocks: 0, copies: 0, bytes: 0, switches: 0 };
  readonly #schedule: Schedule;
  readonly #timeline: RunTimeline | undefined;
  readonly #parameters: readonly SlotValue[];
  readonly #gridAllocated: SlotValue[];
  readonly #freeShared: Memory[][] = [];
  /** How many clusters fit at once. */
  readonly #room: number;
  readonly #running = new Set<Cluster>();
  /** Clusters up to this one have started, or were taken. */
  #started = 0;
  readonly #random: Random;
  /** Those behind it that others have taken. */
  readonly #taken = new Set<number>();
  #agents = 0;
  #current: Agent | undefined;

  constructor(
    program: Program,
    grid: Grid,
    parameters: readonly SlotValue[],
    options: MachineOptions,
  ) {
    this.program = program;
    this.grid = grid;
    this.axes = program.kernel.grid.map(({ name }) => name);
    this.checks = options.checks;
    this.findings = new Findings(options.maxFindings);
    this.checker = options.checks ? new Checker(this.findings) : undefined;
    this.print = options.onPrint;
    this.onDeadlock = options.onDeadlock;
    this.#timeline = options.timeline;
    this.#random = new Random(options.seed);
    this.#schedule = createSchedule(
      options.schedule,
      new Random(options.seed),
      { dimensions: grid.dimensions, grid: program.kernel.grid },
      options.target,
    );
    this.#parameters = parameters;
    this.#gridAllocated = program.allocations.map((allocation, site) =>
      allocation.sharing === "grid" ? this.#allocateGlobal(allocation, site) : undefined,
    );
    const { kernel } = program;
    const threads = kernel.threads.length * kernel.warps * lanesPerWarp;
    const resident = residentBlocks(options.target, threads, sharedFootprint(kernel));
    this.#room = Math.max(1, Math.floor(resident / grid.blocksPerCluster));
  }

  /** Runs until everything has ended (true) or it is to pause (false). */
  run(isPaused: () => boolean): boolean {
    try {
      while (this.#advance()) if (isPaused()) return false;
      if (this.#running.size > 0) reportDeadlock(this);
      if (this.checks) {
        reportUnwrittenOutputs(this.findings, this.program.kernel, this.#parameters);
        reportUnrestored(this.findings, this.#gridAllocated);
      }
    } catch (error) {
      if (!(error instanceof RunStopped)) throw error;
    }
    return true;
  }

  /** Takes a few steps; false where nothing is left to do. */
  #advance(): boolean {
    const agent = this.#current ?? this.#choose();
    if (agent === undefined) return false;
    this.#current = agent === "none" ? undefined : this.#runSteps(agent);
    return true;
  }

  /** The agent to run; "none" where something else happened instead. */
  #choose(): Agent | "none" | undefined {
    const choice = this.#schedule.next(this.#canStart());
    if (choice === undefined) return undefined;
    if (choice === "start") this.#startCluster();
    else if (choice instanceof Agent) {
      this.statistics.switches += 1;
      return choice;
    } else choice.issuer.block.cluster.complete(choice);
    return "none";
  }

  /** Runs the agent a few steps; gives it back where it may go on. */
  #runSteps(agent: Agent): Agent | undefined {
    const { steps, sites } = this.program;
    for (let taken = 0; taken < stepsPerLook; taken++) {
      const position = agent.position++;
      const step = steps[position];
      const site = sites[position];
      if (step === undefined || site === undefined) throw new Error("the program has no end");
      const clock = this.#schedule.clock;
      const count = this.statistics.steps++;
      const from = clock === undefined ? count : agent.cycles;
      const outcome = step(agent);
      const to =
        clock === undefined || outcome === "blocked" ? from + 1 : clock.passed(agent, site.op);
      this.#timeline?.stepped(agent, site, outcome, from, to);
      if (outcome === "proceed") continue;
      if (outcome === "blocked" || outcome === "ended") return undefined;
      if (outcome === "switch") agent.changes += 1;
      if (this.#schedule.interrupts(agent)) {
        this.#schedule.ready(agent);
        return undefined;
      }
    }
    return agent;
  }

  #skipTaken(): void {
    while (this.#taken.delete(this.#started)) this.#started += 1;
  }

  #canStart(): boolean {
    this.#skipTaken();
    return this.#started < this.grid.clusters && this.#running.size < this.#room;
  }

  takeBlock(): number | undefined {
    const left = this.#notStarted();
    const isRefused = !this.#schedule.immediate && this.#random.below(refusals) === 0;
    const taken = left[this.#random.below(Math.max(1, left.length))];
    if (taken === undefined || isRefused) return undefined;
    this.#taken.add(taken);
    return taken * this.grid.blocksPerCluster;
  }

  /** Clusters that may still start. */
  #notStarted(): readonly number[] {
    const count = this.grid.clusters - this.#started;
    const all = Array.from({ length: count }, (_, at) => this.#started + at);
    return all.filter((cluster) => !this.#taken.has(cluster));
  }

  #startCluster(): void {
    const cluster = new Cluster(this, this.grid.clusterBlocks(this.#started++));
    this.#skipTaken();
    this.#running.add(cluster);
    this.statistics.blocks += cluster.blocks.length;
    const { parameterSlots } = this.program;
    for (const block of cluster.blocks)
      for (const agent of block.agents) {
        for (const [position, slot] of parameterSlots.entries())
          agent.slots[slot] = this.#parameters[position];
        this.#schedule.ready(agent);
      }
  }

  clusterEnded(cluster: Cluster): void {
    cluster.finish();
    this.#running.delete(cluster);
    for (const block of cluster.blocks) block.release();
  }

  /** Clusters that have started and not ended. */
  get running(): ReadonlySet<Cluster> {
    return this.#running;
  }

  /** How many blocks have not started. */
  get blocksNotStarted(): number {
    return (this.grid.clusters - this.#started - this.#taken.size) * this.grid.blocksPerCluster;
  }

  newAgentNumber(): number {
    return this.#agents++;
  }

  ready(agent: Agent): void {
    this.#schedule.ready(agent);
  }

  issue(operation: AsyncOperation): void {
    this.#timeline?.issued(operation.origin, this.#time(operation.issuer));
    if (this.#schedule.immediate) {
      this.complete(operation);
      return;
    }
    operation.issuer.block.cluster.pending.add(operation);
    this.#schedule.issue(operation);
  }

  complete(operation: AsyncOperation): void {
    const completed = operation.complete();
    this.#timeline?.completed(completed, this.#schedule.clock?.now ?? this.statistics.steps);
  }

  /** When an agent is, in steps or in cycles. */
  #time({ cycles }: Agent): number {
    return this.#schedule.clock === undefined ? this.statistics.steps : cycles;
  }

  allocation(site: number): Allocation {
    const allocation = this.program.allocations[site];
    if (allocation === undefined) throw new Error(`there is no allocation ${site}`);
    return allocation;
  }

  gridAllocation(site: number): SlotValue {
    return this.#gridAllocated[site];
  }

  #allocateGlobal({ op, shape }: Allocation, site: number): SlotValue {
    if (op.kind === "alloc_semaphore") {
      const narrow = this.checks && hasNarrowScope(this.program.kernel, op);
      return new SemaphoreArray(op, shape, narrow);
    }
    if (op.kind !== "alloc") throw new Error(`${op.kind} is not in global memory`);
    const { dtype, name = "the gmem scratch" } = op.attributes;
    const bytes = new Uint8Array(packedBytes(dtype, product(shape)));
    const description = {
      name,
      space: "gmem",
      location: op.location,
      site,
    } as const;
    const granuleBytes = dtype.bits / 8;
    const memory = new Memory(
      description,
      bytes,
      this.checks ? { granuleBytes, initialised: false } : undefined,
    );
    bytes.fill(255);
    return wholeView(memory, dtype, shape);
  }

  /** Shared or tensor memory for an allocation, used before or new. */
  takeShared(site: number): Memory {
    const used = this.#freeShared[site]?.pop();
    if (used !== undefined) return used;
    const { op, bytes, granuleBytes } = this.allocation(site);
    const space = op.kind === "alloc_tmem" ? "tmem" : "smem";
    const usual = op.kind === "alloc_union" ? "the union" : `the ${space} buffer`;
    const { name = usual } = op.attributes;
    return new Memory(
      { name, space, location: op.location, site },
      new Uint8Array(bytes),
      this.checks ? { granuleBytes, initialised: false } : undefined,
    );
  }

  giveShared(site: number, value: SlotValue): void {
    if (!isView(value)) return;
    (this.#freeShared[site] ??= []).push(value.memory);
  }
}
