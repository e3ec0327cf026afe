/** What arrays on a device leave in its memory: nothing but themselves, and the programs of compiled functions. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, describe, expect, test } from "vitest";
import { f32, fromNumbers } from "../index.ts";
import type { Leak } from "../index.ts";
import { compilePlan } from "../graph/plan/compile.ts";
import { Program } from "../graph/plan/program.ts";
import { parseGraph } from "../graph/text/index.ts";
import { open } from "../runtime/open.ts";
import { livePrograms } from "./device.ts";
import { add, array, grad, jit, mul, sum, useDevice } from "./index.ts";
import type { NDArray as ArrayOf } from "./index.ts";

type F32 = ArrayOf<"f32">;

afterEach(() => useDevice());

/** Collects garbage until `isDone`, or often enough to give up. */
async function collectUntil(isDone: () => boolean): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let round = 0; round < 20 && !isDone(); round++) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe.each(["simulator", "emulator"] as const)("on the %s", (name) => {
  test("reads that are not compiled leave neither programs nor memory", async () => {
    const device = await open(name);
    await useDevice(device);
    const w = jit((x: F32) => mul(x, 1))(array([1, 2, 3]));
    await w.read();
    const before = [device.memory.used, device.memory.allocations, livePrograms(device)];
    for (let turn = 0; turn < 8; turn++) {
      const next = add(w, turn % 2);
      expect(await next.values()).toEqual([1, 2, 3].map((each) => each + (turn % 2)));
      next.dispose();
      const slope = grad((x: F32) => sum(mul(x, x)))(w);
      expect(await slope.values()).toEqual([2, 4, 6]);
      slope.dispose();
    }
    await device.synchronize();
    expect([device.memory.used, device.memory.allocations, livePrograms(device)]).toEqual(before);
    w.dispose();
    await useDevice();
    expect([device.memory.used, device.memory.allocations]).toEqual([0, 0]);
    device.dispose();
  });

  test("a run that fails leaves nothing", async () => {
    const device = await open(name, { memoryLimit: 4096 });
    await useDevice(device);
    for (const length of [512, 900])
      await expect(
        add(
          mul(array(Array<number>(length).fill(1)), 3),
          array(Array<number>(length).fill(2)),
        ).read(),
      ).rejects.toThrow("TW4030");
    expect(livePrograms(device)).toBe(0);
    expect(device.memory.used).toBe(0);
    await useDevice();
    device.dispose();
  });
});

test("a program that is loaded into too little memory gives back what it had", async () => {
  const [module] = parseGraph(
    `func.func @main(%x: tensor<256xf32>) -> tensor<256xf32> {
      %c = stablehlo.constant dense<"0x${"0000803f0000004000004040".repeat(85)}0000803f"> : tensor<256xf32>
      %0 = stablehlo.add %x, %c : tensor<256xf32>
      %d = stablehlo.constant dense<"0x${"0000803f0000004000004040".repeat(85)}00000040"> : tensor<256xf32>
      %1 = stablehlo.multiply %0, %d : tensor<256xf32>
      return %1 : tensor<256xf32> }`,
    "constants.mlir",
  );
  if (module === undefined) throw new Error("the text has a program");
  const plan = compilePlan(module, "main");
  expect(plan.constants.length).toBe(2);
  const device = await open("simulator", { memoryLimit: 1500 });
  await expect(Program.load(device, plan)).rejects.toThrow("TW4030");
  expect(device.memory.used).toBe(0);
  device.dispose();
});

test("arrays that nobody reaches are given back, whether or not they were read", async () => {
  const device = await open("simulator");
  await useDevice(device);
  const double = jit((x: F32) => mul(x, 2));
  const forget = async (): Promise<void> => {
    for (let turn = 0; turn < 4; turn++) {
      const y = double(add(array([1, 2, 3]), turn));
      await mul(y, 2).read();
    }
  };
  await forget();
  const program = 2 * 12;
  expect(device.memory.used).toBeGreaterThan(program);
  await collectUntil(() => device.memory.used <= program);
  expect(device.memory.used).toBe(program);
  await useDevice();
  device.dispose();
});

test("a compiled function that nobody reaches gives its program back", async () => {
  const device = await open("simulator");
  await useDevice(device);
  const forget = async (): Promise<void> => {
    for (let turn = 0; turn < 4; turn++) {
      const y = jit((x: F32) => add(x, turn))(array([1]));
      expect(await y.values()).toEqual([1 + turn]);
      y.dispose();
    }
  };
  await forget();
  expect(livePrograms(device)).toBe(4);
  await collectUntil(() => livePrograms(device) === 0);
  expect(livePrograms(device)).toBe(0);
  expect(device.memory.used).toBe(0);
  await useDevice();
  device.dispose();
});

test("programs that rest are given back before memory runs out", async () => {
  const device = await open("simulator", { memoryLimit: 20_000 });
  await useDevice(device);
  const x = fromNumbers(f32, [1000], Array<number>(1000).fill(1));
  const functions = [1, 2, 3, 4, 5].map((number) => jit((given: F32) => add(given, number)));
  for (let round = 0; round < 2; round++)
    for (const [i, f] of functions.entries()) {
      const y = f(array(x));
      expect((await y.read()).data[0]).toBe(2 + i);
      y.dispose();
    }
  expect(livePrograms(device)).toBeLessThan(functions.length);
  await useDevice();
  expect(device.memory.used).toBe(0);
  device.dispose();
});

test("programs of calls made just before the device is left are given back, too", async () => {
  const device = await open("simulator");
  await useDevice(device);
  const y = jit((x: F32) => add(x, 1))(array([1, 2]));
  await useDevice();
  expect(device.memory.used).toBe(8);
  y.dispose();
  await device.synchronize();
  expect(await y.read().catch((error: unknown) => String(error))).toContain("TW9314");
  expect(device.memory.used).toBe(0);
  device.dispose();
});

describe("leaks", () => {
  const told: Leak[] = [];
  const onLeak = (leaks: readonly Leak[]): void => {
    told.push(...leaks);
  };
  afterEach(() => {
    told.length = 0;
  });

  test("what the library gives back by itself is none, in use or not", async () => {
    const device = await open("simulator", { onLeak });
    await useDevice(device);
    const double = jit((x: F32) => mul(x, 2));
    let y: F32 = array([1, 2]);
    for (let turn = 0; turn < 3; turn++) y = double(y);
    expect(await add(y, 1).values()).toEqual([9, 17]);
    expect(device.memory.allocations).toBeGreaterThan(0);
    expect(device.leaks).toEqual([]);
    // The programs are still loaded.
    device.dispose();
    expect(told).toEqual([]);
  });

  test("what the user made is one, at the user's line", async () => {
    const device = await open("simulator", { onLeak });
    await useDevice(device);
    const kept = await device.upload(fromNumbers(f32, [2], [1, 2]));
    await jit((x: F32) => mul(x, 2))(array([1, 2])).read();
    const [module] = parseGraph(
      `func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
        %0 = stablehlo.exponential %x : tensor<4xf32>
        return %0 : tensor<4xf32> }`,
      "exp.mlir",
    );
    if (module === undefined) throw new Error("the text has a program");
    const program = await Program.load(device, compilePlan(module, "main"));
    await program.run([{ kind: "tensor", element: "f32", shape: [4], data: new Float32Array(4) }]);
    await useDevice();
    device.dispose();
    expect(kept.disposed).toBe(true);
    // The upload, and the program's argument and result.
    expect(told.map(({ bytes }) => bytes)).toEqual([8, 16, 16]);
    for (const { position } of told) expect(position?.file).toMatch(/programs\.test\.ts$/);
  });

  test("arrays that hold memory when it runs out are named with the lines of their calls", async () => {
    const device = await open("simulator", { memoryLimit: 64 });
    await useDevice(device);
    const y = jit((x: F32) => mul(x, 2))(array([1, 2, 3, 4]));
    await y.read();
    const error: unknown = await add(array(Array<number>(12).fill(1)), 1)
      .read()
      .catch((reason: unknown) => reason);
    expect(String(error)).toContain("TW4030");
    expect(String(error)).toMatch(/f32\[4\], 16 bytes, made here[^]*programs\.test\.ts/);
    y.dispose();
    await useDevice();
    device.dispose();
  });
});
