/** What is emitted for random kernels means what the simulator says: the emulator gives the same arrays. */
import { expect, test } from "vitest";
import { Device } from "../src/device/device.ts";
import type { DeviceArray } from "../src/device/device-array.ts";
import { fromNumbers, hostArray, toNumbers } from "../src/formats/hostarray.ts";
import type { HostArray } from "../src/formats/hostarray.ts";
import type { Kernel } from "../src/ir/node.ts";
import { printKernel } from "../src/ir/printer.ts";
import { KernelDefinition } from "../src/lang/kernel.ts";
import { EmulatorBackend } from "../src/runtime/emulator-backend.ts";
import { SimulatorBackend } from "../src/runtime/simulator-backend.ts";
import { TilewrightError } from "../src/support/diagnostics.ts";
import { Random } from "../src/support/random.ts";
import { defaultTarget } from "../src/targets/target.ts";
import { columns, randomKernel } from "./support/random-kernel.ts";
import { place } from "../src/lower/pipeline.ts";

/** Not a multiple of a block's rows, so the last block has a tail. */
const rows = 10;

interface Arguments {
  readonly arrays: ReadonlyMap<string, HostArray>;
  readonly scalars: { readonly count: number; readonly factor: number };
}

function randomArguments(kernel: Kernel, seed: number): Arguments {
  const random = new Random(seed);
  const draw = (): number => random.pick([0, -0, 1, -1, 3, random.normal() * 10]);
  const arrays = new Map<string, HostArray>();
  for (const { name, role, value } of kernel.parameters)
    if (value.type.kind === "ref") {
      const { dtype } = value.type;
      const numbers = Array.from({ length: rows * columns }, draw);
      arrays.set(
        name,
        role === "input"
          ? fromNumbers(dtype, [rows, columns], numbers)
          : hostArray(dtype, [rows, columns]),
      );
    }
  return { arrays, scalars: { count: random.below(5) - 1, factor: random.normal() } };
}

/** The outputs as text, -0 and NaN apart from everything else. */
async function run(device: Device, kernel: Kernel, given: Arguments): Promise<string> {
  const arrays: { [name: string]: DeviceArray } = {};
  for (const [name, array] of given.arrays) arrays[name] = await device.upload(array);
  const definition = new KernelDefinition(kernel, { inputs: {}, outputs: {}, inouts: {} });
  device.launch(definition, { ...arrays, ...given.scalars });
  await device.synchronize();
  const lines: string[] = [];
  for (const { name, role } of kernel.parameters) {
    const array = arrays[name];
    if (role === "output" && array !== undefined) {
      const { data } = await device.download(array);
      const numbers =
        data instanceof BigInt64Array
          ? [...data].map(String)
          : [...toNumbers(await device.download(array))].map((x) =>
              Object.is(x, -0) ? "-0" : `${x}`,
            );
      lines.push(`${name}: ${numbers.join(" ")}`);
    }
  }
  for (const array of Object.values(arrays)) array.dispose();
  return lines.join("\n");
}

test("random kernels give the same arrays on the emulator and on the simulator", async () => {
  const simulator = new Device(new SimulatorBackend({ checks: false }));
  let compared = 0;
  for (let seed = 0; compared < 60; seed += 1) {
    const kernel = randomKernel(seed, { exact: true });
    if (!isPlaceable(kernel)) continue;
    compared += 1;
    const emulator = new Device(new EmulatorBackend({ seed }));
    const given = randomArguments(kernel, seed);
    const expected = await run(simulator, kernel, given);
    const found = await run(emulator, kernel, given).catch((error: unknown) => String(error));
    expect(found, `randomKernel(${seed}, { exact: true }):\n${printKernel(kernel)}`).toBe(expected);
    emulator.dispose();
  }
  simulator.dispose();
});

/** Random layoutCasts may contradict each other, which placing reports. */
function isPlaceable(kernel: Kernel): boolean {
  try {
    place(kernel, defaultTarget);
    return true;
  } catch (error) {
    if (error instanceof TilewrightError && error.code === "TW6101") return false;
    throw error;
  }
}
