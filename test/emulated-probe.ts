/** Runs probes on the emulator. */
import { EmulatedMemory, emulate } from "../src/emulator/index.ts";
import type { PtxModule } from "../src/ptx/module.ts";
import { defaultTarget } from "../src/targets/target.ts";
import type { Target } from "../src/targets/target.ts";
import { memoryImage, resultBytes } from "./elementwise-cases.ts";
import type { ProbeRun } from "./elementwise-cases.ts";
import { probeLanes, probeModule } from "./ptx-probe.ts";
import type { Probe } from "./ptx-probe.ts";

/** The bytes that a run leaves in the memory of its result. */
export function emulateRun(module: PtxModule, target: Target, run: ProbeRun): Uint8Array {
  const { probe, operands, blocks } = run;
  const images = probe.operands.map((dtype, index) => {
    const lanes = operands[index];
    if (lanes === undefined) throw new Error("an operand is missing");
    return memoryImage(probe.level, dtype, lanes);
  });
  return launchProbe(module, target, probe.name, images, resultBytes(run), blocks);
}

/** Runs a probe of any kind on the memory of its operands. */
export function runProbe(
  probe: Probe,
  images: readonly Uint8Array[],
  bytes: number,
  blocks: number,
): Uint8Array {
  const module = probeModule(defaultTarget, [probe]);
  return launchProbe(module, defaultTarget, probe.name, images, bytes, blocks);
}

function launchProbe(
  module: PtxModule,
  target: Target,
  entry: string,
  images: readonly Uint8Array[],
  bytes: number,
  blocks: number,
): Uint8Array {
  const memory = new EmulatedMemory();
  const result = memory.allocate(bytes, "result");
  const addresses = images.map((image, index) => {
    const address = memory.allocate(image.length, `operand ${index}`);
    memory.write(address, image);
    return address;
  });
  const launch = {
    entry,
    blocks: [blocks, 1, 1],
    threads: [probeLanes, 1, 1],
    sharedBytes: 0,
    parameters: [result, ...addresses].map(addressBytes),
  } as const;
  const { findings } = emulate(module, launch, memory, { target, checks: false });
  for (const finding of findings) throw finding;
  return memory.read(result, bytes);
}

function addressBytes(address: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(address), true);
  return bytes;
}
