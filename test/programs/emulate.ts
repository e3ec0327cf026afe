/** Runs programs on the emulator. */
import { EmulatedMemory, emulate } from "../../src/emulator/index.ts";
import { parsePtx } from "../../src/ptx/parser/index.ts";
import { encodeTensorMap } from "../../src/emulator/tensor-map.ts";
import type { PtxModule } from "../../src/ptx/module.ts";
import { targets } from "../../src/targets/target.ts";
import { moduleText } from "./program.ts";
import type { Program } from "./program.ts";

export interface Emulated {
  readonly output: Uint8Array;
  readonly findings: readonly string[];
}

function addressBytes(address: number): Uint8Array {
  return new Uint8Array(new BigUint64Array([BigInt(address)]).buffer);
}

/** The module of one program. */
export function programModule(program: Program): PtxModule {
  return parsePtx(moduleText([program]), `${program.name}.ptx`);
}

export function emulateProgram(
  program: Program,
  module: PtxModule,
  { seed, checks }: { readonly seed: number; readonly checks: boolean },
): Emulated {
  const memory = new EmulatedMemory();
  const input = memory.allocate(program.input.length, "input");
  const output = memory.allocate(program.output.length, "output");
  memory.write(input, program.input);
  memory.write(output, program.output);
  const maps = program.maps.map(({ buffer, offset, map }) =>
    encodeTensorMap({ ...map, address: (buffer === "input" ? input : output) + offset }),
  );
  const launch = {
    entry: program.name,
    blocks: [program.blocks, 1, 1],
    threads: [program.threads, 1, 1],
    cluster: program.cluster,
    sharedBytes: program.sharedBytes,
    parameters: [addressBytes(input), addressBytes(output), ...maps],
  } as const;
  const { findings } = emulate(module, launch, memory, { target: targets.sm_90a, seed, checks });
  return {
    output: memory.read(output, program.output.length),
    findings: findings.map(({ code }) => code),
  };
}
