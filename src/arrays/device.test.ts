/** Arrays on the simulator give what the evaluator gives. */
import { afterEach, describe, expect, test } from "vitest";
import { open } from "../runtime/open.ts";
import {
  add,
  array,
  flip,
  grad,
  jit,
  matmul,
  mul,
  scope,
  sub,
  sum,
  tanh,
  useDevice,
} from "./index.ts";
import type { NDArray } from "./index.ts";

type F32 = NDArray<"f32">;

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
    await useDevice("evaluator");
    const expected = (await train().weights.values()) as readonly number[];
    const device = await open("simulator");
    await useDevice(device);
    const { weights, compilations } = train();
    const found = (await weights.values()) as readonly number[];
    expect(compilations).toBe(1);
    for (const [i, each] of found.entries()) expect(each).toBeCloseTo(expected[i] ?? NaN, 6);
    // Step, and the arrays of its last result.
    expect(device.compilations.length).toBeGreaterThan(0);
    expect(device.memory.allocations).toBeGreaterThan(0);
    weights.dispose();
    await useDevice();
  });

  test("computes without bringing anything to the host, wherever that is", async () => {
    const x = array(rows);
    await add(x, 1).blockUntilReady();
    const device = await open("simulator");
    await useDevice(device);
    const y = mul(x, 2);
    await y.blockUntilReady();
    expect(device.compilations.length).toBe(1);
    await y.values();
    expect(device.compilations.length).toBe(1);
    await useDevice();
  });

  test("is opened by its name, once", async () => {
    await useDevice("simulator");
    expect(await add(array(rows), 1).values()).toEqual([
      [2, 3],
      [4, 5],
    ]);
    await useDevice();
    expect(() => useDevice("abacus" as "simulator")).toThrow(/the name of one/);
  });

  test("multiplies f32 as a compiled function says", async () => {
    const x = array(Array.from({ length: 16 }, () => new Array<number>(16).fill(1 + 2 ** -13)));
    const square = (matmulPrecision?: "f32" | "tf32") =>
      jit(() => matmul(x, x), { matmulPrecision });
    const [usual, rounded] = [square(), square("tf32")];
    const first = async (f: () => F32): Promise<unknown> =>
      ((await f().values()) as readonly (readonly number[])[])[0]?.[0];
    const exact = 16 * (1 + 2 ** -12 + 2 ** -26);
    expect(await first(rounded)).toBeCloseTo(exact, 6);
    await useDevice(await open("simulator"));
    expect(await first(rounded)).toBe(16);
    expect(await first(usual)).toBeCloseTo(exact, 5);
    expect(await first(rounded)).toBe(16);
    expect([usual, rounded].map((f) => f.compilations.map((each) => each.matmulPrecision))).toEqual(
      [["f32"], ["tf32"]],
    );
    const wrong = { matmulPrecision: "f16" } as unknown as { readonly matmulPrecision: "tf32" };
    expect(() => jit(() => matmul(x, x), wrong)).toThrow('matmulPrecision is "f32" or "tf32"');
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
    await useDevice("evaluator");
    expect(() => double(y)).toThrow("TW9315");
  });
});

describe("memory", () => {
  test("donated arguments give their memory to results, and are gone", async () => {
    const device = await open("simulator");
    await useDevice(device);
    const step = jit((w: F32, x: F32) => sub(w, mul(x, 0.5)), { donate: [0] });
    const first = step(array([1, 2, 3]), array([2, 2, 2]));
    await first.read();
    const before = device.memory.used;
    const second = step(first, array([2, 2, 2]));
    const third = step(second, array([4, 4, 4]));
    expect(await third.values()).toEqual([-3, -2, -1]);
    expect(device.memory.used).toBe(before);
    await expect(second.read()).rejects.toThrow("TW9314");
  });

  test("a donated argument that is read elsewhere keeps its memory until then", async () => {
    await useDevice(await open("simulator"));
    const turned = jit((w: F32) => [flip(w), mul(w, 2)] as const, { donate: [0] });
    const [back, twice] = turned(array([1, 2, 3]));
    expect(await back.values()).toEqual([3, 2, 1]);
    expect(await twice.values()).toEqual([2, 4, 6]);
  });

  test("no argument is donated that there is not", () => {
    const step = jit((w: F32) => add(w, 1), { donate: [1] });
    expect(() => step(array([1]))).toThrow(/TW4023: jit\(f\) has no argument 1 to donate/);
  });

  test("programs that could not be made fail where they are read, and not when the device is left", async () => {
    const device = await open("simulator");
    await useDevice(device);
    device.dispose();
    await expect(add(array([1]), 1).values()).rejects.toThrow("TW4001");
    await useDevice();
    expect(await add(array([1]), 1).values()).toEqual([2]);
  });

  test("an array cannot be donated and used besides", async () => {
    await useDevice(await open("simulator"));
    const both = jit((a: F32, b: F32) => add(a, b), { donate: [0] });
    const y = mul(array([1, 2]), 1);
    expect(() => both(y, y)).toThrow("TW9317");
  });

  test("a scope gives back what it does not return", async () => {
    const device = await open("simulator");
    await useDevice(device);
    const double = jit((x: F32) => mul(x, 2));
    const before = device.memory.used;
    const y = scope(() => {
      const inner = double(array([1, 2]));
      return { sum: add(inner, 1), kept: double(inner) };
    });
    expect(await y.sum.values()).toEqual([3, 5]);
    expect(await y.kept.values()).toEqual([4, 8]);
    y.sum.dispose();
    y.kept.dispose();
    await useDevice();
    expect(device.memory.used).toBe(before);
    expect(() => scope(async () => Promise.resolve(1))).toThrow("TW9309");
  });
});
