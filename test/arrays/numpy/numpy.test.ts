/**
 * Functions that NumPy has too: values against NumPy's own, recorded by `record.py`; batches against one call after the other; gradients
 * against central differences along one direction.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as a from "tilewright/arrays";
import { NDArray } from "tilewright/arrays";
import { cases } from "./cases.ts";
import type { Inputs } from "./inputs.ts";

type F64 = NDArray<"f64">;
interface Recorded {
  readonly shape: readonly number[];
  readonly data: readonly (number | string)[];
}
type Nested = Recorded | readonly Nested[];

const file = new URL("../../fixtures/numpy-results.json", import.meta.url);
const recorded = JSON.parse(readFileSync(file, "utf8")) as {
  readonly inputs: { readonly [name: string]: Recorded };
  readonly results: { readonly [expression: string]: Nested };
};

const numberOf = (each: number | string): number =>
  typeof each === "number" ? each : Number(each.replace("inf", "Infinity"));
const floats = ["m", "s", "v", "w", "q", "t"] as const;
type FloatInput = (typeof floats)[number];

function inputOf<D extends "f64" | "i32">(name: string, dtype: D): NDArray<D> {
  const { shape, data } = recorded.inputs[name] ?? { shape: [], data: [] };
  return a.reshape(a.array(data.map(numberOf), dtype), shape);
}

const f64 = (name: string): F64 => inputOf(name, "f64");
const i32 = (name: string): NDArray<"i32"> => inputOf(name, "i32");
const inputs = (): Inputs => ({
  m: f64("m"),
  s: f64("s"),
  v: f64("v"),
  w: f64("w"),
  q: f64("q"),
  t: f64("t"),
  n: f64("n"),
  i: i32("i"),
  k: i32("k"),
});

const listOf = (result: NDArray | readonly NDArray[]): readonly NDArray[] =>
  result instanceof NDArray ? [result] : result;
const flatOf = async (x: NDArray): Promise<readonly number[]> =>
  [(await a.ravel(x).values()) as unknown].flat(2).map(Number);
const isRecorded = (nested: Nested): nested is Recorded => "data" in nested;

function leavesOf(nested: Nested | undefined): readonly Recorded[] {
  if (nested === undefined) throw new Error("record.py has not run for this expression");
  return isRecorded(nested) ? [nested] : nested.flatMap(leavesOf);
}

/** f32 results have its precision. */
const tolerance = (x: NDArray): number => (x.dtype === "f32" ? 2e-6 : 1e-11);

function expectClose(found: readonly number[], wanted: readonly number[], within: number): void {
  expect(found.length).toBe(wanted.length);
  for (const [index, value] of wanted.entries()) {
    const other = found[index] ?? NaN;
    if (Object.is(other, value) || other === value) continue;
    expect(Math.abs(other - value), `element ${index}: ${other}, ${value}`).toBeLessThanOrEqual(
      within * (1 + Math.abs(value)),
    );
  }
}

const all = Object.entries(cases).flatMap(([name, list]) =>
  list.map(([call, numpy, noGradient]) => ({ name, call, numpy, noGradient })),
);

describe("values are NumPy's", () => {
  test.each(all)("$numpy", async ({ call, numpy }) => {
    const found = listOf(call(inputs()));
    const wanted = leavesOf(recorded.results[numpy]);
    expect(found.map((each) => each.shape)).toEqual(wanted.map((each) => each.shape));
    for (const [index, each] of found.entries())
      expectClose(await flatOf(each), (wanted[index]?.data ?? []).map(numberOf), tolerance(each));
  });
});

/** Other inputs of the same shapes: what one element of a batch does not see of the other. */
function others(of: Inputs): Inputs {
  const moved = (x: F64): F64 => a.flip(a.mul(x, 0.93), { axis: x.rank - 1 });
  return {
    m: moved(of.m),
    s: moved(of.s),
    v: moved(of.v),
    w: a.mul(of.w, 1.07),
    q: moved(of.q),
    t: moved(of.t),
    n: a.flip(of.n),
    i: a.flip(of.i),
    k: a.flip(of.k),
  };
}

test.each(all)("a batch of $numpy", async ({ call }) => {
  const [first, second] = [inputs(), others(inputs())];
  const both = a.mapTree(first, (leaf, index) =>
    a.stack([leaf, Object.values(second)[order(first, index)] as NDArray]),
  );
  const batch = listOf(a.vmap((each: Inputs) => listOf(call(each)))(both));
  for (const [place, given] of [first, second].entries())
    for (const [index, each] of listOf(call(given)).entries()) {
      const part = a.squeeze(a.slice(batch[index] ?? each, [[place, place + 1]]), { axis: 0 });
      expect(part.shape).toEqual(each.shape);
      expectClose(await flatOf(part), await flatOf(each), 1e-12);
    }
});

/** Leaves come in the order of their names, fields in the order of writing. */
const order = (of: Inputs, leaf: number): number =>
  Object.keys(of).indexOf(Object.keys(of).sort()[leaf] ?? "");

const smooth = all.filter(({ noGradient }) => noGradient === undefined);

/** One number from all results that are floats, in which each counts differently. */
function weighed(results: readonly NDArray[]): F64 {
  return results
    .filter(({ dtype }) => dtype === "f64")
    .map((each) => {
      const flat = a.ravel(each as F64);
      const places = a.iota(flat.shape, "f64", { axis: 0 });
      return a.sum(a.mul(flat, a.add(a.cos(places), 1.3)));
    })
    .reduce((sum, each) => a.add(sum, each), a.array(0, "f64"));
}

test.each(smooth)("the gradient of $numpy", async ({ call }) => {
  type Parts = { readonly [name in FloatInput]: F64 };
  const start = inputs();
  const parts: Parts = { m: start.m, s: start.s, v: start.v, w: start.w, q: start.q, t: start.t };
  const loss = (given: Parts): F64 => weighed(listOf(call({ ...start, ...given })));
  const gradient = a.grad(loss)(parts);
  // A direction that differs from place to place, so that nothing cancels.
  const direction = a.mapTree(parts, (leaf) => {
    const places = a.reshape(a.iota([a.ravel(leaf).shape[0] ?? 1], "f64", { axis: 0 }), leaf.shape);
    return a.sin(a.add(a.mul(places, 2.3), 1)) as NDArray;
  }) as Parts;
  const products = floats.map((name) => a.sum(a.mul(gradient[name], direction[name])));
  const slope = Number(await products.reduce((sum, each) => a.add(sum, each)).values());
  const step = 1e-6;
  const at = async (by: number): Promise<number> =>
    Number(
      await loss(
        a.mapTree(parts, (leaf, index) => {
          const name = [...floats].sort()[index] ?? "m";
          return a.add(leaf as F64, a.mul(direction[name], by)) as NDArray;
        }) as Parts,
      ).values(),
    );
  const difference = ((await at(step)) - (await at(-step))) / (2 * step);
  if (Number.isNaN(difference)) return expect(slope).toBeNaN();
  expectClose([slope], [difference], 2e-6 * Math.max(1, Math.abs(difference)));
});
