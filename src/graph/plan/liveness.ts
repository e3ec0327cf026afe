/**
 * Which buffers hold what somebody reads later, found backwards from the end of a plan. A loop's body is read again from its
 * beginning, so that what a turn needs of the turn before lives through the end of the body.
 *
 *   launch a -> x        live after: x
 *   repeat {
 *     launch x -> y      live after: y
 *     copy y -> x        live after: x, which the next turn reads
 *   }
 */
import type { Buffer, LaunchStep, OperationStep, Step, WhileStep } from "./plan.ts";

/** Is told of each launch, with the buffers that live after it. */
export type LaunchVisitor = (step: LaunchStep | OperationStep, live: ReadonlySet<Buffer>) => void;

export function inputsOf(step: LaunchStep | OperationStep): readonly Buffer[] {
  return step.kind === "launch" ? step.inputs : step.inputs.map(({ buffer }) => buffer);
}

export function outputsOf(step: LaunchStep | OperationStep): readonly Buffer[] {
  return step.kind === "launch" ? step.outputs : step.outputs.map(({ buffer }) => buffer);
}

/** The buffers that live before steps, of those after them. */
export function liveBefore(
  steps: readonly Step[],
  after: ReadonlySet<Buffer>,
  visit?: LaunchVisitor,
): ReadonlySet<Buffer> {
  const live = new Set(after);
  for (const step of steps.toReversed()) {
    switch (step.kind) {
      case "launch":
      case "operation":
        visit?.(step, live);
        for (const buffer of outputsOf(step)) live.delete(buffer);
        for (const buffer of inputsOf(step)) live.add(buffer);
        break;
      case "collective":
        for (const buffer of step.outputs) live.delete(buffer);
        for (const buffer of step.inputs) live.add(buffer);
        break;
      case "check":
        for (const buffer of step.operands) live.add(buffer);
        break;
      case "branch": {
        const ends = new Set(live);
        live.clear();
        for (const branch of step.branches)
          for (const buffer of liveBefore(branch, ends, visit)) live.add(buffer);
        live.add(step.index);
        break;
      }
      case "while":
        for (const buffer of liveAtHead(step, new Set(live), visit)) live.add(buffer);
        break;
    }
  }
  return live;
}

/** What lives where a loop decides whether there is another turn: what the turn needs, or what is after the loop. */
function liveAtHead(
  { condition, predicate, body }: WhileStep,
  after: ReadonlySet<Buffer>,
  visit: LaunchVisitor | undefined,
): ReadonlySet<Buffer> {
  const turn = (head: ReadonlySet<Buffer>, told?: LaunchVisitor): ReadonlySet<Buffer> => {
    const decided = new Set([...after, ...liveBefore(body, head, told), predicate]);
    return liveBefore(condition, decided, told);
  };
  let head = turn(after);
  for (;;) {
    const next = new Set([...head, ...turn(head)]);
    if (next.size === head.size) break;
    head = next;
  }
  turn(head, visit);
  return head;
}
