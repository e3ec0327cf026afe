/** Runs probes on the emulator. */
import { EmulatedMemory, emulate } from "../src/emulator/index.ts";
import type { PtxModule } from "../src/ptx/module.ts";
import type { Target } from "../src/targets/target.ts";
import { memoryImage, resultBytes } from "./elementwise-cases.ts";
import type { ProbeRun } from "./elementwise-cases.ts";
import { probeLanes } from "./ptx-probe.ts";

/** The bytes that a run leaves in the memory of its result. */
export function emulateRun(module: PtxModule, target: Target, run: ProbeRun): Uint8Array {
  const { probe, operands, blocks } = run;
  const memory = new EmulatedMemory();
  const result = memory.allocate(resultBytes(run), "result");
  const addresses = probe.operands.map((dtype, index) => {
    const lanes = operands[index];
    if (lanes === undefined) throw new Error("an operand is missing");
    const image = memoryImage(probe.level, dtype, lanes);
    const address = memory.allocate(image.length, `operand ${index}`);
    memory.write(address, image);
    return address;
  });
  const launch = {
    entry: probe.name,
    blocks: [blocks, 1, 1],
    lanes: [probeLanes, 1, 1],
    sharedBytes: 0,
    parameters: [result, ...addresses].map(addressBytes),
  } as const;
  const { findings } = emulate(module, launch, memory, { target, checks: false });
  for (const finding of findings) throw finding;
  return memory.read(result, resultBytes(run));
}

function addressBytes(address: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(address), true);
  return bytes;
}
