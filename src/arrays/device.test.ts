/** Arrays on the simulator give what the evaluator gives. */
import { afterEach, describe, expect, test } from "vitest";
import { open } from "../runtime/open.ts";
import { add, array, grad, jit, matmul, mul, sub, sum, tanh, useDevice } from "./index.ts";
import type { Array } from "./index.ts";

type F32 = Array<"f32">;

const rows = [
  [1, 2],
  [3, 4],
];

function train(): { readonly weights: F32; readonly compilations: number } {
  const x = array(rows);
  const loss = (w: F32): F32 => sum(tanh(add(matmul(x, w), 1)));
  const step = jit((w: F32) => sub(w, mul(grad(loss)(w), 0.1)));
  let weights: F32 = array([0.5, -0.25]);
  for (let turn = 0; turn < 3; turn++) weights = step(weights);
  return { weights, compilations: step.compilations.length };
}

afterEach(() => useDevice());

describe("a chosen device", () => {
  test("runs compiled functions, whose results stay there", async () => {
    const expected = (await train().weights.values()) as readonly number[];
    const device = await open("simulator");
    await useDevice(device);
    const { weights, compilations } = train();
    const found = (await weights.values()) as readonly number[];
    expect(compilations).toBe(1);
    for (const [i, each] of found.entries()) expect(each).toBeCloseTo(expected[i] ?? NaN, 6);
    // Step, and the arrays of its last result.
    expect(device.compilations.length).toBeGreaterThan(0);
    expect(device.leaks.length).toBeGreaterThan(0);
    weights.dispose();
    await useDevice();
  });

  test("runs pending operations when they are read", async () => {
    const device = await open("simulator");
    await useDevice(device);
    expect(await mul(add(array([1, 2, 3]), 1), 2).values()).toEqual([4, 6, 8]);
    expect(device.compilations.length).toBe(1);
  });
});

describe("mistakes", () => {
  test("an array is read after it was disposed of", async () => {
    await useDevice(await open("simulator"));
    const y = jit((x: F32) => mul(x, 2))(array([1, 2]));
    y.dispose();
    await expect(y.read()).rejects.toThrow("TW9314");
  });

  test("the evaluator is given an array of a device", async () => {
    await useDevice(await open("simulator"));
    const double = jit((x: F32) => mul(x, 2));
    const y = double(array([1, 2]));
    expect(await y.values()).toEqual([2, 4]);
    await useDevice();
    expect(() => double(y)).toThrow("TW9315");
  });
});
