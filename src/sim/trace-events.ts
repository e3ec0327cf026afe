/**
 * A timeline as trace events, the JSON that Perfetto and the browsers' own profilers open. A block is a process,
 * a program thread or warp is a thread of it, and what runs beside a thread lies on tracks of its own:
 *
 *   block (i = 0)   load                 ■ copy_async   ▒ waits: barrier_wait
 *                   load, beside 1         ████████ copy_async
 *                   load, beside 2             ███████ copy_async
 *
 * One step counts as a microsecond, which is the unit of the format.
 */
import { formatPosition } from "../support/location.ts";
import type { Span } from "./timeline.ts";

/** A span on a track: a row of a drawing in which no two spans overlap. */
export interface TrackSpan {
  readonly span: Span;
  readonly block: string;
  readonly track: string;
}

/** The spans with their tracks, blocks and threads in the order in which they begin. */
export function spanTracks(spans: readonly Span[]): readonly TrackSpan[] {
  /** When the latest span of each track beside a thread ends. */
  const ends = new Map<string, number[]>();
  return spans.map((span) => {
    const { thread, warp, axes, block } = span.place;
    const index = axes.map((axis, position) => `${axis} = ${block[position] ?? 0}`).join(", ");
    const agent = warp === undefined ? thread : `${thread}, warp ${warp}`;
    const name = index === "" ? "block" : `block (${index})`;
    if (span.kind !== "beside") return { span, block: name, track: agent };
    const key = `${name} ${agent}`;
    const used = ends.get(key) ?? [];
    ends.set(key, used);
    const free = used.findIndex((end) => end <= span.from);
    const place = free < 0 ? used.length : free;
    used[place] = span.to;
    return { span, block: name, track: `${agent}, beside ${place + 1}` };
  });
}

export interface TraceEvent {
  readonly name: string;
  readonly ph: "X" | "M";
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly cat?: string;
  readonly args: { readonly [name: string]: string };
}

/** Numbers for names, from 1, in the order in which they are met. */
class Numbers {
  readonly #numbers = new Map<string, number>();

  of(name: string, meet: (number: number) => void): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    const number = this.#numbers.size + 1;
    this.#numbers.set(name, number);
    meet(number);
    return number;
  }
}

/** What an event tells: a name on a track of a block, from one time to another. */
export interface TracedSpan {
  readonly name: string;
  readonly category: string;
  readonly block: string;
  readonly track: string;
  readonly from: number;
  readonly to: number;
  readonly args: TraceEvent["args"];
}

export interface TraceDocument {
  readonly traceEvents: readonly TraceEvent[];
}

/** A run on the simulator. */
export function traceEvents(spans: readonly Span[]): TraceDocument {
  return traceDocument(
    spanTracks(spans).map(({ span, block, track }) => ({ ...tracedSpan(span), block, track })),
  );
}

/** Spans of any kind; one unit of their time counts as a microsecond. */
export function traceDocument(spans: readonly TracedSpan[]): TraceDocument {
  const events: TraceEvent[] = [];
  const blocks = new Numbers();
  const tracks = new Numbers();
  for (const { block, track, ...span } of spans) {
    const pid = blocks.of(block, (number) =>
      events.push({ name: "process_name", ph: "M", pid: number, tid: 0, args: { name: block } }),
    );
    const tid = tracks.of(`${block} ${track}`, (number) =>
      events.push({ name: "thread_name", ph: "M", pid, tid: number, args: { name: track } }),
    );
    const { name, category: cat, from: ts, to, args } = span;
    events.push({ name, ph: "X", cat, pid, tid, ts, dur: to - ts, args });
  }
  return { traceEvents: events };
}

function tracedSpan({ kind, op, place, from, to }: Span): Omit<TracedSpan, "block" | "track"> {
  const { position } = op.location;
  return {
    name: kind === "waits" ? `waits: ${op.kind}` : op.kind,
    category: kind,
    from,
    to,
    args: {
      ...(position !== undefined && { line: formatPosition(position) }),
      ...(place.iterations.length > 0 && { iteration: place.iterations.join(".") }),
    },
  };
}
