/** The CPU as a device, with threads that run the source without a build, and arrays for it. */
import { CpuBackend } from "../../src/cpu/device/backend.ts";
import { engineFeatures } from "../../src/cpu/device/support.ts";
import { lowerKernel } from "../../src/cpu/lower/index.ts";
import { Device } from "../../src/device/device.ts";
import { f32 } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { simplify } from "../../src/lower/simplify.ts";
import { cpuTarget } from "../../src/targets/target.ts";
import { SourceThreads } from "./source-threads.ts";

export function threadedCpu(threads: number): Device {
  const backend = new CpuBackend(
    { target: cpuTarget, threads },
    {
      compile: (kernel, offered) => lowerKernel(simplify(kernel), offered),
      features: engineFeatures(),
      host: new SourceThreads(),
    },
  );
  return new Device(backend, { onNotes: () => undefined });
}

export function bytesOf({ data }: HostArray): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
}

export const counted = (count: number): HostArray<"f32"> =>
  fromNumbers(
    f32,
    [count],
    Array.from({ length: count }, (_, i) => i + 0.5),
  );

export const manyRows = (count: number): HostArray<"f32"> =>
  fromNumbers(
    f32,
    [count, 64],
    Array.from({ length: 64 * count }, (_, i) => Math.sin(i)),
  );
