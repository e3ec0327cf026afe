/** From kernel to PTX text, and PTX text on the emulator. */
import { bf16, open } from "tilewright";
import type { KernelDefinition } from "tilewright";
import { gemmOf } from "../examples/gemm.ts";
import { normal } from "../examples/support/data.ts";
import { EmulatedMemory, emulate } from "../src/emulator/index.ts";
import { parsePtx } from "../src/ptx/parser/index.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { defaultTarget } from "../src/targets/target.ts";
import type { Benchmark } from "./measure.ts";
import { tileGemm } from "./tile-gemm.ts";
import { lower } from "../src/lower/stages.ts";

/** From a function to text that an assembler takes: a product that is persistent, and one of a tile a block. */
export function emissionBenchmarks(): readonly Benchmark[] {
  return [
    compiling("gemm from function to PTX", gemmOf, 30),
    compiling("gemm of one tile a block to PTX", tileGemm, 25),
  ];
}

function compiling(name: string, make: () => KernelDefinition, target: number): Benchmark {
  const compile = (): string => printPtx(lower(make().kernel, defaultTarget).module);
  const amount = compile().split("\n").length;
  return { name, work: { amount, unit: "line" }, target, repeat: 5, run: () => void compile() };
}

const [rows, columns, depth] = [128, 256, 512];

/** One tile of the gemm example: copies by tensor map, barriers, wgmma. */
function tileBenchmark(checks: boolean): Benchmark {
  const device = open("emulator", { checks, threads: 1, onLeak: () => undefined });
  const gemm = gemmOf();
  const a = normal(bf16, [rows, depth], 1);
  const b = normal(bf16, [depth, columns], 2);
  return {
    name: `emulate a gemm tile 128×256×512, ${checks ? "checked" : "unchecked"}`,
    work: { amount: rows * columns * depth, unit: "MAC" },
    target: 2000,
    run: async () => {
      await (await device).run(gemm, { a, b });
    },
  };
}

const steps = 2000;
const lanes = 256;
const instructionsOfStep = 34;

/** A loop of integer and float arithmetic, nothing else. */
function arithmeticText(): string {
  const body = Array.from({ length: 8 }, (_, index) => {
    const register = `%r${4 + index}`;
    const next = `%r${4 + ((index + 1) % 8)}`;
    return `add.s32 ${register}, ${register}, ${next}; xor.b32 ${register}, ${register}, %r1; fma.rn.f32 %f${index}, %f${index}, %f8, %f9; mul.lo.s32 ${next}, ${next}, ${register};`;
  });
  return `.version 8.0
.target sm_90a
.address_size 64
.visible .entry work (.param .u64 out)
{
  .reg .b32 %r<16>; .reg .f32 %f<10>; .reg .b64 %d<4>; .reg .pred %p;
  mov.u32 %r1, %tid.x; mov.u32 %r0, 0;
  ${Array.from({ length: 8 }, (_, index) => `add.s32 %r${4 + index}, %r1, ${index}; cvt.rn.f32.s32 %f${index}, %r1;`).join("\n  ")}
  mov.f32 %f8, 0f3F7FFFFF; mov.f32 %f9, 0f3A83126F;
loop:
  ${body.join("\n  ")}
  add.s32 %r0, %r0, 1; setp.lt.s32 %p, %r0, ${steps}; @%p bra loop;
  cvt.rzi.s32.f32 %r2, %f0; add.s32 %r4, %r4, %r2;
  ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r1, 4; add.s64 %d2, %d0, %d1; st.global.b32 [%d2], %r4;
  ret;
}
`;
}

function arithmeticBenchmark(checks: boolean, perSecond: number): Benchmark {
  const module = parsePtx(arithmeticText());
  const memory = new EmulatedMemory();
  const out = memory.allocate(4 * lanes);
  const parameters = [new Uint8Array(BigUint64Array.of(BigInt(out)).buffer)];
  const amount = steps * lanes * instructionsOfStep;
  return {
    name: `emulate straight arithmetic, ${checks ? "checked" : "unchecked"}`,
    work: { amount, unit: "lane instruction" },
    target: (amount / perSecond) * 1000,
    run: () => {
      const launch = { blocks: [1, 1, 1], threads: [lanes, 1, 1], sharedBytes: 0 } as const;
      emulate(module, { entry: "work", ...launch, parameters }, memory, {
        target: defaultTarget,
        checks,
      });
    },
  };
}

/** Sixteen tiles of the gemm example; threads exist only of the built package. */
function threadBenchmark(threads: number): Benchmark {
  const device = open("emulator", { threads, onLeak: () => undefined });
  const gemm = gemmOf();
  const a = normal(bf16, [8 * rows, depth], 5);
  const b = normal(bf16, [depth, 2 * columns], 6);
  return {
    name: `emulate gemm 1024×512×512, checked, ${threads === 1 ? "1 thread" : `${threads} threads`}`,
    work: { amount: 8 * rows * 2 * columns * depth, unit: "MAC" },
    run: async () => {
      await (await device).run(gemm, { a, b });
    },
  };
}

export function emulatorBenchmarks(): readonly Benchmark[] {
  return [
    arithmeticBenchmark(false, 50e6),
    arithmeticBenchmark(true, 10e6),
    tileBenchmark(false),
    tileBenchmark(true),
    threadBenchmark(1),
    threadBenchmark(2),
  ];
}

/** Blocks of a grid take as long as each other. */
export function emulatorGrowth(): readonly Benchmark[] {
  const device = open("emulator", { threads: 1, onLeak: () => undefined });
  const gemm = gemmOf();
  return [1, 2, 4].map((tiles) => {
    const a = normal(bf16, [rows * tiles, 256], 3);
    const b = normal(bf16, [256, columns], 4);
    return {
      name: `${tiles} tiles`,
      work: { amount: tiles * rows * columns * 256, unit: "MAC" },
      run: async () => {
        await (await device).run(gemm, { a, b });
      },
    };
  });
}
