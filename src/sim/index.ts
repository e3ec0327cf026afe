/**
 * The tile simulator: what a kernel means, and what is wrong with it.
 *
 *   kernel ──▶ linear code a region ──▶ program threads, a program counter each, in the order of a schedule
 *                                       every access against the shadow memory of `src/happens-before`
 */
export { simulate } from "./simulate.ts";
export type {
  SimulatedBuffer,
  SimulationArguments,
  SimulationOptions,
  SimulationResult,
} from "./simulate.ts";
export type { Wait, WaitGraph } from "./deadlock.ts";
export { RunTimeline } from "./timeline.ts";
export type { Span } from "./timeline.ts";
export { spanTracks, traceDocument, traceEvents } from "./trace-events.ts";
export type { TraceDocument } from "./trace-events.ts";
export type { TraceEvent, TrackSpan } from "./trace-events.ts";
export { timelineChart } from "./timeline-chart.ts";
export type { TimelineChart } from "./timeline-chart.ts";
export { timelineKey, timelinePanel, timelineText } from "./timeline-drawing.ts";
export type { ScheduleName } from "./scheduler.ts";
export type { Statistics } from "./reports.ts";
export { sharedFootprint } from "./footprint.ts";
