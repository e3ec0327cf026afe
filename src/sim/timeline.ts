/**
 * A run as spans of time, which are counted in steps of the machine, or in modelled cycles under the timed schedule:
 *
 *   load      copy_async 3–4   wait 4–9        copy_async 9–10
 *   its copy        └──────── 4–8 ────────┘
 *   compute   wait 1–8                         load 8–9  store 11–12
 *
 * Steps of one op that follow each other are one span; what an agent waits for and what runs beside it are spans
 * of their own. A long run is recorded up to a number of spans, and `complete` says whether that was all of it.
 */
import type { AnyOp } from "../ir/node.ts";
import type { Origin, Place } from "../happens-before/access.ts";
import type { Agent, Outcome, Site } from "./agent.ts";

export interface Span {
  /** `runs`: steps of an agent; `waits`: an agent put aside; `beside`: an asynchronous operation. */
  readonly kind: "runs" | "waits" | "beside";
  readonly op: AnyOp;
  readonly place: Place;
  readonly from: number;
  /** The step after its last; of a span that nothing has ended, as far as the run came. */
  readonly to: number;
}

type OpenSpan = { -readonly [F in keyof Span]: Span[F] };

const defaultLimit = 20_000;

export class RunTimeline {
  readonly #limit: number;
  readonly #spans: OpenSpan[] = [];
  readonly #latest = new Map<Agent, OpenSpan>();
  readonly #beside = new Map<Origin, OpenSpan>();
  #complete = true;
  #end = 0;

  constructor(limit = defaultLimit) {
    this.#limit = limit;
  }

  /** In the order in which they began. */
  get spans(): readonly Span[] {
    return this.#spans.map((span) => (span.to < 0 ? { ...span, to: this.#end } : span));
  }

  /** Whether the whole run was recorded. */
  get complete(): boolean {
    return this.#complete;
  }

  /** An agent has taken the step of an op, or has found that it must wait. */
  stepped(agent: Agent, site: Site, outcome: Outcome, from: number, to: number): void {
    this.#end = Math.max(this.#end, to);
    const { op } = site;
    const latest = this.#latest.get(agent);
    if (latest?.to === -1) latest.to = from;
    if (outcome === "blocked") this.#begin(agent, site, { kind: "waits", op, from, to: -1 });
    else if (latest?.kind === "runs" && latest.op === op && latest.to === from) latest.to = to;
    else this.#begin(agent, site, { kind: "runs", op, from, to });
  }

  /** An asynchronous operation is on its way. */
  issued(origin: Origin, time: number): void {
    const span = this.#push({ kind: "beside", ...origin, from: time, to: -1 });
    if (span !== undefined) this.#beside.set(origin, span);
  }

  completed(origin: Origin, time: number): void {
    this.#end = Math.max(this.#end, time);
    const span = this.#beside.get(origin);
    if (span !== undefined) span.to = Math.max(time, span.from + 1);
    this.#beside.delete(origin);
  }

  #begin(agent: Agent, site: Site, span: Omit<OpenSpan, "place">): void {
    if (!this.#complete) return;
    const begun = this.#push({ ...span, place: agent.place(site) });
    if (begun === undefined) this.#latest.delete(agent);
    else this.#latest.set(agent, begun);
  }

  #push(span: OpenSpan): OpenSpan | undefined {
    this.#complete &&= this.#spans.length < this.#limit;
    if (!this.#complete) return undefined;
    this.#spans.push(span);
    return span;
  }
}
