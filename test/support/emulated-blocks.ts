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
  /** Of the module and the GPU. */
  readonly target?: keyof typeof targets;
  /** Between the parameters and the body, such as `.reqntid 32`. */
  readonly directives?: string;
  readonly options?: Partial<EmulatorOptions>;
}

export interface BlockRun {
  readonly arrays: readonly Uint32Array[];
  readonly result: EmulationResult;
}

export function kernelText(launch: BlockLaunch): string {
  const { body, module = "", arrays, target = "sm_90a", directives = "" } = launch;
  const parameters = arrays.map((_, at) => `.param .u64 p${at}`).join(", ");
  const version = target === "sm_90a" ? "8.0" : "9.0";
  return `.version ${version}\n.target ${target}\n.address_size 64\n${module}
.visible .entry kernel(${parameters}) ${directives}
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
    { target: targets[launch.target ?? "sm_90a"], ...options },
  );
  const read = arrays.map(
    (array, at) => new Uint32Array(memory.read(addresses[at] ?? 0, array.byteLength).buffer),
  );
  return { arrays: read, result };
}
