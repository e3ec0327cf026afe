/**
 * What a launch of a profiled kernel tells: its scopes as spans of time, by block and program thread.
 *
 *   { name: "load", block: [0], thread: "main", depth: 0, from: 12, to: 96 }
 */
import type { Position } from "../../support/location.ts";
import { formatPosition } from "../../support/location.ts";
import { traceDocument } from "../../sim/trace-events.ts";
import type { TraceDocument } from "../../sim/trace-events.ts";
import type { TimeUnit } from "../backend.ts";
import { requireProfiles } from "../argument-checks.ts";

/** One region of one program thread of one block, with its begin and end. */
export interface ProfileSpan {
  /** The region's name. */
  readonly name: string;
  /** The block's index along each axis of the grid. */
  readonly block: readonly number[];
  /** The program thread. */
  readonly thread: string;
  /** The warp within its thread, where a scope of the kernel lies within `warps`. */
  readonly warp: number | undefined;
  /** How many scopes it lies within. */
  readonly depth: number;
  /** In units of the profile, from when the first thread of the launch began. */
  readonly from: number;
  /** The time of its end. */
  readonly to: number;
  /** The line of the scope. */
  readonly position: Position | undefined;
}

/** What `profile` regions of a kernel took in one launch. */
export interface KernelProfile {
  /** The kernel's name. */
  readonly kernel: string;
  /** The device it ran on. */
  readonly device: string;
  /** The unit of the times. */
  readonly unit: TimeUnit;
  /** Names of the grid's axes. */
  readonly axes: readonly string[];
  /** Those of a block and thread follow each other in the order in which they ended. */
  readonly spans: readonly ProfileSpan[];
  /** Edges of scopes that found no room: the oldest of threads that have many. */
  readonly lost: number;
}

/** The names of a span's block, and of its thread or warp. */
export function trackOf(
  { axes }: KernelProfile,
  { block, thread, warp }: ProfileSpan,
): { readonly block: string; readonly track: string } {
  const index = axes.map((axis, position) => `${axis} = ${block[position] ?? 0}`).join(", ");
  return {
    block: index === "" ? "block" : `block (${index})`,
    track: warp === undefined ? thread : `${thread}, warp ${warp}`,
  };
}

/** Profiles as trace events, which Perfetto opens; one unit of time counts as a microsecond. */
export function profileTrace(profiles: readonly KernelProfile[]): TraceDocument {
  requireProfiles("profileTrace", profiles);
  const several = profiles.length > 1;
  return traceDocument(
    profiles.flatMap((profile, launch) =>
      profile.spans.map((span) => {
        const { block, track } = trackOf(profile, span);
        const { name, from, to, position } = span;
        const line = position === undefined ? {} : { line: formatPosition(position) };
        const process = several ? `${profile.kernel} ${launch + 1}, ${block}` : block;
        return {
          name,
          category: profile.kernel,
          block: process,
          track,
          from,
          to,
          args: { unit: profile.unit, ...line },
        };
      }),
    ),
  );
}
