/** Runs a described launch on the emulator, through its public interface. */
import { f32, f64, hostArray, i16, i32, i64, TilewrightError, u16, u32, u64, u8 } from "tilewright";
import type { DType, HostArray, Storage } from "tilewright";
import { Emulator } from "tilewright/emulator";
import type { EmulatedArray, EmulatedModule, ParameterValue } from "tilewright/emulator";
import type { Argument, Data, NumberArray, Results } from "./case.ts";

export interface Launch {
  readonly blocks: readonly [number, number, number];
  readonly threads: readonly [number, number, number];
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

/** The text that was run last: one is run under several seeds in turn, and compiled for the first of them. */
let last: { readonly text: string; readonly module: EmulatedModule } | undefined;

function moduleOf(text: string, file: string, emulator: Emulator): EmulatedModule {
  if (last?.text !== text) last = { text, module: emulator.load(text, file) };
  return last.module;
}

/** Runs the one entry of the text. */
export function runOnEmulator(text: string, file: string, launch: Launch, seed: number): Outcome {
  const emulator = new Emulator();
  const module = moduleOf(text, file, emulator);
  const arrays = new Map<string, EmulatedArray>();
  const given = launch.arguments.map((argument) => parameterOf(argument, emulator, arrays));
  const { blocks, threads, cluster, sharedBytes = 0 } = launch;
  // Triton hands scratch memory to kernels that need some; these get none.
  const extra = module.entry().parameters.slice(given.length);
  const parameters = [...given, ...extra.map(() => null)];
  const settings = { blocks, threads, sharedBytes, parameters, seed };
  const findings: TilewrightError[] = [];
  try {
    const shape = cluster === undefined ? settings : { ...settings, cluster };
    findings.push(...emulator.launch(module, shape).findings);
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
    results: resultsOf(emulator, arrays),
  };
}

function parameterOf(
  argument: Argument,
  emulator: Emulator,
  arrays: Map<string, EmulatedArray>,
): ParameterValue {
  if (argument.kind === "scalar") return argument.value;
  if (argument.kind === "single") return { dtype: f32, value: argument.value };
  if (argument.kind === "addresses") {
    const parts = argument.arrays.map((array) => parameterOf(array, emulator, arrays));
    const addresses = parts.map((part) => BigInt((part as EmulatedArray).address));
    const data = BigUint64Array.from(addresses);
    return parameterOf({ kind: "input", name: argument.name, data }, emulator, arrays);
  }
  const { kind, data } = argument;
  const name = kind === "map" ? "map" : argument.name;
  const values = arrayOf(data);
  const array =
    kind === "output"
      ? emulator.allocate(values.dtype, values.shape, name)
      : emulator.upload(values, name);
  arrays.set(name, array);
  return kind === "map" ? emulator.tensorMap(array, argument.map) : array;
}

const formats: ReadonlyMap<unknown, DType> = new Map<unknown, DType>([
  [Uint8Array, u8],
  [Uint16Array, u16],
  [Int16Array, i16],
  [Uint32Array, u32],
  [Int32Array, i32],
  [Float32Array, f32],
  [Float64Array, f64],
  [BigInt64Array, i64],
  [BigUint64Array, u64],
]);

function arrayOf(data: Data): HostArray {
  const dtype = formats.get(data.constructor);
  if (dtype === undefined) throw new Error(`no format for ${data.constructor.name}`);
  return hostArray(dtype, [data.length], data as Storage);
}

function resultsOf(emulator: Emulator, arrays: ReadonlyMap<string, EmulatedArray>): Results {
  const read = (name: string): Data => {
    const array = arrays.get(name);
    if (array === undefined) throw new Error(`no array ${name}`);
    return emulator.download(array).data as Data;
  };
  return {
    numbers: (name) => read(name) as NumberArray,
    bigints: (name) => read(name) as BigInt64Array | BigUint64Array,
  };
}
