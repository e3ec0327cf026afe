/**
 * Kernels that Triton emitted for sm_100a, with products in tensor memory: bit for bit what the published model of the tensor core
 * gives for the same inputs, computed by numpy (`test/fixtures/ptx/README.md`), under any schedule. Triton leaves out every
 * `tcgen05.fence` and, behind `cp.async`, the proxy fence: these are notes, with their lines, and nothing is found.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { brotliDecompressSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { f16, f32, u8 } from "tilewright";
import type { HostArray } from "tilewright";
import { Emulator } from "tilewright/emulator";
import type { EmulationResult } from "tilewright/emulator";
import { readNpz } from "tilewright/files";
import { decodeFloat } from "../../src/formats/floats.ts";
import { takesAll } from "../support/sample.ts";

const folder = "test/fixtures/ptx/triton/tensor-memory";

interface Program {
  readonly name: string;
  readonly inputs: string;
  readonly sharedBytes: number;
  readonly shape: readonly [rows: number, columns: number];
  /** Behind the arrays. */
  readonly scalars: readonly number[];
  /** Bytes that the kernel takes for tensor maps. */
  readonly scratch?: number;
  readonly blocks?: number;
}

/** Opcodes that come after others without `tcgen05.fence`. */
const unfenced = ["st", "mma", "ld", "dealloc"];

const programs: readonly Program[] = [
  { name: "f16", inputs: "f16", sharedBytes: 65552, shape: [128, 128], scalars: [64] },
  {
    name: "f16-m64",
    inputs: "f16",
    blocks: 2,
    sharedBytes: 49168,
    shape: [128, 128],
    scalars: [64],
  },
  {
    name: "f16-tma",
    inputs: "f16",
    sharedBytes: 65568,
    shape: [128, 128],
    scalars: [128, 64],
    scratch: 256,
  },
  { name: "e4m3", inputs: "e4m3", sharedBytes: 49168, shape: [128, 64], scalars: [128] },
  { name: "mxfp8", inputs: "mxfp8", sharedBytes: 25088, shape: [128, 64], scalars: [256] },
  { name: "mxfp4", inputs: "mxfp4", sharedBytes: 25600, shape: [128, 64], scalars: [256] },
  { name: "nvfp4", inputs: "nvfp4", sharedBytes: 26624, shape: [128, 64], scalars: [256] },
];

function textOf(name: string): string {
  return brotliDecompressSync(readFileSync(`${folder}/${name}.ptx.br`)).toString("utf8");
}

type Inputs = Readonly<Record<string, HostArray>>;

interface Outcome {
  readonly bytes: Uint8Array;
  readonly result: EmulationResult;
}

function run(program: Program, inputs: Inputs, seed: number): Outcome {
  const emulator = new Emulator({ threads: 1 });
  const module = emulator.load(textOf(program.name), `${program.name}.ptx`);
  const names = ["a", "b", "sa", "sb"].filter((name) => inputs[name] !== undefined);
  const arrays = names.map((name) => emulator.upload(inputs[name] as HostArray, name));
  const out = emulator.allocate(f32, program.shape, "out");
  const scratch = emulator.allocate(u8, [program.scratch ?? 1], "scratch");
  const result = emulator.launch(module, {
    blocks: program.blocks ?? 1,
    threads: 128,
    sharedBytes: program.sharedBytes,
    parameters: [...arrays, out, ...program.scalars, scratch, null],
    seed,
  });
  const { data } = emulator.download(out);
  return { bytes: new Uint8Array(data.buffer, data.byteOffset, data.byteLength), result };
}

/** Seeds beside the first: one of them, or all. */
/** softmax(q kᵀ / 8) v in f64. */
function attentionOf(inputs: Inputs): Float64Array {
  const [q, k, v] = ["q", "k", "v"].map((name) =>
    Float64Array.from(inputs[name]?.data as Uint16Array, (code) => decodeFloat("f16", code)),
  );
  const out = new Float64Array(128 * 64);
  if (q === undefined || k === undefined || v === undefined) return out;
  for (let row = 0; row < 128; row++) {
    const weights = Float64Array.from({ length: 128 }, (_, key) => {
      let sum = 0;
      for (let at = 0; at < 64; at++)
        sum += (q[64 * row + at] as number) * (k[64 * key + at] as number);
      return Math.exp(sum / 8);
    });
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    for (let column = 0; column < 64; column++) {
      let sum = 0;
      for (let key = 0; key < 128; key++)
        sum += (weights[key] as number) * (v[64 * key + column] as number);
      out[64 * row + column] = sum / total;
    }
  }
  return out;
}

function seedsOf(place: number): readonly number[] {
  return takesAll ? [0, 1, 2, 3] : [place % 4];
}

describe.each(programs.map((program, place) => ({ ...program, seeds: seedsOf(place) })))(
  "$name",
  (program) => {
    test.each(program.seeds)("seed %i", async (seed) => {
      const inputs = (await readNpz(readFileSync(`${folder}/${program.inputs}.npz`))) as Inputs;
      const { bytes, result } = run(program, inputs, seed);
      expect(result.findings.map(({ message }) => message)).toEqual([]);
      const expected = inputs["model_sha256"]?.data as Uint8Array;
      expect(createHash("sha256").update(bytes).digest("hex")).toBe(
        Buffer.from(expected).toString("hex"),
      );
      const fences = result.notes.filter(({ code }) => code === "TW8086");
      const opcodes = fences.map(({ message }) => /tcgen05\.([a-z]+)/.exec(message)?.[1]);
      expect([...new Set(opcodes)]).toEqual(unfenced);
      const proxies = result.notes.filter(({ code }) => code === "TW8015");
      expect(proxies.length > 0).toBe(program.name !== "f16-tma");
      for (const note of result.notes) expect(note.message).toMatch(/kernels\.py:\d+/);
    });
  },
);

describe("attention", () => {
  test.each(seedsOf(3))("seed %i", async (seed) => {
    const inputs = (await readNpz(readFileSync(`${folder}/attention.npz`))) as Inputs;
    const emulator = new Emulator({ threads: 1 });
    const module = emulator.load(textOf("attention"), "attention.ptx");
    const arrays = ["q", "k", "v"].map((name) => emulator.upload(inputs[name] as HostArray, name));
    const out = emulator.allocate(f16, [128, 64], "out");
    const result = emulator.launch(module, {
      ...{ blocks: 1, threads: 128, sharedBytes: 49184, seed },
      parameters: [...arrays, out, 128, { dtype: f32, value: 0.125 }, null, null],
    });
    expect(result.findings.map(({ message }) => message)).toEqual([]);
    const numbers = Float64Array.from(emulator.download(out).data as Uint16Array, (code) =>
      decodeFloat("f16", code),
    );
    const expected = attentionOf(inputs);
    const worst = expected.reduce(
      (most, value, at) => Math.max(most, Math.abs(value - (numbers[at] as number))),
      0,
    );
    // Probabilities of about 2^-7 are rounded to f16, 128 of them weigh numbers below 1; the sum is rounded to f16.
    expect(worst).toBeLessThan(2e-3);
  });
});
