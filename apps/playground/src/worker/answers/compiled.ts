/** Answers to questions that take the compiler. What was placed once is kept. */
import { lowerWithNotes, place } from "../../../../../src/lower/stages.ts";
import type { PlacedKernel } from "../../../../../src/lower/stages.ts";
import { simplify } from "../../../../../src/lower/simplify.ts";
import type { Kernel } from "../../../../../src/ir/node.ts";
import { emitKernel } from "../../../../../src/ptx/emit/kernel.ts";
import { traceEvents } from "../../../../../src/sim/index.ts";
import type { RunTimeline } from "../../../../../src/sim/index.ts";
import { targets } from "../../../../../src/targets/target.ts";
import type { FinishedRun } from "../finished.ts";
import { costReport } from "./cost.ts";
import type { Answers } from "./answer.ts";
import { elementMap, layoutReport } from "./layouts.ts";
import { kernelStages } from "./stages.ts";
import { memoryReport, timelineReport } from "./timeline.ts";

function targetOf({ settings }: FinishedRun) {
  return targets[settings.target];
}

function kernelOf({ kernels }: FinishedRun, number: number): Kernel {
  const kernel = kernels[number];
  if (kernel === undefined) throw new Error("the program has no such kernel");
  return kernel;
}

const placedKernels = new WeakMap<Kernel, PlacedKernel>();

function placedOf(run: FinishedRun, number: number): PlacedKernel {
  const kernel = kernelOf(run, number);
  const known = placedKernels.get(kernel);
  if (known !== undefined) return known;
  const placed = place(kernel, targetOf(run));
  placedKernels.set(kernel, placed);
  return placed;
}

/** The timeline of a launch. The emulator runs PTX, which has no steps of the program: the simulator runs it for one. */
async function timelineOf(run: FinishedRun, launch: number): Promise<RunTimeline> {
  const own = run.recording.launches[launch]?.timeline;
  if (own !== undefined) return own;
  const timeline = (await run.other()).launches[launch]?.timeline;
  if (timeline === undefined) throw new Error("the simulator has no timeline of this launch");
  return timeline;
}

export const compiledAnswers: Omit<Answers, "values" | "graph"> = {
  stages: (run, { kernel }) => kernelStages(kernelOf(run, kernel), targetOf(run), run.lines),
  notes: (run, { kernel }) => {
    const traced = kernelOf(run, kernel);
    return lowerWithNotes(traced, targetOf(run)).notes.map((note) => ({
      code: note.code,
      message: note.message,
      because: run.lines.clean(note.because),
      remedy: note.remedy,
      line: run.lines.lineOf(note.position),
      kernel: traced.name,
    }));
  },
  layouts: (run, { kernel }) => layoutReport(placedOf(run, kernel), run.lines),
  elements: (run, { kernel, subject }) => elementMap(placedOf(run, kernel), subject),
  timeline: async (run, { launch }) => timelineReport(await timelineOf(run, launch), run.lines),
  trace: async (run, { launch }) =>
    run.lines.clean(JSON.stringify(traceEvents((await timelineOf(run, launch)).spans))),
  memory: async (run, { launch }) => {
    const name = run.recording.launches[launch]?.kernel.name;
    const number = run.kernels.findIndex((kernel) => kernel.name === name);
    const executable = emitKernel(placedOf(run, number).kernel);
    const simplified = simplify(kernelOf(run, number));
    return memoryReport(await timelineOf(run, launch), simplified, executable, run.lines);
  },
  cost: (run, { kernel }) => {
    const traced = kernelOf(run, kernel);
    const launched = run.recording.launches.find((launch) => launch.kernel.name === traced.name);
    const dimensions =
      launched?.dimensions ??
      new Map(traced.dimensions.map(({ name, multipleOf }) => [name, 256 * multipleOf]));
    return costReport(traced, targetOf(run), run.settings.target, dimensions, run.lines);
  },
};
