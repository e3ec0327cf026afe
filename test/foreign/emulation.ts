/** Runs a described launch on the emulator. */
import { EmulatedMemory, emulate } from "../../src/emulator/index.ts";
import { parsePtx } from "../../src/emulator/parser/index.ts";
import { encodeTensorMap } from "../../src/emulator/tensor-map.ts";
import { TilewrightError } from "../../src/support/diagnostics.ts";
import { targets } from "../../src/targets/target.ts";
import type { PtxModule } from "../../src/ptx/module.ts";
import type { Argument, Data, NumberArray, Results } from "./case.ts";

export interface Launch {
  readonly blocks: readonly [number, number, number];
  readonly lanes: readonly [number, number, number];
  readonly cluster?: number | undefined;
  readonly sharedBytes?: number | undefined;
  readonly arguments: readonly Argument[];
}

export interface Outcome {
  /** What the checks found, or the error that stopped the kernel. */
  readonly findings: readonly TilewrightError[];
  /** The codes of all that was found, also before the error that stopped the kernel. */
  readonly codes: readonly string[];
  readonly results: Results;
}

interface Placed {
  readonly data: Data;
  readonly address: number;
}

/** Runs the one entry of the text. */
export function runOnEmulator(text: string, file: string, launch: Launch, seed: number): Outcome {
  const module = parsePtx(text, file);
  const memory = new EmulatedMemory();
  const arrays = new Map<string, Placed>();
  const given = launch.arguments.map((argument) => parameterBytes(argument, memory, arrays));
  const { entry, extra } = entryOf(module, given.length);
  const { blocks, lanes, cluster, sharedBytes = 0 } = launch;
  // Triton hands scratch memory to kernels that need some; these get none.
  const parameters = [...given, ...Array.from({ length: extra }, () => new Uint8Array(8))];
  const shape = { entry, blocks, lanes, cluster, sharedBytes, parameters };
  const target = module.target === "sm_80" ? targets.sm_80 : targets.sm_90a;
  const findings: TilewrightError[] = [];
  try {
    findings.push(...emulate(module, shape, memory, { target, seed }).findings);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    findings.push(error);
  }
  const codes = findings.flatMap(({ code, notes }) => [
    code,
    ...notes.map(({ message }) => /^before that, (TW\d+)/.exec(message)?.[1] ?? ""),
  ]);
  return {
    findings,
    codes: codes.filter((code) => code !== ""),
    results: resultsOf(memory, arrays),
  };
}

function entryOf(module: PtxModule, given: number): { entry: string; extra: number } {
  const entries = module.declarations.filter((one) => one.kind === "function" && one.entry);
  const [only] = entries;
  if (only?.kind !== "function" || entries.length !== 1) throw new Error("one entry is needed");
  return { entry: only.name, extra: only.parameters.length - given };
}

function parameterBytes(
  argument: Argument,
  memory: EmulatedMemory,
  arrays: Map<string, Placed>,
): Uint8Array {
  if (argument.kind === "scalar") return bytesOf(new Int32Array([argument.value]));
  if (argument.kind === "single") return bytesOf(new Float32Array([argument.value]));
  if (argument.kind === "addresses") {
    const parts = argument.arrays.map((array) => parameterBytes(array, memory, arrays));
    const data = Uint8Array.from(parts.flatMap((part) => [...part]));
    return parameterBytes({ kind: "input", name: argument.name, data }, memory, arrays);
  }
  const { kind, data } = argument;
  const name = kind === "map" ? "map" : argument.name;
  const address = memory.allocate(data.byteLength, name);
  if (kind !== "output") memory.write(address, bytesOf(data));
  arrays.set(name, { data, address });
  return kind === "map"
    ? encodeTensorMap({ ...argument.map, address })
    : bytesOf(new BigUint64Array([BigInt(address)]));
}

function bytesOf(data: Data): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
}

function resultsOf(memory: EmulatedMemory, arrays: ReadonlyMap<string, Placed>): Results {
  const read = (name: string): Data => {
    const placed = arrays.get(name);
    if (placed === undefined) throw new Error(`no array ${name}`);
    const copy = placed.data.slice();
    const bytes = memory.read(placed.address, copy.byteLength);
    new Uint8Array(copy.buffer, copy.byteOffset, copy.byteLength).set(bytes);
    return copy;
  };
  return {
    numbers: (name) => read(name) as NumberArray,
    bigints: (name) => read(name) as BigInt64Array | BigUint64Array,
  };
}
