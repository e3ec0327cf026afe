/**
 * The checker: takes every access to the shadow of its memory, and turns what the shadow finds into
 * reports. A thread's end, a block's end and the end of a scope count as writes to all of the memory
 * that goes away: whatever is not ordered before them might still be using it.
 */
import type { AnyOp } from "../ir/node.ts";
import type { Agent } from "./agent.ts";
import { BarrierArray } from "./barriers.ts";
import type { Block } from "./block.ts";
import {
  reportConflict,
  reportLateUse,
  reportLeftovers,
  reportUnawaited,
} from "./race-messages.ts";
import type { Memory } from "./memory.ts";
import type { Access, AccessMode, Origin } from "../happens-before/access.ts";
import type { Issue } from "./asynchronous.ts";
import type { Epoch, Knowledge } from "../happens-before/knowledge.ts";
import { commonScope } from "../happens-before/memory-scopes.ts";
import type { Scope } from "../happens-before/memory-scopes.ts";
import type { ShadowCursor, ShadowMemory } from "../happens-before/shadow.ts";
import type { Findings } from "./reports.ts";
import { inMemoryOrder, isView, visitRuns } from "./view.ts";
import type { View } from "./view.ts";

export class Checker {
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** An ordinary access by the agent's running step; of one that others may make at the same time with its scope. */
  ordinary(agent: Agent, view: View, mode: Access["mode"], scope?: Scope): void {
    const { timeline } = agent;
    if (timeline === undefined) return;
    if (view.memory.owner !== undefined && view.memory.owner !== agent.block)
      view.memory.usedFromOutside = true;
    const access = agent.access(timeline, mode, view.member);
    const strong =
      scope === undefined
        ? access
        : { ...commonScope(agent.block, scope), wantsContents: mode === "observe", ...access };
    this.#touch(view, strong, timeline.knowledge);
  }

  /** An access by an asynchronous operation whose issuer knows `knowledge`. */
  asynchronous(
    origin: Origin,
    epoch: Epoch,
    knowledge: Knowledge,
    view: View,
    mode: AccessMode,
  ): void {
    view.memory.usedFromOutside = true;
    const { agent, count } = epoch;
    const access: Access = { agent, count, ...origin, mode, proxy: "async", member: view.member };
    this.#touch(view, access, knowledge);
  }

  #touch(view: View, access: Access, knowledge: Knowledge): void {
    const { memory } = view;
    if (memory.shadow === undefined) return;
    const cursor = memory.shadow.begin(access, knowledge);
    visitGranules(view, memory, cursor);
    this.#reportAll(memory, access, cursor);
    if (view.dtype.bits !== 4 || access.mode !== "read") return;
    // Loads take whole bytes, so that they meet stores to the other half.
    const halves: Access = { ...access, mode: "observe" };
    const around = memory.shadow.begin(halves, knowledge);
    visitOtherHalves(view, memory, around);
    this.#reportAll(memory, halves, around);
  }

  #reportAll(memory: Memory, access: Access, cursor: ShadowCursor): void {
    for (const conflict of cursor.conflicts)
      if (conflict.kind === "race" && isEnding(conflict.earlier))
        reportLateUse(this.#findings, memory.description.name, access, conflict.earlier);
      else reportConflict(this.#findings, memory, conflict);
  }

  /** The memory goes away when `ending` is done, by an agent that knows `knowledge`. */
  release(memory: Memory, agent: Agent, ending: AnyOp, knowledge: Knowledge): void {
    const { shadow, granuleBytes } = memory;
    // Without a cluster nobody can come later, and the block's own threads are known to have ended.
    const isWatched = memory.usedFromOutside || agent.block.cluster.blocks.length > 1;
    if (shadow === undefined || !isWatched) return;
    const granules = memory.bytes.length / granuleBytes;
    this.#end(shadow, granules, memory.description.name, agent, ending, knowledge);
  }

  #end(
    shadow: ShadowMemory,
    granules: number,
    name: string,
    agent: Agent,
    ending: AnyOp,
    knowledge: Knowledge,
  ): void {
    const { timeline } = agent;
    if (timeline === undefined) return;
    const access: Access = { ...agent.access(timeline, "write", 0), op: ending };
    const cursor = shadow.begin(access, knowledge);
    cursor.run(0, granules);
    for (const conflict of cursor.conflicts)
      if (conflict.kind === "race") reportLateUse(this.#findings, name, conflict.earlier, access);
  }

  /** What an agent must not leave behind when it ends. */
  agentEnded(agent: Agent): void {
    for (const { origin } of agent.products.leftovers()) reportUnawaited(this.#findings, origin);
  }

  blockEnded(block: Block, agent: Agent, ending: AnyOp, knowledge: Knowledge): void {
    for (const value of block.allocated) {
      if (value instanceof BarrierArray) this.barriersEnded(value, agent, ending, knowledge);
      else if (isView(value)) this.release(value.memory, agent, ending, knowledge);
    }
  }

  barriersEnded(barriers: BarrierArray, agent: Agent, ending: AnyOp, knowledge: Knowledge): void {
    const { shadow, elements, name } = barriers;
    if (shadow !== undefined) this.#end(shadow, elements.length, name, agent, ending, knowledge);
  }

  /** What barriers hold once all that could arrive on them has. */
  leftovers(barriers: BarrierArray): void {
    for (const element of barriers.elements)
      reportLeftovers(this.#findings, barriers, element, element.state.leftovers());
  }

  /** An arrival from another block of the cluster. */
  remoteArrival(agent: Agent, barriers: BarrierArray, index: number): void {
    const { timeline } = agent;
    if (timeline === undefined) return;
    this.#arrival(barriers, index, agent.access(timeline, "atomic", 0), timeline.knowledge);
  }

  /** One that an asynchronous operation makes when it is over; the own block's threads are known to have ended. */
  arrivesLater(
    { block }: Agent,
    { origin, writes, knowledge }: Issue,
    barriers: BarrierArray,
    index: number,
  ): void {
    if (writes === undefined || barriers.block === block) return;
    const access: Access = { ...writes, ...origin, mode: "atomic", proxy: "async", member: 0 };
    this.#arrival(barriers, index, access, knowledge);
  }

  #arrival(barriers: BarrierArray, index: number, access: Access, knowledge: Knowledge): void {
    if (barriers.shadow === undefined) return;
    const cursor = barriers.shadow.begin(access, knowledge);
    cursor.run(index, 1);
    for (const conflict of cursor.conflicts)
      if (conflict.kind === "race")
        reportLateUse(this.#findings, barriers.name, access, conflict.earlier);
  }
}

/** Whether the access stands for the end of a block or scope. */
function isEnding({ op }: Access): boolean {
  return op.kind === "yield" || op.kind === "scoped";
}

/** Takes the cursor over the halves of bytes that the view's elements of 4 bits leave out. */
function visitOtherHalves(view: View, { bytes }: Memory, cursor: ShadowCursor): void {
  const last = 2 * bytes.length - 1;
  const touch = (element: number): void => {
    if (element <= last) cursor.run(element, 1);
  };
  visitRuns(inMemoryOrder(view), (element, _element, length, stride) => {
    if (stride === 1) {
      if (element % 2 === 1) touch(element - 1);
      if ((element + length) % 2 === 1) touch(element + length);
    } else for (let i = 0; i < length; i++) touch((element + i * stride) ^ 1);
  });
}

/** Takes the cursor over the granules of the view's elements. */
function visitGranules(view: View, memory: Memory, cursor: ShadowCursor): void {
  const scale = view.dtype.bits / 8 / memory.granuleBytes;
  visitRuns(inMemoryOrder(view), (element, _element, length, stride) => {
    if (stride === 1) cursor.run(element * scale, length * scale);
    else for (let i = 0; i < length; i++) cursor.run((element + i * stride) * scale, scale);
  });
}
