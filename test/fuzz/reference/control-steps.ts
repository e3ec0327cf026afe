/** Steps that hold others: loops with carries, conditions and cases, with values of what is around them. */
import { bool, i32 } from "../../../src/formats/dtype.ts";
import { loop, switchCase, when, whileLoop } from "../../../src/index.ts";
import type { Scalar, Tile } from "../../../src/index.ts";
import type { Draft } from "./draft.ts";
import { formats } from "./draft.ts";
import { held } from "./held.ts";
import type { Held } from "./held.ts";
import { computeBody, tileOf, traceBody, usesOf } from "./steps.ts";
import type { Body, Slot, TracedValue, Value } from "./steps.ts";

export type Filling = (draft: Draft, count: number) => void;

export function whole(value: number): Held {
  return held(i32, [], () => BigInt(value));
}

/** A value as a number of the language. */
export function numberOf(value: Value): Scalar<"i32"> {
  return value as unknown as Scalar<"i32">;
}

/** Values to carry, of any format and shape. */
export function carried(draft: Draft): readonly Slot[] {
  return Array.from({ length: 1 + draft.random.below(3) }, () => draft.some(() => true, formats));
}

/** A body that ends with values like some others. */
export function bodyLike(
  draft: Draft,
  takes: readonly Slot[],
  like: readonly Slot[],
  fill: Filling,
): Body {
  return draft.body(takes, () => {
    fill(draft, 1 + draft.random.below(4));
    return like.map(({ dtype, shape }) => draft.exactly(dtype, shape));
  });
}

export function like(draft: Draft, slots: readonly Slot[]): readonly Slot[] {
  return slots.map(({ dtype, shape }) => draft.slot(dtype, shape));
}

function loopStep(draft: Draft, fill: Filling): void {
  const { random } = draft;
  const initial = carried(draft);
  const index = draft.slot(i32, []);
  const from = draft.chance(0.3) ? random.below(5) - 2 : 0;
  const limit = draft.chance(0.5) ? draft.indexBelow(4) : undefined;
  const to = random.below(5);
  const by = 1 + random.below(2);
  const takes = like(draft, initial);
  const body = bodyLike(draft, [index, ...takes], initial, fill);
  const gives = like(draft, initial);
  draft.add({
    name: `loop ${from} ${to} ${by}`,
    uses: [...initial, ...(limit === undefined ? [] : [limit]), ...usesOf(body)],
    gives,
    trace: (tracing) => {
      const { read } = tracing;
      const bounds = { from, to: limit === undefined ? to : numberOf(read(limit)), step: by };
      const carry = initial.map((slot) => tileOf(read(slot)));
      return loop(
        { ...bounds, carry },
        (at, values) => [...traceBody(body, tracing, [at, ...values])] as Tile[],
      );
    },
    compute: (computing) => {
      let values: readonly Held[] = initial.map(computing.read);
      const end = limit === undefined ? to : Number(computing.read(limit).items[0]);
      for (let at = from; at < end; at += by)
        values = computeBody(body, computing, [whole(at), ...values]);
      return values;
    },
  });
}

function whileStep(draft: Draft, fill: Filling): void {
  const initial = carried(draft);
  const count = draft.slot(i32, []);
  const takes = like(draft, initial);
  const body = bodyLike(draft, [count, ...takes], initial, fill);
  const limit = draft.indexBelow(4);
  draft.add({
    name: "while",
    uses: [...initial, limit, ...usesOf(body)],
    gives: like(draft, initial),
    trace: (tracing) => {
      const { read } = tracing;
      const end = numberOf(read(limit));
      const first = [end.mul(0), ...initial.map((slot) => tileOf(read(slot)))];
      const [, ...values] = whileLoop<readonly TracedValue[]>(
        first,
        ([at]) => (at as Scalar<"i32">).lt(end),
        ([at, ...before]) => {
          const count = at as Scalar<"i32">;
          return [count.add(1), ...traceBody(body, tracing, [count, ...before])];
        },
      );
      return values;
    },
    compute: (computing) => {
      let values: readonly Held[] = initial.map(computing.read);
      const end = Number(computing.read(limit).items[0]);
      for (let at = 0; at < end; at++)
        values = computeBody(body, computing, [whole(at), ...values]);
      return values;
    },
  });
}

function whenStep(draft: Draft, fill: Filling): void {
  const results = carried(draft);
  const condition = draft.exactly(bool, []);
  const [then, otherwise] = [0, 1].map(() => bodyLike(draft, [], results, fill)) as [Body, Body];
  draft.add({
    name: "when",
    uses: [condition, ...usesOf(then), ...usesOf(otherwise)],
    gives: like(draft, results),
    trace: (tracing) =>
      when(
        tileOf(tracing.read(condition)) as unknown as Scalar<"bool">,
        () => traceBody(then, tracing, []),
        () => traceBody(otherwise, tracing, []),
      ),
    compute: (computing) =>
      computeBody(computing.read(condition).items[0] === true ? then : otherwise, computing, []),
  });
}

function switchStep(draft: Draft, fill: Filling): void {
  const results = carried(draft);
  const index = draft.exactly(i32, []);
  const cases = Array.from({ length: 1 + draft.random.below(4) }, () =>
    bodyLike(draft, [], results, fill),
  );
  draft.add({
    name: "switchCase",
    uses: [index, ...cases.flatMap(usesOf)],
    gives: like(draft, results),
    trace: (tracing) =>
      switchCase(
        numberOf(tracing.read(index)),
        cases.map((body) => () => traceBody(body, tracing, [])),
      ),
    compute: (computing) => {
      const at = Number(computing.read(index).items[0]);
      const chosen = cases[Math.min(cases.length - 1, Math.max(0, at))];
      if (chosen === undefined) throw new Error("there is a case");
      return computeBody(chosen, computing, []);
    },
  });
}

export const controlSteps: readonly ((draft: Draft, fill: Filling) => void)[] = [
  ...[loopStep, loopStep, whileStep, whenStep, switchStep],
];
