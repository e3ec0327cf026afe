/** The options by which `run` prints a program's plan and runs nothing: `--plan --explain --target sm_80`. */
import { Option } from "commander";
import type { Command } from "commander";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import type { PlanSettings } from "./commands/run-programs.ts";
import { parseTarget } from "./options.ts";

export interface PlanOptions {
  readonly plan?: boolean;
  readonly explain?: boolean;
  readonly target?: Target;
}

export function withPlanOptions(command: Command): Command {
  const target = new Option("--target <name>", "with --plan: the GPU, sm_90a unless given");
  return command
    .option("--plan", "print launches, what they need and are estimated to take; run nothing")
    .option("--explain", "with --plan: the dearest launches, why each is one, what is slow")
    .addOption(target.argParser(parseTarget));
}

/** What was chosen; undefined where the program is to run. */
export function chosenPlan(
  command: Command,
  { plan = false, explain = false, target }: PlanOptions,
): PlanSettings | undefined {
  if (explain && !plan) command.error("error: --explain goes with --plan");
  if (target !== undefined && !plan) command.error("error: --target goes with --plan");
  return plan ? { explain, target: target ?? defaultTarget } : undefined;
}
