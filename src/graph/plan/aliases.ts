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
import type { Buffer, LaunchStep, Plan, Step } from "./plan.ts";

type End = "argument" | "result";

/** The buffers of a step and of those within it that are arguments or results, each as it is called in maps. */
function endsOf(step: Step): ReadonlySet<string> {
  const ends = new Set<string>();
  for (const each of allSteps([step]))
    for (const { place } of buffersOf(each))
      if (place.kind === "argument" || place.kind === "result") ends.add(endName(place));
  return ends;
}

function endName({ kind, index }: { readonly kind: End; readonly index: number }): string {
  return `${kind} ${index}`;
}

function isAt({ place }: Buffer, kind: End, index: number): boolean {
  return place.kind === kind && place.index === index;
}

/** The step with its result in the argument's memory, where it reads the argument only where it writes. */
function overwriting(step: Step, argument: number, result: number): LaunchStep | undefined {
  if (step.kind !== "launch") return undefined;
  const place = step.outputs.findIndex((buffer) => isAt(buffer, "result", result));
  const [input, ...others] = step.inputs.filter((each) => isAt(each, "argument", argument));
  if (place < 0 || input === undefined || others.length > 0) return undefined;
  if (!step.pointwise.has(input)) return undefined;
  return {
    ...step,
    overwritten: new Map(step.overwritten).set(place, input),
    inputs: step.inputs.filter((each) => each !== input),
  };
}

/** The step with the kernel that writes where it was decided to. */
function settled(step: Step): Step {
  if (step.kind !== "launch" || step.overwritten.size === 0) return step;
  return { ...step, kernel: step.inPlace(step.overwritten) };
}

/** A key that distinguishes types. */
function typeKey({ element, shape }: TensorType): string {
  return `${element} ${shape.join()}`;
}

/** The plan with results in the memory of donated arguments. */
export function withAliases(plan: Plan, donated: readonly number[]): Plan {
  if (donated.length === 0) return plan;
  const steps = [...plan.steps];
  const [first, last] = [new Map<string, number>(), new Map<string, number>()];
  for (const [at, step] of steps.entries())
    for (const end of endsOf(step)) {
      if (!first.has(end)) first.set(end, at);
      last.set(end, at);
    }
  const givenOf = new Map<string, Set<number>>();
  for (const index of donated) {
    const key = typeKey(plan.parameters[index] as TensorType);
    givenOf.set(key, (givenOf.get(key) ?? new Set()).add(index));
  }
  const aliases = new Map<number, number>();
  const choose = (isFree: (index: number, written: number, result: number) => boolean): void => {
    for (const [result, type] of plan.results.entries()) {
      const written = first.get(endName({ kind: "result", index: result })) ?? -1;
      if (written < 0 || sizeOf(type.shape) === 0 || aliases.has(result)) continue;
      const given = givenOf.get(typeKey(type)) ?? new Set();
      const found = [...given].find((index) => isFree(index, written, result));
      if (found === undefined) continue;
      given.delete(found);
      aliases.set(result, found);
    }
  };
  const lastOf = (index: number): number => last.get(endName({ kind: "argument", index })) ?? -1;
  choose((index, written, result) => {
    if (lastOf(index) !== written) return false;
    const changed = overwriting(steps[written] as Step, index, result);
    if (changed !== undefined) steps[written] = changed;
    return changed !== undefined;
  });
  choose((index, written) => lastOf(index) < written);
  return { ...plan, steps: steps.map(settled), aliases };
}
