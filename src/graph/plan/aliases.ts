/**
 * Results that may lie where donated arguments do. A result takes the memory of an argument of its type that nobody reads
 * once the result is written; the launch that writes it may read the argument's elements each at its own place.
 *
 *   new = old - rate · gradient        new lies where old did
 */
import { sizeOf } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import { allSteps, buffersOf } from "./plan.ts";
import type { Buffer, Plan, Step } from "./plan.ts";

function isAt(buffer: Buffer, kind: "argument" | "result", index: number): boolean {
  return buffer.place.kind === kind && buffer.place.index === index;
}

function touches(step: Step, kind: "argument" | "result", index: number): boolean {
  return [...allSteps([step])].some((each) =>
    buffersOf(each).some((buffer) => isAt(buffer, kind, index)),
  );
}

/** The step with its result in the argument's memory, where it reads the argument only where it writes. */
function overwriting(step: Step, argument: number, result: number): Step | undefined {
  if (step.kind !== "launch") return undefined;
  const place = step.outputs.findIndex((buffer) => isAt(buffer, "result", result));
  const [input, ...others] = step.inputs.filter((each) => isAt(each, "argument", argument));
  if (place < 0 || input === undefined || others.length > 0) return undefined;
  const overwritten = new Map(step.overwritten).set(place, input);
  const kernel = step.inPlace(overwritten);
  if (kernel === undefined) return undefined;
  return {
    ...step,
    kernel,
    overwritten,
    inputs: step.inputs.filter((each) => each !== input),
  };
}

function isSameType(left: TensorType | undefined, right: TensorType): boolean {
  return left?.element === right.element && left.shape.join() === right.shape.join();
}

/** The plan with results in the memory of donated arguments. */
export function withAliases(plan: Plan, donated: readonly number[]): Plan {
  const steps = [...plan.steps];
  const last = new Map<number, number>();
  for (const [at, step] of steps.entries())
    for (const index of donated) if (touches(step, "argument", index)) last.set(index, at);
  const taken = new Set<number>();
  const aliases = new Map<number, number>();
  for (const [result, type] of plan.results.entries()) {
    const first = steps.findIndex((step) => touches(step, "result", result));
    if (first < 0 || sizeOf(type.shape) === 0) continue;
    const found = donated.find((index) => {
      if (!isSameType(plan.parameters[index], type) || taken.has(index)) return false;
      const end = last.get(index) ?? -1;
      if (end !== first) return end < first;
      const changed = overwriting(steps[first] as Step, index, result);
      if (changed !== undefined) steps[first] = changed;
      return changed !== undefined;
    });
    if (found === undefined) continue;
    taken.add(found);
    aliases.set(result, found);
  }
  return { ...plan, steps, aliases };
}
