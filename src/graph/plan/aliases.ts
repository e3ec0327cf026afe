/**
 * Results that may lie where donated arguments do. A result takes the memory of an argument of its type that nobody reads
 * once the result is written; the launch that writes it may read the argument's elements each at its own place.
 *
 *   new = old - rate · gradient        new lies where old did
 *
 * Results that are computed from an argument element by element choose first: a loop that hands its results back in then finds
 * each where it was, and what was bound for one turn is bound for the next.
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
  const firsts = plan.results.map((_, result) =>
    steps.findIndex((step) => touches(step, "result", result)),
  );
  const taken = new Set<number>();
  const aliases = new Map<number, number>();
  const choose = (isFree: (index: number, first: number, result: number) => boolean): void => {
    for (const [result, type] of plan.results.entries()) {
      const first = firsts[result] ?? -1;
      if (first < 0 || sizeOf(type.shape) === 0 || aliases.has(result)) continue;
      const found = donated.find(
        (index) =>
          isSameType(plan.parameters[index], type) &&
          !taken.has(index) &&
          isFree(index, first, result),
      );
      if (found === undefined) continue;
      taken.add(found);
      aliases.set(result, found);
    }
  };
  choose((index, first, result) => {
    if (last.get(index) !== first) return false;
    const changed = overwriting(steps[first] as Step, index, result);
    if (changed !== undefined) steps[first] = changed;
    return changed !== undefined;
  });
  choose((index, first) => (last.get(index) ?? -1) < first);
  return { ...plan, steps, aliases };
}
