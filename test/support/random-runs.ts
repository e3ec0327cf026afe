/** Random kernels with arguments for them, run on a device. */
import type { Device } from "../../src/device/device.ts";
import type { DeviceArray } from "../../src/device/device-array.ts";
import { fromNumbers, hostArray, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { Kernel } from "../../src/ir/node.ts";
import { KernelDefinition } from "../../src/lang/kernel.ts";
import { Random } from "../../src/support/random.ts";
import { columns } from "./random-accesses.ts";

/** Not a multiple of a block's rows, so the last block has a tail. */
const rows = 10;

export interface RandomArguments {
  readonly arrays: ReadonlyMap<string, HostArray>;
  readonly scalars: { readonly count: number; readonly factor: number };
}

export function randomArguments(kernel: Kernel, seed: number): RandomArguments {
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
export async function runRandom(
  device: Device,
  kernel: Kernel,
  given: RandomArguments,
): Promise<string> {
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
