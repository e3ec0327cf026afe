/** Compiled functions keep so many programs, those that were called last, and devices so many of them loaded. */
import { afterEach, expect, test } from "vitest";
import { open } from "../runtime/open.ts";
import { livePrograms } from "./device.ts";
import { add, array, jit, mul, useDevice } from "./index.ts";
import type { NDArray as ArrayOf } from "./index.ts";

type F32 = ArrayOf<"f32">;

afterEach(() => useDevice());

const scaled = (x: F32, factor: number): F32 => mul(x, factor);

test("static values are compiled once as long as they are kept, and the one that was unused for longest goes", async () => {
  const f = jit(scaled, { cacheSize: 2 });
  const call = async (factor: number): Promise<number> => {
    expect(await f(array([2]), factor).values()).toEqual([2 * factor]);
    return f.compilations.length;
  };
  expect([await call(1), await call(2), await call(1)]).toEqual([1, 2, 2]);
  // 2 makes room for 3, since 1 was called after it.
  expect([await call(3), await call(1), await call(2)]).toEqual([3, 3, 4]);
  expect(f.compilations.map(({ reason }) => reason)).toEqual([
    "first call",
    "new structure",
    "new structure",
    "new structure",
  ]);
});

test("128 kinds of arguments are kept by default", () => {
  const f = jit(scaled);
  const x = array([1]);
  for (let factor = 0; factor < 129; factor++) f(x, factor);
  f(x, 1);
  expect(f.compilations.length).toBe(129);
  f(x, 0);
  expect(f.compilations.length).toBe(130);
});

test("new shapes are told from new structures among what is kept", () => {
  const f = jit((x: F32, n: number) => mul(x, n), { cacheSize: 3 });
  for (const [length, n] of [
    [1, 1],
    [2, 1],
    [2, 2],
  ] as const)
    f(array(Array<number>(length).fill(1)), n);
  expect(f.compilations.map(({ reason }) => reason)).toEqual([
    "first call",
    "new shapes",
    "new structure",
  ]);
});

test("programs that make room give their memory on the device back, once their runs have ended", async () => {
  const device = await open("simulator");
  await useDevice(device);
  const f = jit(scaled, { cacheSize: 2 });
  const x = array([1, 2, 3]);
  const factors = Array.from({ length: 12 }, (_, i) => i / 4);
  // All are asked for before the first of them runs.
  const results = factors.map((factor) => f(x, factor));
  for (const [i, result] of results.entries()) {
    expect(await result.values()).toEqual([1, 2, 3].map((each) => each * (factors[i] ?? NaN)));
    result.dispose();
  }
  f(x, 0).dispose();
  await f(x, 1).read();
  expect(livePrograms(device)).toBe(2);
  // Each has an argument and a result, and the last result is still there or gone.
  expect(device.memory.used).toBeLessThanOrEqual(2 * 24 + 12);
  await useDevice();
  device.dispose();
});

test("a device keeps so many programs loaded, of all functions together", async () => {
  const device = await open("simulator");
  await useDevice(device, { cacheSize: 3 });
  const functions = [1, 2, 3, 4, 5].map((number) => jit((x: F32) => add(x, number)));
  for (let round = 0; round < 2; round++)
    for (const [i, f] of functions.entries()) {
      const y = f(array([1]));
      expect(await y.values()).toEqual([2 + i]);
      y.dispose();
      expect(livePrograms(device)).toBeLessThanOrEqual(3);
    }
  expect(functions.map(({ compilations }) => compilations.length)).toEqual([1, 1, 1, 1, 1]);
  const [f] = functions;
  // Another size, with a call that is still to run.
  const pending = f?.(array([4]));
  await useDevice(device, { cacheSize: 1 });
  expect(livePrograms(device)).toBe(0);
  expect(await pending?.values()).toEqual([5]);
  pending?.dispose();
  for (const each of functions) each(array([1])).dispose();
  await useDevice(device);
  await device.synchronize();
  expect(livePrograms(device)).toBe(1);
  await useDevice();
  expect(device.memory.used).toBe(0);
  device.dispose();
});

test("a cache has room for one program at least", () => {
  for (const cacheSize of [0, -1, 1.5, NaN, "2" as never])
    expect(() => jit(scaled, { cacheSize })).toThrow("TW4023");
});
