/**
 * Steps without what nobody needs. A plan is first made for all combinations of digits, inside the tile
 * or not; here words that hold nothing are followed forwards, words that nobody reads are removed
 * backwards, steps that change nothing go, and packing twice becomes packing once.
 */
import { nothing } from "./steps.ts";
import type { PackStep, SelectStep, ShuffleStep } from "./steps.ts";

/** Steps that need no memory. */
export type LaneStep = PackStep | SelectStep | ShuffleStep;

export function simplify(steps: readonly LaneStep[], slots: number): readonly LaneStep[] {
  const live = dropUnread(followNothing(steps, slots), slots);
  const merged: LaneStep[] = [];
  for (const step of live) {
    const before = merged.at(-1);
    if (step.kind === "pack" && before?.kind === "pack") {
      merged.pop();
      merged.push(composePacks(before, step, slots));
    } else if (step.kind === "pack" || !changesNothing(step, slots)) merged.push(step);
  }
  return merged.filter((step) => !changesNothing(step, slots));
}

function composePacks(first: PackStep, second: PackStep, slots: number): PackStep {
  const origin = (slot: number): number =>
    slot === nothing ? nothing : (first.words[Math.floor(slot / slots)]?.[slot % slots] ?? nothing);
  return { kind: "pack", words: second.words.map((word) => word.map(origin)) };
}

/** The first file is whole; `empty` tells which words of the file before a step hold nothing. */
function followNothing(steps: readonly LaneStep[], slots: number): readonly LaneStep[] {
  let empty: readonly boolean[] = [];
  const held = (word: number): number => (empty[word] === true ? nothing : word);
  return steps.map((step) => {
    const next = rename(step, held, slots);
    empty = emptyWords(next);
    return next;
  });
}

function emptyWords(step: LaneStep): readonly boolean[] {
  if (step.kind === "pack") return step.words.map((word) => word.every((slot) => slot === nothing));
  if (step.kind === "select") return step.zeros.map((zero) => zero === nothing);
  return step.words.map(({ word }) => word === nothing);
}

/** The step reading word `name(word)` where it read `word`. A choice without one side is none. */
function rename(step: LaneStep, name: (word: number) => number, slots: number): LaneStep {
  const of = (word: number): number => (word === nothing ? nothing : name(word));
  if (step.kind === "shuffle")
    return {
      kind: "shuffle",
      words: step.words.map(({ word, lanes }) => ({ word: of(word), lanes })),
    };
  if (step.kind === "select") {
    const zeros = step.zeros.map(of);
    const ones = step.ones.map(of);
    return {
      ...step,
      zeros: zeros.map((zero, index) => (zero === nothing ? (ones[index] ?? nothing) : zero)),
      ones: ones.map((one, index) => (one === nothing ? (zeros[index] ?? nothing) : one)),
    };
  }
  const slotName = (slot: number): number => {
    const word = slot === nothing ? nothing : of(Math.floor(slot / slots));
    return word === nothing ? nothing : word * slots + (slot % slots);
  };
  return { kind: "pack", words: step.words.map((word) => word.map(slotName)) };
}

/** From the last step to the first, keeps the words that are read, and numbers them densely. */
function dropUnread(steps: readonly LaneStep[], slots: number): readonly LaneStep[] {
  const kept: LaneStep[] = [];
  let following: LaneStep | undefined;
  for (const step of steps.toReversed()) {
    if (following !== undefined) {
      const read = wordsRead(following, slots);
      const numbers = new Map(read.map((word, index) => [word, index]));
      kept.push(rename(following, (word) => numbers.get(word) ?? nothing, slots));
      following = only(step, read);
    } else following = step;
  }
  if (following !== undefined) kept.push(following);
  return kept.reverse();
}

function wordsRead(step: LaneStep, slots: number): readonly number[] {
  const read =
    step.kind === "pack"
      ? step.words.flat().map((slot) => Math.floor(slot / slots))
      : step.kind === "select"
        ? [...step.zeros, ...step.ones]
        : step.words.map(({ word }) => word);
  const words = new Set(read);
  words.delete(nothing);
  return [...words].sort((left, right) => left - right);
}

/** The step with these of its words. */
function only(step: LaneStep, words: readonly number[]): LaneStep {
  const take = <T>(list: readonly T[]): readonly T[] => words.map((word) => list[word] as T);
  if (step.kind === "pack") return { ...step, words: take(step.words) };
  if (step.kind === "shuffle") return { ...step, words: take(step.words) };
  return { ...step, zeros: take(step.zeros), ones: take(step.ones) };
}

function changesNothing(step: LaneStep, slots: number): boolean {
  if (step.kind === "pack")
    return step.words.every((word, index) =>
      word.every((slot, part) => slot === nothing || slot === index * slots + part),
    );
  if (step.kind === "select")
    return step.zeros.every((zero, index) => zero === index && step.ones[index] === index);
  return step.words.every(({ word, lanes }, index) => word === index && lanes === undefined);
}
