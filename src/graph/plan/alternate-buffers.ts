/**
 * Loops whose turns read one array and write another: two turns become one, and the second writes where the first has read, so that
 * nothing is copied back.
 *
 *   repeat 500 times { launch f(x) -> y, copy y -> x }     repeat 250 times { launch f(x) -> y, launch f(y) -> x }
 */
import { inputsOf, outputsOf } from "./liveness.ts";
import { allSteps, buffersOf, innerSteps } from "./plan.ts";
import type { Buffer, LaunchStep, OperationStep, Overwritten, Step, WhileStep } from "./plan.ts";

/** Longer bodies than these are not written twice. */
const mostSteps = 1024;

/** A copy at the end of a turn, of a buffer that is there for the turn alone. */
interface Return {
  readonly copy: LaunchStep;
  readonly from: Buffer;
  readonly to: Buffer;
}

export function alternateBuffers(steps: readonly Step[]): readonly Step[] {
  const uses = new Map<Buffer, number>();
  for (const step of allSteps(steps)) countUses(step, uses);
  return alternated(steps, uses);
}

function countUses(step: Step, uses: Map<Buffer, number>): void {
  for (const buffer of [...buffersOf(step), ...overwrittenBy(step)])
    uses.set(buffer, (uses.get(buffer) ?? 0) + 1);
}

function overwrittenBy(step: Step): readonly Buffer[] {
  return step.kind === "launch" ? [...step.overwritten.values()].flat() : [];
}

function alternated(steps: readonly Step[], uses: ReadonlyMap<Buffer, number>): readonly Step[] {
  return steps.flatMap((step) => {
    if (step.kind === "branch")
      return [{ ...step, branches: step.branches.map((branch) => alternated(branch, uses)) }];
    if (step.kind !== "while") return [step];
    return turnsOf({ ...step, body: alternated(step.body, uses) }, uses);
  });
}

function turnsOf(loop: WhileStep, uses: ReadonlyMap<Buffer, number>): readonly Step[] {
  const { body, trips } = loop;
  if (trips === undefined || trips < 2 || [...allSteps(body)].length > mostSteps) return [loop];
  const returns = returnsOf(body, uses);
  if (returns.length === 0) return [loop];
  const copies = new Set<Step>(returns.map(({ copy }) => copy));
  const turn = body.filter((step) => !copies.has(step));
  const swapped = new Map(
    returns.flatMap(({ from, to }) => [
      [from, to],
      [to, from],
    ]),
  );
  const other = turn.map((step) => renamed(step, (buffer) => swapped.get(buffer) ?? buffer));
  const pairs = { ...loop, body: [...turn, ...other], trips: Math.floor(trips / 2) };
  return trips % 2 === 0 ? [pairs] : [pairs, ...turn, ...copies];
}

/** The copies at the end of a body for which two arrays can take turns. */
function returnsOf(body: readonly Step[], uses: ReadonlyMap<Buffer, number>): readonly Return[] {
  const own = new Map<Buffer, number>();
  for (const step of allSteps(body)) countUses(step, own);
  const end = body.findLastIndex((step) => step.kind !== "launch" || step.form !== "copy");
  const rest = body.slice(end + 1).filter((step) => step.kind === "launch");
  const isOnce = (buffer: Buffer): boolean =>
    rest.filter((step) => buffersOf(step).includes(buffer)).length === 1;
  return rest.flatMap((copy) => {
    const [[from], [to]] = [copy.inputs, copy.outputs];
    if (from === undefined || to === undefined || !isOnce(from) || !isOnce(to)) return [];
    const isOwn = from.place.kind === "arena" && uses.get(from) === own.get(from);
    const isSettled = isOwn && isWrittenFirst(body, from) && !isWritten(body, to, copy);
    return isSettled ? [{ copy, from, to }] : [];
  });
}

/** Whether the first step that has to do with a buffer writes all of it. */
function isWrittenFirst(body: readonly Step[], buffer: Buffer): boolean {
  const first = body.find((step) =>
    [...allSteps([step])].some((each) =>
      [...buffersOf(each), ...overwrittenBy(each)].includes(buffer),
    ),
  );
  if (first === undefined || !isLaunch(first)) return false;
  return !inputsOf(first).includes(buffer) && !overwrittenBy(first).includes(buffer);
}

function isWritten(body: readonly Step[], buffer: Buffer, but: Step): boolean {
  return [...allSteps(body)].some(
    (step) => step !== but && isLaunch(step) && outputsOf(step).includes(buffer),
  );
}

function isLaunch(step: Step): step is LaunchStep | OperationStep {
  return step.kind === "launch" || step.kind === "operation";
}

/** A step over other buffers. */
export function renamed(step: Step, to: (buffer: Buffer) => Buffer): Step {
  const within = (steps: readonly Step[]): readonly Step[] =>
    steps.map((each) => renamed(each, to));
  switch (step.kind) {
    case "launch":
      return {
        ...step,
        inputs: step.inputs.map(to),
        outputs: step.outputs.map(to),
        overwritten: renamedLists(step.overwritten, to),
        overwritable: renamedLists(step.overwritable, to),
      };
    case "operation":
      return {
        ...step,
        inputs: step.inputs.map((each) => ({ ...each, buffer: to(each.buffer) })),
        outputs: step.outputs.map((each) => ({ ...each, buffer: to(each.buffer) })),
      };
    case "collective":
      return { ...step, inputs: step.inputs.map(to), outputs: step.outputs.map(to) };
    case "check":
      return { ...step, operands: step.operands.map(to) };
    case "branch":
      return { ...step, index: to(step.index), branches: step.branches.map(within) };
    case "while":
      return {
        ...step,
        predicate: to(step.predicate),
        condition: within(step.condition),
        body: within(step.body),
      };
  }
}

function renamedLists(lists: Overwritten, to: (buffer: Buffer) => Buffer): Overwritten {
  return new Map(Array.from(lists, ([place, buffers]) => [place, buffers.map(to)]));
}

/** The steps without launches whose results nobody reads, such as those of a counter that no turn asks for. */
export function withoutDeadLaunches(
  steps: readonly Step[],
  results: ReadonlySet<Buffer>,
): readonly Step[] {
  const needed = new Set(results);
  const launches: (LaunchStep | OperationStep)[] = [];
  for (const step of allSteps(steps))
    if (isLaunch(step)) launches.push(step);
    else for (const buffer of buffersOf(step)) needed.add(buffer);
  let pending: readonly (LaunchStep | OperationStep)[] = launches;
  for (;;) {
    const isNeeded = (step: LaunchStep | OperationStep): boolean =>
      step.kind === "operation" || outputsOf(step).some((buffer) => needed.has(buffer));
    const found = pending.filter(isNeeded);
    if (found.length === 0) break;
    pending = pending.filter((step) => !isNeeded(step));
    for (const step of found)
      for (const buffer of [...inputsOf(step), ...overwrittenBy(step)]) needed.add(buffer);
  }
  const dead = new Set<Step>(pending);
  const kept = (list: readonly Step[]): readonly Step[] =>
    list
      .filter((step) => !dead.has(step))
      .map((step) => {
        if (innerSteps(step).length === 0) return step;
        if (step.kind === "branch") return { ...step, branches: step.branches.map(kept) };
        if (step.kind !== "while") return step;
        return { ...step, condition: kept(step.condition), body: kept(step.body) };
      });
  return dead.size === 0 ? steps : kept(steps);
}
