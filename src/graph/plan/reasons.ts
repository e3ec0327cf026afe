/**
 * Why launches of a plan are kernels of their own: what reads what they make, and what they are.
 *
 *   matmul          an operation of the library
 *   reduce_rows     a reduction; 3 launches read it
 *   exp_sub         matmul reads it from memory
 */
import { libraryCallOf, loweringOf } from "../lower/record.ts";
import { allSteps, buffersOf } from "./plan.ts";
import type { Buffer, LaunchStep, OperationStep, Plan, Step } from "./plan.ts";

type Launch = LaunchStep | OperationStep;

function isLaunch(step: Step): step is Launch {
  return step.kind === "launch" || step.kind === "operation";
}

function outputsOf(step: Launch): readonly Buffer[] {
  return step.outputs.map((each) => ("buffer" in each ? each.buffer : each));
}

function inputsOf(step: Launch): readonly Buffer[] {
  return step.inputs.map((each) => ("buffer" in each ? each.buffer : each));
}

function titleOf(step: Launch): string {
  return step.kind === "launch" ? step.kernel.kernel.name : step.operation.name;
}

/** What a launch is, where that alone makes it one. */
function natureOf(step: Launch): string {
  const { op } = step.origin;
  if (op === undefined) return "memory is filled or copied, as loops and results want it";
  if (step.kind === "operation") return "an operation of the library";
  const { form } = loweringOf(op);
  if (form === "fold") return "combines many elements to one";
  if (form === "steps") return "one of the steps that its op is made in";
  return "";
}

/** Who reads what a launch makes. */
function useOf(step: Launch, readers: readonly Step[]): string {
  const outputs = outputsOf(step);
  if (outputs.some(({ place }) => place.kind === "result")) return "a result of the program";
  const launches = readers.filter(isLaunch);
  if (launches.length < readers.length) return "control flow reads it";
  const [only, ...others] = launches;
  if (only === undefined) return "";
  if (others.length > 0) return `${launches.length} launches read it`;
  const { op } = only.origin;
  const moves =
    op !== undefined && loweringOf(op).form === "map" && libraryCallOf(op) !== undefined;
  return moves ? `${titleOf(only)} moves it` : `${titleOf(only)} reads it from memory`;
}

/** Why each launch of a plan is one, in the order of `planCosts`. */
export function launchReasons(plan: Plan): readonly string[] {
  const readers = new Map<Buffer, Step[]>();
  for (const step of allSteps(plan.steps))
    for (const buffer of new Set(isLaunch(step) ? inputsOf(step) : buffersOf(step))) {
      const known = readers.get(buffer) ?? [];
      known.push(step);
      readers.set(buffer, known);
    }
  return [...allSteps(plan.steps)].filter(isLaunch).map((step) => {
    const own = outputsOf(step).flatMap((buffer) => readers.get(buffer) ?? []);
    return [natureOf(step), useOf(step, [...new Set(own)])]
      .filter((text) => text !== "")
      .join("; ");
  });
}
