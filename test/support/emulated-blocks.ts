/** Runs a kernel written in PTX on the emulator: arrays of 32-bit words in, the same arrays out. */
import { EmulatedMemory, emulate } from "../../src/emulator/index.ts";
import type { EmulationResult, EmulatorOptions } from "../../src/emulator/index.ts";
import { parsedModule } from "./parsed-modules.ts";
import { targets } from "../../src/targets/target.ts";

export interface BlockLaunch {
  /** The body of the entry `kernel`; parameters p0, p1 … are the arrays. */
  readonly body: string;
  /** What stands before the entry: variables and functions. */
  readonly module?: string;
  readonly arrays: readonly Uint32Array[];
  readonly blocks?: number;
  readonly threads?: number;
  readonly cluster?: number;
  readonly sharedBytes?: number;
  readonly options?: Partial<EmulatorOptions>;
}

export interface BlockRun {
  readonly arrays: readonly Uint32Array[];
  readonly result: EmulationResult;
}

export function kernelText({ body, module = "", arrays }: BlockLaunch): string {
  const parameters = arrays.map((_, at) => `.param .u64 p${at}`).join(", ");
  return `.version 8.0\n.target sm_90a\n.address_size 64\n${module}
.visible .entry kernel(${parameters})
{
.reg .pred %p<16>; .reg .b16 %h<8>; .reg .b32 %r<32>; .reg .b64 %d<16>;
${arrays.map((_, at) => `ld.param.u64 %d${at}, [p${at}];`).join("\n")}
${body}
}`;
}

export function runBlocks(launch: BlockLaunch): BlockRun {
  const { arrays, blocks = 1, threads = 32, cluster = 1, sharedBytes = 0, options } = launch;
  const module = parsedModule(kernelText(launch));
  const memory = new EmulatedMemory();
  const addresses = arrays.map((array, at) => {
    const address = memory.allocate(array.byteLength, `p${at}`);
    memory.write(address, new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return address;
  });
  const parameters = addresses.map((at) => new Uint8Array(new BigUint64Array([BigInt(at)]).buffer));
  const result = emulate(
    module,
    {
      entry: "kernel",
      blocks: [blocks, 1, 1],
      threads: [threads, 1, 1],
      cluster,
      sharedBytes,
      parameters,
    },
    memory,
    { target: targets.sm_90a, ...options },
  );
  const read = arrays.map(
    (array, at) => new Uint32Array(memory.read(addresses[at] ?? 0, array.byteLength).buffer),
  );
  return { arrays: read, result };
}
