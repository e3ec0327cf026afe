/** `tilewright report`: what the kernels of a file take of a GPU, by source line. */
import { readFileSync } from "node:fs";
import { defaultTarget } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { writeFile } from "../files.ts";
import type { Output } from "../output.ts";
import { runUserCode } from "../program-output.ts";
import { drawReports } from "../report/report-drawing.ts";
import { reportKernel } from "../report/kernel-report.ts";
import { driverHere, Measurers } from "../report/measurer.ts";
import type { KernelReport } from "../report/kernel-report.ts";
import { reportText } from "../report/report-text.ts";
import type { SourceText } from "../report/report-text.ts";
import { kernelTimeline, timelineDrawing, timelineLines } from "../report/timeline.ts";
import type { KernelTimeline } from "../report/timeline.ts";
import { requireTaken } from "../random-inputs.ts";
import type { Dimensions } from "../random-inputs.ts";
import { loadUserModule, selectKernels } from "../user-module.ts";
import type { ExportedKernel } from "../user-module.ts";

export interface ReportSettings {
  readonly file: string;
  readonly kernel: string | undefined;
  readonly targets: readonly Target[];
  readonly svg: string | undefined;
  /** Whether to run each kernel on the simulator and to show who did what when. */
  readonly timeline: boolean;
  /** For the timeline. */
  readonly dimensions: Dimensions;
  /** Seconds for the assembler, for each kernel and target. */
  readonly timeout: number;
}

export async function reportCommand(settings: ReportSettings, output: Output): Promise<number> {
  const { file, svg, targets } = settings;
  const module = await runUserCode(output, () => loadUserModule(file));
  const measurers = new Measurers(await driverHere(), settings.timeout);
  const reports: KernelReport[] = [];
  const kernels = selectKernels(module, settings.kernel);
  requireTaken(settings.dimensions, kernels);
  try {
    for (const { name, definition } of kernels)
      for (const target of targets)
        reports.push(await reportKernel(name, definition.kernel, target, measurers.for(target)));
  } finally {
    measurers.dispose();
  }
  const sourceText = sourceReader();
  for (const report of reports) {
    const [heading = "", ...lines] = reportText(report, sourceText);
    output.line(output.bold(heading));
    for (const line of lines) output.line(line);
    output.line();
  }
  const timelines = settings.timeline
    ? await timelinesOf(kernels, settings.dimensions, targets[0] ?? defaultTarget)
    : [];
  for (const timeline of timelines) {
    const [heading = "", ...lines] = timelineLines(timeline);
    output.line(output.bold(heading));
    for (const line of lines) output.line(line);
    output.line();
  }
  if (svg !== undefined) {
    writeFile(svg, drawReports(reports, sourceText, timelines.map(timelineDrawing)));
    output.line(`wrote ${svg}`);
  }
  output.document({
    file,
    svg,
    ...(settings.timeline && { timelines }),
    kernels: reports.map(({ target, ...report }) => ({
      ...report,
      target: target.name,
      usage: report.usage ?? null,
    })),
  });
  return 0;
}

async function timelinesOf(
  kernels: readonly ExportedKernel[],
  dimensions: Dimensions,
  target: Target,
): Promise<readonly KernelTimeline[]> {
  const timelines: KernelTimeline[] = [];
  for (const kernel of kernels) timelines.push(await kernelTimeline(kernel, dimensions, target));
  return timelines;
}

/** Reads each file once. */
function sourceReader(): SourceText {
  const files = new Map<string, readonly string[]>();
  return (file, line) => {
    if (!files.has(file)) files.set(file, linesOf(file));
    return files.get(file)?.[line - 1];
  };
}

function linesOf(file: string): readonly string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return []; // A kernel may come from text, or from a file that is gone.
  }
}
