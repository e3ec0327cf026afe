/**
 * The timeline of a kernel for its report: one launch on random inputs under the timed schedule, of which the first
 * block, or the first cluster, is shown. Loops run as the compiler pipelines them.
 */
import type { Compiled } from "../../device/backend.ts";
import { Device } from "../../device/device.ts";
import type { Kernel } from "../../ir/node.ts";
import { pipelineLoops } from "../../lower/software-pipelining/index.ts";
import { SimulatorBackend } from "../../runtime/simulator-backend.ts";
import {
  RunTimeline,
  timelineChart,
  timelineKey,
  timelinePanel,
  timelineText,
} from "../../sim/index.ts";
import type { TimelineChart } from "../../sim/index.ts";
import type { Panel } from "../../layout/drawing/svg.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Target } from "../../targets/target.ts";
import type { ExportedKernel } from "../user-module.ts";
import { timelineExtent } from "../options.ts";
import { chooseDimensions, randomInputs } from "../random-inputs.ts";
import type { Dimensions } from "../random-inputs.ts";

/** Runs kernels with the copies ahead that the compiler puts in their loops. */
class PipelinedSimulator extends SimulatorBackend {
  override compile(kernel: Kernel): Compiled<Kernel> {
    const compiled = super.compile(kernel);
    return { ...compiled, program: pipelineLoops(compiled.program, this.target) };
  }
}

export interface KernelTimeline {
  readonly name: string;
  readonly dimensions: Dimensions;
  readonly chart: TimelineChart;
}

const [mostSpans, mostRows] = [200_000, 24];
const seed = 1;
/** Milliseconds after which the rest of a long run is left out: its first blocks are far by then. */
const timeLimit = 15_000;

export async function kernelTimeline(
  { name, definition }: ExportedKernel,
  given: Dimensions,
  target: Target,
): Promise<KernelTimeline> {
  const { kernel } = definition;
  const dimensions = chooseDimensions(kernel, given, target, timelineExtent);
  const timeline = new RunTimeline(mostSpans);
  const device = new Device(
    new PipelinedSimulator({
      target,
      checks: false,
      schedule: "timed",
      timelineOf: () => timeline,
    }),
  );
  let ended = true;
  try {
    const inputs = randomInputs(kernel, dimensions, seed);
    await device.run(definition, inputs, { dimensions, timeLimit });
  } catch (error) {
    if (!(error instanceof TilewrightError) || error.code !== "TW3022") throw error;
    ended = false;
  } finally {
    device.dispose();
  }
  const context = { dimensions: new Map(Object.entries(dimensions)), grid: kernel.grid };
  const blocks = kernel.grid.reduce((count, { cluster }) => count * cluster, 1);
  return {
    name,
    dimensions,
    chart: timelineChart({ spans: timeline.spans, complete: timeline.complete && ended }, context, {
      blocks,
      rows: mostRows,
    }),
  };
}

export function timelineLines({ name, dimensions, chart }: KernelTimeline): readonly string[] {
  const heading = `timeline of ${name}${sizesText(dimensions)}: ${chart.end} modelled cycles`;
  return [
    heading,
    ...[...timelineText(chart), "", timelineKey].map((line) => `  ${line}`.trimEnd()),
  ];
}

export function timelineDrawing({ name, dimensions, chart }: KernelTimeline): Panel {
  return timelinePanel(
    `${name}${sizesText(dimensions)}, ${chart.end} modelled cycles; numbers are iterations`,
    chart,
  );
}

function sizesText(dimensions: Dimensions): string {
  const sizes = Object.entries(dimensions).map(([name, value]) => `${name} = ${value}`);
  return sizes.length === 0 ? "" : ` with ${sizes.join(", ")}`;
}
