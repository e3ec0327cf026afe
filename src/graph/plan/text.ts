/**
 * Plans as text; with the costs of launches, and their measured times, behind each.
 *
 *   launch negate(arg0) -> result0 // jit(f)/neg, at least 2.5 µs, estimated 2.6, measured 2.7
 */
import { collectiveText } from "../ranks/collective.ts";
import { timeText } from "./explain.ts";
import type { MeasuredTimes } from "./explain.ts";
import type { StepCost } from "./costs.ts";
import { sizesOf } from "./operation-sizes.ts";
import type { Buffer, NamedBuffer, OperationStep, Plan, Step } from "./plan.ts";
import { allSteps } from "./plan.ts";

function placeText(buffer: Buffer, { offsets }: Plan): string {
  const { place } = buffer;
  if (place.kind === "arena") return `arena+${offsets.get(buffer) ?? 0}`;
  if (place.kind === "argument") return `arg${place.index}`;
  return place.kind === "result" ? `result${place.index}` : `constant${place.index}`;
}

/** What is known of launches besides: what `planCosts` gives, and what `profile()` measured. */
export interface PlanTextOptions {
  /** What `planCosts` gives. */
  readonly costs?: readonly StepCost[];
  /** What `profile()` gives. */
  readonly times?: MeasuredTimes;
}

function remark(name: string, costs = ""): string {
  const text = [name, costs].filter((each) => each !== "").join(", ");
  return text === "" ? "" : ` // ${text}`;
}

/** What launches cost, in the order in which they are printed. */
function costTexts({ costs = [], times = [] }: PlanTextOptions): Iterator<string, string> {
  const count = Math.max(costs.length, times.length);
  const texts = Array.from({ length: count }, (_, i) => {
    const [cost, time] = [costs[i], times[i]];
    return [
      ...(cost === undefined
        ? []
        : [`at least ${timeText(cost.roofline)} µs`, `estimated ${timeText(cost.estimate)}`]),
      ...(time === undefined ? [] : [`measured ${timeText(1000 * time.milliseconds)}`]),
    ].join(", ");
  });
  return (function* (): Generator<string, string> {
    yield* texts;
    return "";
  })();
}

/** An argument of an operation: its shape, and of a part of a buffer where it begins and its strides. */
function argumentText({ buffer, shape, view }: NamedBuffer, plan: Plan): string {
  const place = placeText(buffer, plan);
  if (view === undefined) return `${place} [${shape.join(", ")}]`;
  const from = view.offset === 0 ? "" : ` from ${view.offset}`;
  return `${place}${from} [${view.shape.join(", ")}] by [${view.strides.join(", ")}]`;
}

/** Which way an operation takes, where it has several. */
function notesOf(step: OperationStep, { target }: Plan): readonly string[] {
  if (!step.isNoted) return [];
  const sizes = new Map(Object.entries(sizesOf(step, target)));
  return step.operation.planFor(sizes, target).notes;
}

function stepLines(
  step: Step,
  plan: Plan,
  indent: string,
  texts: Iterator<string, string>,
): readonly string[] {
  const inner = (steps: readonly Step[]): readonly string[] =>
    steps.flatMap((each) => stepLines(each, plan, `${indent}  `, texts));
  const place = (buffer: Buffer): string => placeText(buffer, plan);
  switch (step.kind) {
    case "launch": {
      const [inputs, outputs] = [step.inputs, step.outputs].map((list) =>
        list.map(place).join(", "),
      );
      const { name } = step.kernel.kernel;
      const over = [...step.overwritten.values()].flat().map(place);
      const how = over.length === 0 ? "" : ` over ${over.join(", ")}`;
      const told = remark(step.name, texts.next().value);
      return [`${indent}launch ${name}(${inputs}) -> ${outputs}${how}${told}`];
    }
    case "operation": {
      const [inputs, outputs] = [step.inputs, step.outputs].map((list) =>
        list.map((each) => argumentText(each, plan)).join(", "),
      );
      const { name } = step.operation;
      const told = [step.name, ...notesOf(step, plan)].filter((each) => each !== "").join(", ");
      return [
        `${indent}operation ${name}(${inputs}) -> ${outputs}${remark(told, texts.next().value)}`,
      ];
    }
    case "collective": {
      const { collective, groups } = step.call;
      const [inputs, outputs] = [step.inputs, step.outputs].map((list) =>
        list.map(place).join(", "),
      );
      const among = groups.map((group) => `[${group.join(", ")}]`).join(", ");
      const told = remark(step.name);
      return [
        `${indent}${collectiveText(collective)}(${inputs}) -> ${outputs} among ${among || "none"}${told}`,
      ];
    }
    case "check":
      return [
        `${indent}check ${step.op.kind}(${step.operands.map(place).join(", ")}), by the host`,
      ];
    case "branch":
      return [
        `${indent}branch ${place(step.index)}, by the device or else the host {${remark(step.name)}`,
        ...step.branches.flatMap((branch, i) => [`${indent} case ${i}:`, ...inner(branch)]),
        `${indent}}`,
      ];
    case "while": {
      const how =
        step.trips === undefined
          ? `while ${place(step.predicate)}, asked each turn by the device or else the host`
          : `repeat ${step.trips} times`;
      // The condition is never asked of a loop that is counted.
      const asked = inner(step.condition);
      const condition = step.trips === undefined ? asked : [];
      return [
        `${indent}${how} {${remark(step.name)}`,
        ...condition,
        ...(condition.length === 0 ? [] : [`${indent} do`]),
        ...inner(step.body),
        `${indent}}`,
      ];
    }
  }
}

export function planText(plan: Plan, options: PlanTextOptions = {}): string {
  const texts = costTexts(options);
  const steps = [...allSteps(plan.steps)];
  const launches = steps.filter(({ kind }) => kind === "launch" || kind === "operation");
  const kernels = new Set(
    steps.flatMap((step): readonly object[] => {
      if (step.kind === "launch") return [step.kernel];
      return step.kind === "operation" ? [step.operation] : [];
    }),
  );
  const isOnePiece = launches.length === steps.length;
  return [
    `plan ${plan.name}, target ${plan.target.name}, matmul precision ${plan.matmulPrecision}`,
    `arena ${plan.arenaBytes} bytes`,
    ...Array.from(plan.aliases, ([result, argument]) => `result${result} lies in arg${argument}`),
    ...plan.steps.flatMap((step) => stepLines(step, plan, "", texts)),
    `launches ${launches.length}, kernels ${kernels.size}, one graph ${isOnePiece ? "yes" : "no"}`,
  ].join("\n");
}
