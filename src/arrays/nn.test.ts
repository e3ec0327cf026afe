/** Training with plain functions: the steps are checked against formulas in plain numbers. */
import { describe, expect, test } from "vitest";
import {
  add,
  array,
  full,
  jit,
  lower,
  matmul,
  nn,
  random,
  sum,
  mul,
  tanh,
  valueAndGrad,
  zeros,
} from "./index.ts";
import type { NDArray } from "./index.ts";

type F32 = NDArray<"f32">;
type F64 = NDArray<"f64">;

describe("layers", () => {
  test("cross entropy, layer norm and gelu", async () => {
    const logits = array(
      [
        [1, 2, 3],
        [0, 0, 0],
      ],
      "f64",
    );
    const loss = (await nn.crossEntropy(logits, array([2, 0], "i32")).values()) as number;
    const first = -(3 - Math.log(Math.E + Math.E ** 2 + Math.E ** 3));
    expect(loss).toBeCloseTo((first + Math.log(3)) / 2, 12);
    for (const label of [3, -1])
      expect(await nn.crossEntropy(logits, array([label, 0], "i32")).values()).toBeNaN();
    const row = (await nn
      .layerNorm(logits, full([3], 2, "f64"), full([3], 1, "f64"), { epsilon: 0 })
      .values()) as number[][];
    expect(row[0]?.[1]).toBeCloseTo(1, 12);
    expect(row[0]?.[2]).toBeCloseTo(1 + 2 * Math.sqrt(1.5), 12);
    const bent = (await nn.gelu(array([0, 1], "f64")).values()) as number[];
    expect(bent[0]).toBe(0);
    expect(bent[1]).toBeCloseTo(0.8413447460685429, 12);
    expect(await nn.relu(array([-1, 2], "f64")).values()).toEqual([0, 2]);
  });
});

describe("optimisers", () => {
  test("one step of AdamW is its formula", async () => {
    const w = array([2], "f64");
    const g = array([0.5], "f64");
    const state = { step: zeros([]), first: zeros([1], "f64"), second: zeros([1], "f64") };
    const [next, after] = nn.adamw(w, g, state, { learningRate: 0.1, weightDecay: 0.01 });
    // After one step both moments, corrected, are g and g²; the corrections are counted in f32.
    const expected = 2 - 0.1 * (0.5 / (0.5 + 1e-8) + 0.02);
    expect(((await next.values()) as number[])[0]).toBeCloseTo(expected, 5);
    expect(await after.step.values()).toBe(1);
  });

  test("a small network learns", async () => {
    const [k1, k2, k3] = random.split(random.key(0), 3);
    if (k1 === undefined || k2 === undefined || k3 === undefined) throw new Error("three keys");
    const xs = random.normal(k3, [32, 4]);
    const ys = sum(mul(xs, array([1, -2, 0.5, 1], "f32")), { axis: 1 });
    const loss = (p: { w1: F32; w2: F32 }): F32 => {
      const found = matmul(tanh(matmul(xs, p.w1)), p.w2);
      const off = add(found, mul(ys, -1));
      return mul(sum(mul(off, off)), 1 / 32);
    };
    const step = jit((p: { w1: F32; w2: F32 }) => {
      const [value, gradient] = valueAndGrad(loss)(p);
      return { value, next: nn.sgd(p, gradient, { learningRate: 0.05 }) };
    });
    let parameters = {
      w1: mul(random.normal(k1, [4, 8]), 0.5),
      w2: mul(random.normal(k2, [8]), 0.5),
    };
    const losses: number[] = [];
    for (let i = 0; i < 40; i++) {
      const done = step(parameters);
      parameters = done.next;
      losses.push((await done.value.values()) as number);
    }
    expect(step.compilations).toHaveLength(1);
    expect(losses.at(-1)).toBeLessThan((losses[0] ?? 0) / 5);
  });
});

test("a function as StableHLO text", () => {
  const text = lower((x: F64) => add(tanh(x), 1), zeros([3], "f64"));
  expect(text).toContain("stablehlo.tanh %arg0 : tensor<3xf64>");
  expect(text).toContain("func.func public @main(%arg0: tensor<3xf64>) -> tensor<3xf64>");
});
