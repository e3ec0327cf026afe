/** What steps of random programs find around them: values by their slots, arrays by their names, and how those lie and are given to a launch. */
import { dim, tensor as arrayOf, fromNumbers } from "../../../src/index.ts";
import type { HostArray } from "../../../src/index.ts";
import type { Random } from "../../../src/support/random.ts";
import { drawLying, reachOf } from "../strides.ts";
import { anyItem, formats } from "./draft.ts";
import { countOf, held, stridedView, viewOf } from "./held.ts";
import type { Held, View } from "./held.ts";
import type { Source } from "./memory-steps.ts";
import { valueOf } from "./steps.ts";
import type { Computing, Slot, TracedValue, Tracing } from "./steps.ts";

export function hostOf({ dtype, shape, items }: Held): HostArray {
  return fromNumbers(dtype, shape, items as number[]);
}

export function tracingOf(
  values: ReadonlyMap<Slot, TracedValue>,
  arrays: (name: string) => object,
): Tracing {
  const own = new Map(values);
  return {
    read: (slot) => valueOf(own.get(slot) ?? missing(slot)),
    give: (slot, value) => own.set(slot, value),
    inner: (more) => tracingOf(new Map([...own, ...more]), arrays),
    array: (name) => valueOf(arrays(name)),
  };
}

export function computingOf(
  values: ReadonlyMap<Slot, Held>,
  arrays: ReadonlyMap<string, View>,
): Computing {
  const own = new Map(values);
  return {
    read: (slot) => own.get(slot) ?? missing(slot),
    give: (slot, value) => own.set(slot, value),
    inner: (more) => computingOf(new Map([...own, ...more]), arrays),
    array: (name) => arrays.get(name) ?? missing(name),
  };
}

export function missing(what: Slot | string): never {
  throw new Error(`there is no ${typeof what === "string" ? what : `value ${what.id}`}`);
}

/** An array to read, of any format and lying anyhow. */
export function drawSource(random: Random, name: string, drawn: readonly number[]): Source {
  // Not so many elements that computing with them takes minutes.
  const axes = drawn.findLastIndex((_, last) => countOf(drawn.slice(0, last + 1)) <= 65_536);
  const shape = drawn.slice(0, axes + 1);
  const isLaunched = random.below(3) === 0;
  const lying = drawLying(random, name, shape, { overlaps: true });
  return { name, dtype: random.pick(formats), shape, isLaunched, lying };
}

/** The memory of an array that is read. */
export function drawMemory({ dtype, shape, lying }: Source, random: Random): Held {
  const memory = lying === undefined ? shape : [reachOf(shape, lying.strides)];
  return held(dtype, memory, () => anyItem(dtype, random));
}

export function sourceView({ shape, lying }: Source, memory: Held): View {
  return lying === undefined ? viewOf(memory) : stridedView(memory, shape, lying.strides);
}

/** Arrays as a kernel declares them, and values of the sizes that only the launch knows. */
export function declaredSources(sources: readonly Source[]): {
  readonly inputs: object;
  readonly dimensions: { readonly [name: string]: number };
} {
  const dimensions: { [name: string]: number } = {};
  const inputs = Object.fromEntries(
    sources.map(({ name, dtype, shape, isLaunched, lying }) => {
      Object.assign(dimensions, lying?.dimensions);
      const options = lying && { strides: lying.declared };
      if (!isLaunched) return [name, arrayOf(dtype, shape, options)];
      const own = `${name}_rows`;
      dimensions[own] = shape[0] ?? 1;
      return [name, arrayOf(dtype, [dim(own), ...shape.slice(1)], options)];
    }),
  );
  return { inputs, dimensions };
}
