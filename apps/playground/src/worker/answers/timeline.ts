/** A launch over time: the tracks and spans of its timeline, and what touches shared memory when. */
import type { AnyOp, Kernel, Value } from "../../../../../src/ir/node.ts";
import { opName } from "../../../../../src/ir/op-names.ts";
import { accessesOf, allocatesShared, windowedBy } from "../../../../../src/ir/traits.ts";
import type { OperandAccess } from "../../../../../src/ir/traits.ts";
import { walkOps } from "../../../../../src/ir/traverse.ts";
import type { Executable } from "../../../../../src/ptx/executable.ts";
import { spanTracks } from "../../../../../src/sim/index.ts";
import type { RunTimeline } from "../../../../../src/sim/index.ts";
import type { MemoryAccess, MemoryReport, TimelineReport, TimelineTrack } from "../../protocol.ts";
import type { SourceLines } from "../source-lines.ts";

export function timelineReport(timeline: RunTimeline, lines: SourceLines): TimelineReport {
  const tracks: TimelineTrack[] = [];
  const numbers = new Map<string, number>();
  const spans = spanTracks(timeline.spans).map(({ span, block, track }) => {
    const key = `${block} ${track}`;
    const known = numbers.get(key);
    const number = known ?? tracks.length;
    if (known === undefined) {
      numbers.set(key, number);
      tracks.push({ block, name: track, beside: span.kind === "beside" });
    }
    return {
      track: number,
      kind: span.kind,
      op: opName(span.op),
      line: lines.lineOf(span.op.location.position),
      iteration: span.place.iterations.join("."),
      from: span.from,
      to: span.to,
    };
  });
  const steps = spans.reduce((end, { to }) => Math.max(end, to), 0);
  const order = sortedTracks(tracks);
  return {
    tracks: order.map((number) => tracks[number]).filter((track) => track !== undefined),
    spans: spans.map((span) => ({ ...span, track: order.indexOf(span.track) })),
    steps,
    complete: timeline.complete,
  };
}

/** Blocks as they begin; in each, every thread with what runs beside it. */
function sortedTracks(tracks: readonly TimelineTrack[]): readonly number[] {
  const blocks = [...new Set(tracks.map(({ block }) => block))];
  const place = (number: number): readonly [number, string] => {
    const { block = "", name = "" } = tracks[number] ?? {};
    return [blocks.indexOf(block), name];
  };
  return [...tracks.keys()].sort((left, right) => {
    const [a, b] = [place(left), place(right)];
    return a[0] - b[0] || (a[1] < b[1] ? -1 : 1);
  });
}

/** The allocation that a window lies in. */
function roots(kernel: Kernel): ReadonlyMap<Value, Value> {
  const found = new Map<Value, Value>();
  walkOps(kernel.body, (op) => {
    const from = windowedBy(op);
    for (const result of op.results)
      found.set(result, from === undefined ? result : (found.get(from) ?? from));
  });
  return found;
}

/** Names of the allocations in shared memory. */
function allocationNames(kernel: Kernel): ReadonlyMap<Value, string> {
  const names = new Map<Value, string>();
  walkOps(kernel.body, (op) => {
    const [result] = op.results;
    const { name } = op.attributes as { readonly name?: unknown };
    if (allocatesShared(op) && result !== undefined && typeof name === "string")
      names.set(result, name);
  });
  return names;
}

/** Accesses by any method, each once. */
function distinctAccesses(op: AnyOp): readonly OperandAccess[] {
  const all = accessesOf(op);
  return all.filter(
    ({ value, mode }, position) =>
      all.findIndex((other) => other.value === value && other.mode === mode) === position,
  );
}

/** What the first block does with its shared memory. `simplified`: the kernel that was simulated. */
export function memoryReport(
  timeline: RunTimeline,
  simplified: Kernel,
  { buffers, sharedBytes, target }: Executable,
  lines: SourceLines,
): MemoryReport {
  const [first] = timeline.spans;
  const block = String(first?.place.block);
  const root = roots(simplified);
  const names = allocationNames(simplified);
  // A copy or product touches memory for as long as it runs beside its thread.
  const asynchronous = new Set(
    timeline.spans.flatMap(({ kind, op }) => (kind === "beside" ? [op] : [])),
  );
  const accesses = timeline.spans.flatMap((span): readonly MemoryAccess[] => {
    const kind = asynchronous.has(span.op) ? "beside" : "runs";
    if (span.kind !== kind || String(span.place.block) !== block) return [];
    return distinctAccesses(span.op).flatMap(({ value, mode }) => {
      const name = names.get(root.get(value) ?? value);
      const buffer = buffers.findIndex((each) => each.name === name);
      if (buffer < 0) return [];
      return [
        {
          buffer,
          mode,
          op: opName(span.op),
          line: lines.lineOf(span.op.location.position),
          thread: span.place.thread,
          from: span.from,
          to: span.to,
        },
      ];
    });
  });
  return {
    block:
      first === undefined
        ? ""
        : first.place.axes.map((axis, at) => `${axis} = ${first.place.block[at] ?? 0}`).join(", "),
    buffers: buffers.map(({ name, offset, bytes, holds }) => ({
      name,
      offset,
      bytes,
      holds:
        holds === undefined
          ? "scratch, or several members"
          : holds === "barriers"
            ? "barriers"
            : `${holds.dtype.name} ${holds.shape.join(" × ")}`,
    })),
    accesses,
    bytes: sharedBytes,
    limit: target.sharedMemoryPerBlock,
    steps: accesses.reduce((end, { to }) => Math.max(end, to), 0),
  };
}
