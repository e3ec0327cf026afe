/**
 * What `run` takes of programs of StableHLO alone: their arrays, how products of f32 are made, and the plan that is printed instead of running.
 *
 *   tilewright run step.mlir --plan --explain --target sm_80
 */
import { Option } from "commander";
import type { Command } from "commander";
import type { MatmulPrecision } from "../graph/ops/matmul-precision.ts";
import { defaultTarget } from "../targets/target.ts";
import type { Target } from "../targets/target.ts";
import type { PlanSettings } from "./commands/run-programs.ts";
import { matmulPrecisionOption, parseCount, parseTarget } from "./options.ts";

export interface ProgramOptions {
  readonly inputs?: string;
  readonly compare?: string;
  readonly matmulPrecision?: MatmulPrecision;
  readonly ranks?: number;
  readonly plan?: boolean;
  readonly explain?: boolean;
  readonly target?: Target;
}

export function withProgramOptions(command: Command): Command {
  const target = new Option(
    "--target <name>",
    "the GPU that is simulated, emulated or planned for (--plan)",
  );
  return command
    .option("--inputs <file>", "an npz file with in0, in1 … for the parameters of a program")
    .option("--compare <file>", "an npz file with out0, out1 … that its results must agree with")
    .addOption(matmulPrecisionOption())
    .option(
      "--ranks <number>",
      "run it on so many ranks, each a thread with the CPU as its device, cut by its shardings",
      parseCount,
    )
    .option("--plan", "print launches, what they need and are estimated to take; run nothing")
    .option("--explain", "with --plan: the dearest launches, why each is one, what is slow")
    .addOption(target.argParser(parseTarget));
}

/** The plan that was asked for; undefined where the program is to run. */
export function chosenPlan(
  command: Command,
  { plan = false, explain = false, target, ranks }: ProgramOptions,
  isProgram: boolean,
): PlanSettings | undefined {
  if (explain && !plan) command.error("error: --explain goes with --plan");
  if (ranks !== undefined && plan) command.error("error: --ranks runs a program, --plan does not");
  if (target !== undefined && !plan && isProgram) command.error("error: --target goes with --plan");
  return plan ? { explain, target: target ?? defaultTarget } : undefined;
}
