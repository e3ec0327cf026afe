/**
 * Runs expressions of vectors as WebAssembly, on arrays: what functions, conversions and kernels for the CPU are tested with.
 *
 *   const run = compileVectors((code, x) => vectorMath.f32.unary.exp(code, x), { relaxed: false });
 *   run(new Float32Array([0, 1]))       as many results, the rest of the last vector padded with zeros
 */
import { setFlagsFromString } from "node:v8";
import { i32, load, ModuleBuilder, op } from "../../src/cpu/loops/builder.ts";
import { emitModule } from "../../src/cpu/loops/emit.ts";
import type { Expression } from "../../src/cpu/loops/ir.ts";
import type { VectorCode } from "../../src/cpu/math/index.ts";

/** Whether this engine has relaxed SIMD. Node 20 has it behind an option, which later versions do not know. */
export const hasRelaxedSimd = validatesRelaxed() || validatesWithOption();

function validatesRelaxed(): boolean {
  return WebAssembly.validate(
    moduleOf((code, x) => code.builder.keep(op("f32x4.relaxed_madd", x, x, x)), true, 1),
  );
}

function validatesWithOption(): boolean {
  setFlagsFromString("--experimental-wasm-relaxed-simd");
  return validatesRelaxed();
}

type Lanes =
  | Float32Array<ArrayBuffer>
  | Float64Array<ArrayBuffer>
  | Int32Array<ArrayBuffer>
  | Uint32Array<ArrayBuffer>
  | BigInt64Array<ArrayBuffer>
  | BigUint64Array<ArrayBuffer>;

interface Options {
  readonly relaxed: boolean;
  readonly operands?: number;
}

const pageBytes = 65536;

function bytesOf({ buffer, byteOffset, byteLength }: Lanes): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function moduleOf(
  write: (code: VectorCode, ...operands: readonly Expression[]) => Expression,
  relaxed: boolean,
  operands: number,
): Uint8Array<ArrayBuffer> {
  const module = new ModuleBuilder({ memory: { minimum: 1, maximum: 65536, shared: false } });
  module.define(
    "run",
    ["i32", "i32", "i32"],
    [],
    (builder, begin, end, stride) =>
      builder.countedLoop(begin, end, 16, (at) => {
        const loaded: Expression[] = [];
        let address = at;
        for (let index = 0; index < operands; index++) {
          loaded.push(builder.keep(load("v128.load", address)));
          address = builder.keep(i32.add(address, stride));
        }
        builder.store("v128.store", address, write({ builder, relaxed }, ...loaded));
      }),
    { exported: true },
  );
  return emitModule(module.finish());
}

/** Lanes in, bytes out: of operands of one length and of results with as many bytes. */
export function compileVectors(
  write: (code: VectorCode, ...operands: readonly Expression[]) => Expression,
  { relaxed, operands = 1 }: Options,
): (...arrays: readonly Lanes[]) => ArrayBuffer {
  const compiled = new WebAssembly.Module(moduleOf(write, relaxed, operands));
  return (...arrays) => {
    const bytes = Math.ceil((arrays[0]?.byteLength ?? 0) / 16) * 16;
    const pages = Math.ceil((bytes * (operands + 1)) / pageBytes) + 1;
    const memory = new WebAssembly.Memory({ initial: pages, maximum: 65536 });
    const { exports } = new WebAssembly.Instance(compiled, { env: { memory } });
    const all = new Uint8Array(memory.buffer);
    arrays.forEach((array, index) => all.set(bytesOf(array), index * bytes));
    (exports as Exports)["run"]?.(0, bytes, bytes);
    const length = arrays[0]?.byteLength ?? 0;
    return memory.buffer.slice(operands * bytes, operands * bytes + length);
  };
}

type Exports = {
  readonly [name: string]: ((...operands: readonly number[]) => number) | undefined;
};

/** Memory after functions of a module have run, which begins with `source` and has room for so many bytes behind it. */
export function runModule(
  code: Uint8Array<ArrayBuffer> | WebAssembly.Module,
  source: Uint8Array,
  room: number,
  run: (exports: Exports) => void,
): Uint8Array {
  const initial = Math.ceil((source.length + room) / pageBytes) + 1;
  const memory = new WebAssembly.Memory({ initial, maximum: 65536 });
  const module = code instanceof WebAssembly.Module ? code : new WebAssembly.Module(code);
  const { exports } = new WebAssembly.Instance(module, { env: { memory } });
  const all = new Uint8Array(memory.buffer);
  all.set(source);
  run(exports as Exports);
  return all;
}
