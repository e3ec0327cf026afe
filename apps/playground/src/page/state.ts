/** What the page knows: the program, how to run it, and what the last run left. */
import type { Program, RunReport, Settings } from "../protocol.ts";

export type RunState =
  | { readonly kind: "none" }
  | { readonly kind: "running"; readonly message: string; readonly since: number }
  | { readonly kind: "finished"; readonly report: RunReport; readonly number: number }
  | { readonly kind: "stopped" }
  | { readonly kind: "not loaded" }
  | { readonly kind: "timed out"; readonly seconds: number }
  | { readonly kind: "cut off"; readonly why: string };

export interface Session {
  readonly program: Program;
  readonly settings: Settings;
  readonly seconds: number;
  /** Whether the program may run without being asked for: it is the page's own or the user has run it. */
  readonly trusted: boolean;
  /** The gallery's explanation that belongs to the program. */
  readonly guide: string | undefined;
  /** Whether somebody has changed it since it was opened. */
  readonly edited: boolean;
}

export const viewNames = [
  "results",
  "findings",
  "stages",
  "layouts",
  "memory",
  "timeline",
  "cost",
  "graph",
] as const;
export type ViewName = (typeof viewNames)[number];

export const viewTitles: { readonly [V in ViewName]: string } = {
  results: "Results",
  findings: "Findings",
  stages: "Stages",
  layouts: "Layouts",
  memory: "Memory",
  timeline: "Timeline",
  cost: "Cost",
  graph: "Graph",
};
