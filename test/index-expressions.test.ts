/**
 * Windows at random indices, at the edges of what an index can be: the simulator and the emulator agree, and
 * every integer that is computed is what facts say of it. More than the few that continuous integration
 * affords are asked for by their number: `INDEX_EXPRESSIONS=100000 npx vitest run test/index-expressions.test.ts`.
 */
import { expect, test } from "vitest";
import { Device } from "../src/device/device.ts";
import { fromNumbers, toNumbers } from "../src/formats/hostarray.ts";
import type { HostArray } from "../src/formats/hostarray.ts";
import { f32, i32 } from "../src/formats/dtype.ts";
import { printKernel } from "../src/ir/printer.ts";
import { simulate } from "../src/sim/index.ts";
import { EmulatorBackend } from "../src/runtime/emulator-backend.ts";
import { Random } from "../src/support/random.ts";
import { holdAgainstFacts } from "./support/held-facts.ts";
import { indexKernel, inputShapes, launches } from "./support/index-expressions.ts";
import type { IndexKernel } from "./support/index-expressions.ts";

const windows = 12;
const wanted = Number(process.env["INDEX_EXPRESSIONS"] ?? 400);
const first = Number(process.env["INDEX_SEED"] ?? 0);

type Launch = (typeof launches)[number];

function counting(shape: readonly number[]): HostArray {
  const count = shape.reduce((total, each) => total * each, 1);
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  return fromNumbers(f32, shape, numbers);
}

function argumentsOf(
  { starts, outputs }: IndexKernel,
  launch: Launch,
): ReadonlyMap<string, HostArray> {
  const zeros = (shape: readonly number[]): HostArray =>
    fromNumbers(f32, shape, new Float64Array(shape.reduce((a, b) => a * b, 1)));
  return new Map([
    ["starts", fromNumbers(i32, [starts.length], starts)],
    ...Object.entries(inputShapes(launch)).map(([name, shape]) => [name, counting(shape)] as const),
    ...Object.entries(outputs).map(([name, shape]) => [name, zeros(shape)] as const),
  ]);
}

async function simulated(made: IndexKernel, launch: Launch): Promise<readonly string[]> {
  const { kernel } = made.definition;
  const arrays = argumentsOf(made, launch);
  const dimensions = new Map(Object.entries(launch));
  const buffers = new Map(
    [...arrays].map(([name, { dtype, data }]) => [name, { dtype, data, initialised: true }]),
  );
  await simulate(
    kernel,
    { arrays: buffers, scalars: new Map(), dimensions },
    { checks: false, observe: holdAgainstFacts(kernel, dimensions) },
  );
  return texts(made, arrays);
}

async function emulated(
  device: Device,
  made: IndexKernel,
  launch: Launch,
): Promise<readonly string[]> {
  const arrays = argumentsOf(made, launch);
  const uploaded = await Promise.all(
    [...arrays].map(async ([name, array]) => [name, await device.upload(array)] as const),
  );
  device.launch(made.definition, Object.fromEntries(uploaded));
  await device.synchronize();
  const results = new Map<string, HostArray>();
  for (const [name, array] of uploaded) {
    results.set(name, await device.download(array));
    array.dispose();
  }
  return texts(made, results);
}

function texts({ outputs }: IndexKernel, arrays: ReadonlyMap<string, HostArray>): string[] {
  return Object.keys(outputs).map((name) => {
    const array = arrays.get(name);
    return array === undefined ? "" : [...toNumbers(array)].join(" ");
  });
}

test(`${wanted} random expressions`, { timeout: 6e6 }, async () => {
  let count = 0;
  for (let seed = first; count < wanted; seed += 1) {
    const random = new Random(seed);
    const made = indexKernel(random, windows);
    count += made.expressions;
    const launch = random.pick(launches);
    const device = new Device(new EmulatorBackend({ threads: 1 }));
    try {
      const [expected, found] = [
        await simulated(made, launch),
        await emulated(device, made, launch),
      ];
      expect(found).toEqual(expected);
    } catch (error) {
      throw new Error(`seed ${seed}: ${String(error)}\n${printKernel(made.definition.kernel)}`);
    } finally {
      device.dispose();
    }
  }
});
