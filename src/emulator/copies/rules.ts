/** The instructions of asynchronous copies, by the modifiers behind `cp`. */
import { forLanes, lanesOf } from "../asynchronous.ts";
import type { Collective, CollectiveInstruction, CollectiveRule } from "../collective.ts";
import { bulkLoad, bulkPrefetch, bulkReduction, bulkStore } from "./bulk.ts";
import { groupsOf } from "./groups.ts";
import type { GroupKind } from "./groups.ts";
import { arriveWhenCopied, ordinaryCopy } from "./ordinary.ts";
import { reductionOf } from "./reduction.ts";
import { tensorLoad, tensorPrefetch, tensorStore } from "./tensor.ts";

function commitGroup(instruction: CollectiveInstruction, kind: GroupKind): Collective {
  return forLanes(instruction, ({ warp, lane }) => {
    groupsOf(kind, warp).commit(lane);
  });
}

/** Waits until all groups but the newest `pending` have been read, or are done. */
function waitGroup(
  instruction: CollectiveInstruction,
  kind: GroupKind,
  pending: number,
): Collective {
  const part = instruction.modifiers.includes("read") ? "source" : "all";
  return {
    aligned: false,
    run: ({ warp, mask }) => {
      const groups = groupsOf(kind, warp);
      const lanes = lanesOf(mask);
      const awaited = lanes.flatMap((lane) => groups.awaited(lane, pending, part));
      if (awaited.some(({ sourceRead, done }) => !(part === "source" ? sourceRead : done)))
        return "retry";
      for (const work of new Set(awaited)) work.issue.tell(part);
      for (const lane of lanes) groups.settle(lane, pending, part);
      return "done";
    },
  };
}

/** `cp.async.wait_all`: waits for everything, committed or not. */
function waitAll(): Collective {
  return {
    aligned: false,
    run: ({ warp, mask }) => {
      const groups = groupsOf("ordinary", warp);
      const lanes = lanesOf(mask);
      const awaited = new Set(lanes.flatMap((lane) => groups.unawaited(lane)));
      for (const { done } of awaited) if (!done) return "retry";
      for (const { issue } of awaited) issue.tell("all");
      for (const lane of lanes) {
        groups.commit(lane);
        groups.settle(lane, 0, "all");
      }
      return "done";
    },
  };
}

function pendingOf({ operands }: CollectiveInstruction): number | undefined {
  const operand = operands[0]?.operand;
  return operand?.kind === "integer" ? Number(operand.value) : undefined;
}

function waitRule(instruction: CollectiveInstruction, kind: GroupKind): Collective | undefined {
  const pending = pendingOf(instruction);
  return pending === undefined ? undefined : waitGroup(instruction, kind, pending);
}

function intoShared(modifiers: readonly string[]): boolean {
  const first = modifiers.find((modifier) => /^(?:global|shared)/.test(modifier));
  return first?.startsWith("shared") === true;
}

/** `cp.async.bulk…` and `cp.reduce.async.bulk…` behind the words that name them. */
function bulk(instruction: CollectiveInstruction, reduces: boolean): Collective | undefined {
  const { modifiers } = instruction;
  const has = (modifier: string): boolean => modifiers.includes(modifier);
  if (has("commit_group")) return commitGroup(instruction, "bulk");
  if (has("wait_group")) return waitRule(instruction, "bulk");
  if (has("prefetch") && modifiers.some((modifier) => modifier.startsWith("im2col::")))
    return undefined;
  if (has("prefetch"))
    return has("tensor") ? tensorPrefetch(instruction) : bulkPrefetch(instruction);
  const operation = reduces ? reductionOf(modifiers) : undefined;
  if (reduces && operation === undefined) return undefined;
  if (has("tensor")) {
    // Columns of im2col along one axis alone: nobody says how their offsets count.
    if (modifiers.some((modifier) => modifier.startsWith("im2col::"))) return undefined;
    return intoShared(modifiers) ? tensorLoad(instruction) : tensorStore(instruction, operation);
  }
  const reduction = bulkReduction(operation, modifiers.at(-1));
  if (reduces && reduction === undefined) return undefined;
  if (!intoShared(modifiers)) return bulkStore(instruction, reduction);
  return bulkLoad(instruction, has("global") ? "global" : "shared", reduction);
}

export const cp: CollectiveRule = (instruction) => {
  const { modifiers } = instruction;
  const [first, second, third] = modifiers;
  if (first === "reduce") return bulk(instruction, true);
  if (first !== "async") return undefined;
  if (second === "bulk") return bulk(instruction, false);
  if (second === "commit_group") return commitGroup(instruction, "ordinary");
  if (second === "wait_group") return waitRule(instruction, "ordinary");
  if (second === "wait_all") return waitAll();
  if (second === "mbarrier" && third === "arrive") return arriveWhenCopied(instruction);
  return ordinaryCopy(instruction);
};
