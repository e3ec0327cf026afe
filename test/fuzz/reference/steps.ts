/**
 * Steps of random programs, each of which is said twice: as calls of the language, which are traced, and as what it does to elements, which is
 * computed beside it.
 */
import type { DType } from "../../../src/formats/dtype.ts";
import type { Scalar, Tile } from "../../../src/index.ts";
import type { Held, View } from "./held.ts";

/** A value of the program: its number, format and shape, which is empty of a scalar. */
export interface Slot {
  readonly id: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
}

export type TracedValue = Scalar | Tile;

type Method = (...operands: readonly unknown[]) => Value;

type MethodName =
  | (
      | "abs"
      | "add"
      | "and"
      | "at"
      | "atomic"
      | "bitcast"
      | "broadcastTo"
      | "cast"
      | "compareExchange"
      | "expand"
      | "floor"
    )
  | (
      | "fma"
      | "ge"
      | "isFinite"
      | "isNan"
      | "load"
      | "loadScalar"
      | "lt"
      | "maximum"
      | "minimum"
      | "mul"
    )
  | ("rem" | "reshape" | "select" | "slice" | "store" | "transpose");

/** A value or window whose format is drawn, so that no type can say which functions it has. */
export type Value = { readonly [M in MethodName]: Method };

/** The value as functions of the language take it. */
export function tileOf(value: Value): Tile {
  return value as unknown as Tile;
}

/** Anything of the language, such as a window, as a value. */
export function valueOf(item: object): Value {
  return item as Value;
}

/** A function of a value, or of a window, by its name. */
export function called(value: unknown, method: string, ...operands: readonly unknown[]): Value {
  const found = (value as { readonly [name: string]: Method | undefined })[method];
  if (found === undefined) throw new Error(`there is no function ${method}`);
  return found.apply(value, [...operands]);
}

export interface Tracing {
  readonly read: (slot: Slot) => Value;
  readonly inner: (values: readonly (readonly [Slot, TracedValue])[]) => Tracing;
  readonly give: (slot: Slot, value: TracedValue) => void;
  readonly array: (name: string) => Value;
}

export interface Computing {
  readonly read: (slot: Slot) => Held;
  readonly inner: (values: readonly (readonly [Slot, Held])[]) => Computing;
  readonly give: (slot: Slot, value: Held) => void;
  readonly array: (name: string) => View;
}

export interface Step {
  readonly name: string;
  readonly uses: readonly Slot[];
  readonly gives: readonly Slot[];
  readonly trace: (tracing: Tracing) => readonly TracedValue[];
  readonly compute: (computing: Computing) => readonly Held[];
}

/** Steps that run with values of their own, and what they end with. */
export interface Body {
  readonly takes: readonly Slot[];
  readonly steps: readonly Step[];
  readonly results: readonly Slot[];
}

export function traceSteps(steps: readonly Step[], tracing: Tracing): void {
  for (const step of steps) {
    const values = step.trace(tracing);
    step.gives.forEach((slot, at) => {
      const value = values[at];
      if (value === undefined) throw new Error(`${step.name} gives too little`);
      tracing.give(slot, value);
    });
  }
}

export function computeSteps(steps: readonly Step[], computing: Computing): void {
  for (const step of steps) {
    const values = step.compute(computing);
    step.gives.forEach((slot, at) => {
      const value = values[at];
      if (value === undefined) throw new Error(`${step.name} gives too little`);
      const isAsSaid = value.dtype === slot.dtype && value.shape.join() === slot.shape.join();
      if (!isAsSaid)
        throw new Error(
          `${step.name}: the reference has ${value.dtype.name}[${value.shape.join()}] for ${slot.dtype.name}[${slot.shape.join()}]`,
        );
      computing.give(slot, value);
    });
  }
}

export function traceBody(
  { takes, steps, results }: Body,
  outer: Tracing,
  values: readonly TracedValue[],
): readonly TracedValue[] {
  const inner = outer.inner(
    takes.map((slot, at) => {
      const value = values[at];
      if (value === undefined) throw new Error("a body takes too much");
      return [slot, value] as const;
    }),
  );
  traceSteps(steps, inner);
  return results.map((slot) => tileOf(inner.read(slot)));
}

export function computeBody(
  { takes, steps, results }: Body,
  outer: Computing,
  values: readonly Held[],
): readonly Held[] {
  const inner = outer.inner(
    takes.map((slot, at) => {
      const value = values[at];
      if (value === undefined) throw new Error("a body takes too much");
      return [slot, value] as const;
    }),
  );
  computeSteps(steps, inner);
  return results.map((slot) => inner.read(slot));
}

/** What a body reads of what is around it. */
export function usesOf({ takes, steps, results }: Body): readonly Slot[] {
  const own = new Set<Slot>([...takes, ...steps.flatMap(({ gives }) => gives)]);
  return [...steps.flatMap(({ uses }) => uses), ...results].filter((slot) => !own.has(slot));
}

/** The steps that some results follow from, in their order. */
export function neededSteps(steps: readonly Step[], results: readonly Slot[]): readonly Step[] {
  const wanted = new Set(results);
  const kept: Step[] = [];
  for (const step of steps.toReversed()) {
    if (!step.gives.some((slot) => wanted.has(slot))) continue;
    kept.unshift(step);
    step.uses.forEach((slot) => wanted.add(slot));
  }
  return kept;
}
