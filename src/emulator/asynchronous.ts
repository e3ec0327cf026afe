/**
 * Operations that run beside the warp that issued them: what they may rely on, and what their end tells.
 *
 *   warp        issue ───────────────────────── wait
 *                 │ accesses are checked here      ▲ learns that both are finished
 *   operation     └─ ─ source read ─ ─ written ────┘
 *
 * An operation relies on what its issuer knew at the time; reads and writes are steps of agents of their
 * own, which nobody knows of before the operation is awaited.
 */
import { Clock } from "../happens-before/clock.ts";
import { completion, Knowledge } from "../happens-before/knowledge.ts";
import type { Epoch } from "../happens-before/knowledge.ts";
import { AsyncAgents } from "../happens-before/async-agents.ts";
import { mapOrderOf } from "./checks/tensor-map-order.ts";
import type {
  Collective,
  CollectiveInstruction,
  MachineView,
  Place,
  WarpView,
} from "./collective.ts";

const agents = {
  async: new WeakMap<WarpView, AsyncAgents>(),
  generic: new WeakMap<WarpView, AsyncAgents>(),
};

/** Agents of the asynchronous proxy that warps of a cluster have used. */
const agentsOfCluster = new WeakMap<object, number[]>();

function agentsOf(machine: MachineView, warp: WarpView, proxy: IssueProxy): AsyncAgents {
  const known = agents[proxy].get(warp);
  if (known !== undefined) return known;
  const made = new AsyncAgents(() =>
    proxy === "async" ? clusterAgent(machine, warp) : machine.newAgent(),
  );
  agents[proxy].set(warp, made);
  return made;
}

/** A fresh agent whose steps arrivals tell other blocks of the cluster of, whatever their scope. */
export function clusterAgent(machine: MachineView, { block }: WarpView): number {
  const all = agentsOfCluster.get(block.cluster) ?? [];
  agentsOfCluster.set(block.cluster, all);
  const agent = machine.newAgent();
  all.push(agent);
  return agent;
}

/** Of what a warp knows, the end of operations by the asynchronous proxy. */
export function finishedOperations({ block }: WarpView, { generic }: Knowledge): Knowledge {
  const clock = (agentsOfCluster.get(block.cluster) ?? []).reduce(
    (all, agent) => all.with(agent, generic.get(agent)),
    Clock.empty,
  );
  return new Knowledge(clock, clock, clock);
}

/** For agents of the ordinary proxy, those that stand for them behind a proxy fence. */
const fencedAgents = new WeakMap<MachineView, Map<number, number>>();

function fencedAgent(machine: MachineView, agent: number): number {
  const all = fencedAgents.get(machine) ?? new Map<number, number>();
  fencedAgents.set(machine, all);
  const found = all.get(agent) ?? machine.newAgent();
  all.set(agent, found);
  return found;
}

/** Who issues an operation. */
export interface Issuer {
  readonly machine: MachineView;
  readonly warp: WarpView;
  readonly lane: number;
  readonly instruction: CollectiveInstruction;
}

/** Through which proxy an operation sees memory: that of TMA, or that of ordinary accesses. */
export type IssueProxy = "async" | "generic";

export class Issue {
  readonly issuer: Issuer;
  readonly #proxy: IssueProxy;
  readonly #known: Knowledge | undefined;
  readonly #read: Epoch | undefined;
  readonly #write: Epoch | undefined;

  constructor(issuer: Issuer, proxy: IssueProxy) {
    this.issuer = issuer;
    this.#proxy = proxy;
    const { machine, warp } = issuer;
    if (warp.timeline === undefined) return;
    this.#known = warp.timeline.knowledge;
    const pool = agentsOf(machine, warp, proxy);
    this.#read = pool.take("read", this.#known.generic);
    this.#write = pool.take("write", this.#known.generic);
  }

  /** Whether accesses are checked at all. */
  get checked(): boolean {
    return this.#known !== undefined;
  }

  /** Checks an access that the operation will make, for a lane of its own where several lanes issued it. */
  record(
    place: Place,
    bytes: number,
    mode: "read" | "write" | "atomic",
    lane = this.issuer.lane,
  ): void {
    if (mode !== "read") this.issuer.machine.wrote(place, bytes);
    const epoch = mode === "read" ? this.#read : this.#write;
    if (this.#known === undefined || epoch === undefined || bytes === 0) return;
    if (place.space !== "shared" && place.space !== "global") return;
    const known = this.#known;
    const { machine, warp, instruction } = this.issuer;
    const proxy = this.#proxy;
    const fencedBy = proxy === "generic" ? fencedAgent(machine, epoch.agent) : undefined;
    machine.record({ place, bytes, mode, proxy, epoch, known, warp, lane, instruction, fencedBy });
  }

  /** Checks that the operation may read the tensor map at a place. */
  recordMap(place: Place, bytes: number): void {
    if (this.#known === undefined || this.#read === undefined || place.space !== "global") return;
    const { machine, warp, lane, instruction } = this.issuer;
    const { generic, shared } = this.#known;
    const visible = mapOrderOf(machine).visible(this.#known, place.offset);
    machine.record({
      ...{ place, bytes, mode: "read", proxy: "async", warp, lane, instruction, ofMap: true },
      epoch: this.#read,
      known: new Knowledge(generic, shared, visible),
    });
  }

  /** What whoever waits for the source to have been read may rely on. */
  get sourceRead(): Knowledge {
    return this.#after([this.#read]);
  }

  /** What whoever waits for all of it may rely on. */
  get finished(): Knowledge {
    return this.#after([this.#read, this.#write]);
  }

  #after(epochs: readonly (Epoch | undefined)[]): Knowledge {
    if (this.#known === undefined) return Knowledge.none;
    const steps = epochs.filter((epoch) => epoch !== undefined);
    if (this.#proxy === "async") return completion(this.#known, steps);
    const clock = steps.reduce((all, { agent, count }) => all.with(agent, count), Clock.empty);
    const { machine } = this.issuer;
    const fenced = steps.reduce(
      (all, { agent, count }) => all.with(fencedAgent(machine, agent), count),
      clock,
    );
    // Compilers in the field let wgmma read what cp.async brought without a fence, and it works.
    return new Knowledge(fenced, clock, Clock.empty);
  }

  /** Tells the issuer, who waited, that the source is read or that all is done. */
  tell(part: "source" | "all"): void {
    this.issuer.warp.timeline?.acquire(part === "source" ? this.sourceRead : this.finished);
  }
}

/** Checks an ordinary access that a lane makes now. */
export function recordOrdinary(
  { machine, warp, lane, instruction }: Issuer,
  place: Place,
  bytes: number,
  mode: "read" | "write" | "atomic",
): void {
  if (mode !== "read") machine.wrote(place, bytes);
  const epoch = warp.timeline;
  if (epoch === undefined) return;
  const known = epoch.knowledge;
  machine.record({ place, bytes, mode, proxy: "generic", epoch, known, warp, lane, instruction });
}

/** The lanes of a mask, lowest first. */
export function lanesOf(mask: number): readonly number[] {
  const lanes: number[] = [];
  for (let rest = mask; rest !== 0; rest &= rest - 1) lanes.push(31 - Math.clz32(rest & -rest));
  return lanes;
}

/** What each lane does by itself. */
export function forLanes(
  instruction: CollectiveInstruction,
  run: (issuer: Issuer) => void,
): Collective {
  return {
    aligned: false,
    run: ({ machine, warp, mask }) => {
      for (const lane of lanesOf(mask)) run({ machine, warp, lane, instruction });
      return "done";
    },
  };
}
