/** Programs on devices as their callers use them: several runs at once, arrays of any kind, and after their disposal. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { f32, fromNumbers, i32, toNumbers } from "tilewright";
import type { DeviceArray } from "../../device/device-array.ts";
import type { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { parseGraph } from "../text/index.ts";
import { compilePlan } from "./compile.ts";
import { Program } from "./program.ts";

/** x doubled while its first element is below 100, and x the other way round. */
const text = `func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %limit = stablehlo.constant dense<100.0> : tensor<f32>
  %0 = stablehlo.while(%a = %x) : tensor<2xf32>
    cond {
      %s = stablehlo.slice %a [0:1] : (tensor<2xf32>) -> tensor<1xf32>
      %f = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
      %p = stablehlo.compare LT, %f, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %d = stablehlo.add %a, %a : tensor<2xf32>
      stablehlo.return %d : tensor<2xf32>
    }
  %1 = stablehlo.reverse %x, dims = [0] : tensor<2xf32>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}`;

let device: Device;
let program: Program;
beforeAll(async () => {
  device = await open("simulator");
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  program = await Program.load(device, compilePlan(module, "main"));
});
afterAll(() => {
  program.dispose();
  device.dispose();
});

const starts = [1, 60, 3, 200];
const ends = [128, 120, 192, 200];
const pair = (first: number): Tensor => tensor("f32", [2], Float32Array.of(first, 1));

async function using<T>(
  arrays: readonly DeviceArray[],
  work: (...arrays: readonly DeviceArray[]) => T | Promise<T>,
): Promise<T> {
  try {
    return await work(...arrays);
  } finally {
    for (const each of new Set(arrays)) each.dispose();
  }
}

test("runs that are asked for at once do not meet", async () => {
  const results = await Promise.all(starts.map((first) => program.run([pair(first)])));
  expect(results.map(([doubled]) => doubled?.data[0])).toEqual(ends);
  expect(results.map(([, turned]) => turned?.data[1])).toEqual(starts);
});

test("neither do programs that are bound to several arrays", async () => {
  const made = await Promise.all(
    starts.map((first) => device.upload(fromNumbers(f32, [2], [first, 1]))),
  );
  const outputs = starts.map(() => [device.allocate(f32, [2]), device.allocate(f32, [2])] as const);
  await using([...made, ...outputs.flat()], async () => {
    const bound = made.map((x, i) => program.bind([x], outputs[i] ?? []));
    await Promise.all(bound.map((each) => each.run()));
    const firsts = await Promise.all(outputs.map(([out]) => device.download(out)));
    expect(firsts.map((each) => toNumbers(each)[0])).toEqual(ends);
    for (const each of bound) each.dispose();
  });
});

test("arrays that do not fit are refused when they are bound", async () => {
  const float = (): DeviceArray => device.allocate(f32, [2]);
  await using([float(), float(), float(), device.allocate(i32, [2])], (x, y, z, whole) => {
    if (x === undefined || y === undefined || z === undefined || whole === undefined)
      throw new Error("there are four");
    expect(() => program.bind([], [y, z])).toThrow("TW9505");
    expect(() => program.bind([whole], [y, z])).toThrow("TW9505");
    expect(() => program.bind([x], [x, z])).toThrow("TW4014");
    expect(() => program.bind([x], [y, y])).toThrow("TW4014");
    expect(() => program.bind([x], [y, z.slice(0, 1)])).toThrow("TW9505");
  });
});

test("a result that is written over a donated argument is given the argument's array", async () => {
  const [module] =
    parseGraph(`func.func @main(%x: tensor<2xf32> {jax.buffer_donor = true}) -> tensor<2xf32> {
    %0 = stablehlo.negate %x : tensor<2xf32>
    return %0 : tensor<2xf32> }`);
  if (module === undefined) throw new Error("no program");
  const donating = await Program.load(device, compilePlan(module, "main"));
  const given = [
    device.upload(fromNumbers(f32, [2], [1, 2])),
    device.upload(fromNumbers(f32, [2], [3, 4])),
  ];
  await using(await Promise.all(given), async (x, y) => {
    if (x === undefined || y === undefined) throw new Error("there are two");
    expect(() => donating.bind([x], [y])).toThrow("TW4014");
    const bound = donating.bind([x], [x]);
    await bound.run();
    expect(toNumbers(await device.download(x))).toEqual(Float64Array.of(-1, -2));
    bound.dispose();
  });
  donating.dispose();
});

test("a program that was disposed of takes no more work", async () => {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  const gone = await Program.load(device, compilePlan(module, "main"));
  const waiting = gone.run([pair(1)]);
  gone.dispose();
  await expect(waiting).rejects.toThrow("TW4017");
  await expect(gone.run([pair(1)])).rejects.toThrow("TW4017");
  await expect(gone.profile()).rejects.toThrow("TW4017");
  expect(() => gone.bind([], [])).toThrow("TW4017");
});
