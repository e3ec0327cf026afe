/** Arguments that are given again and again lie on the device, and are given back with the array or where memory is short. */
import { expect, test, vi } from "vitest";
import { fromNumbers } from "../formats/hostarray.ts";
import { f32 } from "../formats/dtype.ts";
import { openCpu } from "../cpu/device/open.ts";
import { Device } from "../device/device.ts";
import { add, array, jit, useDevice } from "./index.ts";
import type { NDArray } from "./index.ts";

const numbers = (count: number): NDArray<"f32"> =>
  array(fromNumbers(f32, [count], new Float32Array(count).fill(2)));

async function withDevice(
  memoryLimit: number | undefined,
  work: (device: Device) => Promise<void>,
): Promise<void> {
  const device = new Device(openCpu({ threads: 1, memoryLimit }));
  await useDevice(device);
  try {
    await work(device);
  } finally {
    await useDevice();
    device.dispose();
  }
}

test("are written twice, and never again", () =>
  withDevice(undefined, async (device) => {
    const write = vi.spyOn(device, "write");
    const f = jit((x: NDArray<"f32">) => add(x, x));
    const x = numbers(8);
    for (let call = 0; call < 6; call++) expect(await f(x).values()).toEqual(new Array(8).fill(4));
    expect(write).toHaveBeenCalledTimes(2);
    // Another array of the same values is another argument.
    expect(await f(numbers(8)).values()).toEqual(new Array(8).fill(4));
    expect(write).toHaveBeenCalledTimes(3);
  }));

test("give their memory back with the array", () =>
  withDevice(undefined, async (device) => {
    const f = jit((x: NDArray<"f32">) => add(x, x));
    const x = numbers(1 << 20);
    for (let call = 0; call < 2; call++) f(x).dispose();
    const kept = jit((y: NDArray<"f32">) => add(y, 1));
    await kept(numbers(1)).values();
    const before = device.memory.used;
    x.dispose();
    await kept(numbers(1)).values();
    // But for the few bytes of the last result.
    expect(before - device.memory.used).toBeGreaterThan((1 << 22) - 64);
  }));

test("make room where an allocation would fail", () =>
  withDevice(40 << 20, async (device) => {
    const f = jit((x: NDArray<"f32">) => add(x, x));
    const x = numbers(1 << 21);
    for (let call = 0; call < 3; call++) f(x).dispose();
    const wide = jit((y: NDArray<"f32">) => add(y, y));
    const y = wide(numbers(1 << 22));
    expect((await y.read()).data[0]).toBe(4);
    expect(device.memory.used).toBeLessThanOrEqual(40 << 20);
    expect((await f(x).read()).data[5]).toBe(4);
  }));
