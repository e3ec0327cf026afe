/**
 * What orders accesses to tensor memory. `tcgen05` runs beside its warp, and what is synchronised otherwise counts
 * for it only between two fences:
 *
 *   warp 0   tcgen05.st   wait::st   fence::before_thread_sync   bar.sync
 *   warp 1                                                       bar.sync   fence::after_thread_sync   tcgen05.mma
 *
 * For each warp there are therefore two clocks. The *plain* one is what synchronisation has told it. The *fenced*
 * one is what its instructions on tensor memory may rely on: accesses that its own waits have ended, and at
 * `fence::after_thread_sync` what others knew at the `fence::before_thread_sync` that the plain one tells of. An
 * access that only the plain one has lacks a fence; one that neither has is a race.
 *
 * Some instructions stay in order without any wait, as far as the second one's issuer knows of the first one's issue:
 *
 * | first                                  | second                               |
 * |----------------------------------------|--------------------------------------|
 * | mma on an accumulator, of a shape and kind | mma on the same, of the same     |
 * | cp                                     | mma                                  |
 * | shift                                  | mma, cp.4x256b                       |
 * | mma                                    | shift                                |
 */
import { AsyncAgents } from "../../happens-before/async-agents.ts";
import { Clock } from "../../happens-before/clock.ts";
import { Knowledge } from "../../happens-before/knowledge.ts";
import type { Epoch } from "../../happens-before/knowledge.ts";
import { clusterAgent, finishedOperations } from "../asynchronous.ts";
import type { BlockView, CollectiveInstruction, MachineView, WarpView } from "../collective.ts";
import { noteOnce, reportOnce } from "../reports.ts";
import { allocationOf, columns, laneGroup, lanes } from "./state.ts";
import type { TensorAccess, TensorRange } from "./state.ts";

/** How many issues of a kind are remembered, for issuers that only know of older ones. */
const rememberedIssues = 256;

interface IssueMark {
  readonly count: number;
  /** What is done once that instruction is, and whatever it stayed in order with. */
  readonly done: Clock;
}

/** Clocks of fences, by the agent and step that tells of them; of a cluster. */
const fences = new WeakMap<object, Map<number, Clock[]>>();

function fencesOf({ cluster }: BlockView): Map<number, Clock[]> {
  const known = fences.get(cluster) ?? new Map<number, Clock[]>();
  fences.set(cluster, known);
  return known;
}

const orders = new WeakMap<WarpView, TensorOrder>();
const clusterOrders = new WeakMap<object, Set<TensorOrder>>();

/** What a warp may rely on in tensor memory. */
export class TensorOrder {
  readonly #warp: WarpView;
  readonly #machine: MachineView;
  readonly #issueAgent: number;
  #issues = 0;
  readonly #fenceAgent: number;
  #fenceCount = 0;
  readonly #pool: AsyncAgents;
  readonly #commits: AsyncAgents;
  #fenced = Clock.empty;
  /** What relaxed waits told, which the fences make good. */
  #found = Clock.empty;
  readonly #marks = new Map<string, IssueMark[]>();
  readonly #open: { [K in "ld" | "st"]: Epoch[] } = { ld: [], st: [] };

  constructor(machine: MachineView, warp: WarpView) {
    this.#machine = machine;
    this.#warp = warp;
    this.#issueAgent = clusterAgent(machine, warp);
    this.#fenceAgent = clusterAgent(machine, warp);
    this.#pool = new AsyncAgents(() => clusterAgent(machine, warp));
    this.#commits = new AsyncAgents(() => clusterAgent(machine, warp));
  }

  get fenced(): Clock {
    return this.#fenced;
  }

  /** What synchronisation has told, fenced or not. */
  get plain(): Clock {
    return (this.#warp.timeline?.knowledge.generic ?? Clock.empty)
      .join(this.#found)
      .join(this.#fenced);
  }

  get knowledge(): Knowledge {
    return new Knowledge(this.plain, this.#fenced, this.#fenced);
  }

  /** A step for an access of its own. */
  take(side: "read" | "write"): Epoch {
    return this.#pool.take(side, this.#fenced);
  }

  /** The warp itself has waited for an access. */
  finish(epoch: Epoch): void {
    this.#fenced = this.#fenced.with(epoch.agent, epoch.count);
    this.#warp.timeline?.finish(epoch);
  }

  open(kind: "ld" | "st", epoch: Epoch): void {
    this.#open[kind].push(epoch);
  }

  /** `tcgen05.wait::ld` or `::st`. */
  wait(kind: "ld" | "st"): void {
    for (const epoch of this.#open[kind]) this.finish(epoch);
    this.#open[kind] = [];
  }

  /** `tcgen05.fence::before_thread_sync`: whoever learns of this step may rely on what is known here. */
  fenceBefore(): void {
    this.#fenceCount += 1;
    keepClock(this.#warp, { agent: this.#fenceAgent, count: this.#fenceCount }, this.#fenced);
    this.#warp.timeline?.finish({ agent: this.#fenceAgent, count: this.#fenceCount });
  }

  /** `tcgen05.fence::after_thread_sync`. */
  fenceAfter(): void {
    const { found, timeline } = this.#warp;
    this.#found = this.#found.join(found.generic);
    // That what a commit told of is over holds for shared memory as well.
    timeline?.acquire(finishedOperations(this.#warp, found));
    const { plain } = this;
    for (const [agent, clocks] of fencesOf(this.#warp.block)) {
      const clock = clocks[plain.get(agent)];
      if (clock !== undefined) this.#fenced = this.#fenced.join(clock);
    }
  }

  /** The step by which others learn of a commit's fence. */
  takeCommit(): Epoch {
    return this.#commits.take("write", this.plain);
  }

  /** What an instruction relies on that stays in order with issues of these kinds. */
  withOrdered(kinds: readonly string[]): Knowledge {
    let fenced = this.#fenced;
    let { plain } = this;
    for (const other of clusterOrders.get(this.#warp.block.cluster) ?? [])
      for (const kind of kinds) {
        const marks = other.#marks.get(kind);
        if (marks === undefined) continue;
        const agent = other.#issueAgent;
        fenced = fenced.join(markAt(marks, this.#fenced.get(agent)));
        plain = plain.join(markAt(marks, plain.get(agent)));
      }
    return new Knowledge(plain.join(fenced), fenced, fenced);
  }

  /** Remembers an issue of some kinds, whose accesses are these steps and which relied on `known`. */
  issued(kinds: readonly string[], known: Knowledge, epochs: readonly Epoch[]): Clock {
    this.#issues += 1;
    this.#fenced = this.#fenced.with(this.#issueAgent, this.#issues);
    this.#warp.timeline?.finish({ agent: this.#issueAgent, count: this.#issues });
    const own = epochs.reduce((all, { agent, count }) => all.with(agent, count), known.shared);
    for (const kind of kinds) {
      const marks = this.#marks.get(kind) ?? [];
      this.#marks.set(kind, marks);
      marks.push({ count: this.#issues, done: own.join(marks.at(-1)?.done ?? Clock.empty) });
      if (marks.length > 2 * rememberedIssues) marks.splice(0, rememberedIssues);
    }
    return own;
  }

  get machine(): MachineView {
    return this.#machine;
  }
}

/** What is done with the last issue that a count includes. */
function markAt(marks: readonly IssueMark[], count: number): Clock {
  for (let at = marks.length - 1; at >= 0; at--) {
    const mark = marks[at];
    if (mark !== undefined && mark.count <= count) return mark.done;
  }
  return Clock.empty;
}

/** Keeps what whoever learns of a step may rely on behind a fence. */
export function keepClock({ block }: WarpView, { agent, count }: Epoch, clock: Clock): void {
  const all = fencesOf(block);
  const clocks = all.get(agent) ?? [];
  all.set(agent, clocks);
  clocks[count] = clock;
}

/** The order of a warp; undefined without checks. */
export function orderOf(machine: MachineView, warp: WarpView): TensorOrder | undefined {
  if (warp.timeline === undefined) return undefined;
  const known = orders.get(warp);
  if (known !== undefined) return known;
  const made = new TensorOrder(machine, warp);
  orders.set(warp, made);
  const all = clusterOrders.get(warp.block.cluster) ?? new Set<TensorOrder>();
  clusterOrders.set(warp.block.cluster, all);
  all.add(made);
  return made;
}

/** Who accesses tensor memory. */
export interface TensorIssuer {
  readonly machine: MachineView;
  readonly warp: WarpView;
  readonly instruction: CollectiveInstruction;
}

/** Checks an access to ranges of tensor memory, and remembers it. The ranges must be allocated. */
export function recordTensor(
  issuer: TensorIssuer,
  ranges: readonly TensorRange[],
  mode: "read" | "write",
  epoch: Epoch,
  known: Knowledge,
): void {
  const { machine, warp, instruction } = issuer;
  for (const range of ranges) {
    const owner = allocationOf(machine, instruction, warp.title, range);
    const access: TensorAccess = {
      ...epoch,
      ...{ mode, proxy: "async", member: 0, op: instruction.instruction, instruction },
      warp: warp.index,
      block: warp.block.index,
    };
    const cursor = owner.shadow.begin(access, known);
    for (let group = 0; group < lanes / laneGroup; group++)
      if (((range.groups >> group) & 1) === 1)
        cursor.run(group * owner.columns + range.column - owner.first, range.columns);
    for (const conflict of cursor.conflicts)
      if (conflict.kind === "race") {
        const group = Math.floor(conflict.granule / owner.columns);
        const column = owner.first + (conflict.granule % owner.columns);
        const { earlier, missing } = conflict;
        reportConflict(issuer, earlier, missing, group * laneGroup, column);
      }
  }
}

/** What ends an access of an instruction, for those that come after it. */
function endOf({ instruction: { modifiers } }: TensorAccess): string {
  const [operation] = modifiers;
  if (operation === "ld" || operation === "st")
    return `tcgen05.wait::${operation} in the warp of the ${operation}, and synchronisation`;
  if (operation === "alloc" || operation === "dealloc") return "synchronisation between the two";
  return "tcgen05.commit behind it, and a wait for its mbarrier";
}

function reportConflict(
  { machine, warp, instruction }: TensorIssuer,
  earlier: TensorAccess,
  missing: "order" | "fence",
  lane: number,
  column: number,
): void {
  const { opcode } = instruction.instruction;
  const other = earlier.instruction;
  const who = `${opcode} of ${warp.title}`;
  const notes = [
    { message: `the other access is ${other.instruction.opcode}`, location: other.location },
  ];
  const found = `both touch lane ${lane} and those behind it, column ${column % columns}`;
  if (missing === "order") {
    reportOnce(machine, instruction, {
      code: "TW8085",
      message: `${who} is not ordered with ${other.instruction.opcode} of ${machine.naming.warp(earlier.warp, earlier.block)}`,
      location: instruction.location,
      expected: endOf(earlier),
      found,
      notes,
    });
    return;
  }
  // Other compilers leave these fences out; they know what their assembler makes of it.
  const say = machine.isOwn ? reportOnce : noteOnce;
  say(machine, instruction, {
    code: "TW8086",
    message: `${who} comes after ${other.instruction.opcode} without tcgen05.fence`,
    location: instruction.location,
    expected:
      "tcgen05.fence::before_thread_sync before the synchronisation, tcgen05.fence::after_thread_sync behind it",
    found,
    notes,
  });
}
