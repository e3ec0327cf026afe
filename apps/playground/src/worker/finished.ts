/** What is kept of a program that has run, for the questions that come afterwards. */
import type { GraphModule } from "../../../../src/graph/index.ts";
import type { Kernel } from "../../../../src/ir/node.ts";
import type { PlanReport, RunReport, Settings } from "../protocol.ts";
import type { RecordedArray, Recording } from "./recording.ts";
import type { SourceLines } from "./source-lines.ts";

export interface FinishedRun {
  readonly report: RunReport;
  readonly kernels: readonly Kernel[];
  /** Of each launch. */
  readonly arrays: readonly (readonly RecordedArray[])[];
  readonly recording: Recording;
  readonly settings: Settings;
  readonly lines: SourceLines;
  /** The same program on the other device, run when it is first asked for. */
  readonly other: () => Promise<Recording>;
}

export interface FinishedGraph extends FinishedRun {
  readonly graph: GraphModule | undefined;
  readonly plan: PlanReport;
}
