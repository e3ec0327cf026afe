/**
 * The library's kernels on GPUs with less shared memory than Hopper's: every plan lowers, and its blocks fit. Where `ptxas` is
 * installed, it takes what they become.
 */
import { describe, expect, test } from "vitest";
import { bf16, dim, f16, f32, i4, targets } from "tilewright";
import * as library from "tilewright/kernels";
import type { KernelDefinition, Target } from "tilewright";
import { lower } from "../src/lower/stages.ts";
import type { PtxModule } from "../src/ptx/module.ts";
import { combineModules, hasPtxas } from "./ptxas.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { takesAll } from "./support/sample.ts";

const { sm_86, sm_89, sm_120a } = targets;

const [k, n] = [dim("k"), dim("n")];

interface Sizes {
  readonly [name: string]: number;
}

interface Planning {
  plan(
    sizes: Sizes,
    target: Target,
  ): { readonly launches: readonly { readonly kernel: KernelDefinition }[] };
}

/** Large enough that a Hopper would fill its shared memory. */
const operations: readonly (readonly [name: string, operation: Planning, sizes: Sizes])[] = [
  ["matmul", library.matmul({ a: bf16, b: bf16 }), { m: 4096, n: 4096, k: 4096 }],
  ["matmul of one row", library.matmul({ a: f16, b: f16 }), { m: 1, n: 4096, k: 4096 }],
  [
    "attention",
    library.attention({ q: bf16, k: bf16, v: bf16, causal: true }),
    { b: 1, h: 8, kv: 8, s: 1024, t: 1024, d: 128, e: 128 },
  ],
  [
    "attention's gradients",
    library.attentionBackward({ q: bf16, k: bf16, v: bf16 }),
    { b: 1, h: 8, kv: 8, s: 1024, t: 1024, d: 128, e: 128 },
  ],
  [
    "paged attention",
    library.pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 } }),
    { b: 4, h: 32, kv: 8, s: 1, d: 128, e: 128, pages: 64, size: 64, most: 16 },
  ],
  [
    "weights in four bits",
    library.matmul({
      a: bf16,
      b: library.quantized(i4, [k, n], { groupSize: 128, scale: bf16 }),
      out: bf16,
    }),
    { m: 16, n: 8192, k: 8192 },
  ],
  ["softmax", library.softmax({ x: bf16, out: f32 }), { m: 64, n: 65536 }],
  ["layer norm", library.layerNorm({ x: f32 }), { m: 64, n: 16384 }],
  ["sort", library.sort({ x: f32 }), { n: 1 << 20 }],
  ["top k", library.topK({ x: f32, k: 8 }), { m: 16, n: 32768 }],
  ["scan", library.scan({ x: f32 }), { n: 1 << 20 }],
];

// sm_86 and sm_89 have the same limits and differ in conversions of FP8 alone.
describe.each(takesAll ? [sm_86, sm_89, sm_120a] : [sm_86, sm_120a])("on $name", (target) => {
  const modules: (readonly [string, PtxModule])[] = [];
  const taken = operations.filter(
    (_, place) => takesAll || place % 2 === Number(target === sm_120a),
  );

  test.each(taken)("the kernels of %s fit", (_, operation, sizes) => {
    const { launches } = operation.plan(sizes, target);
    expect(launches.length).toBeGreaterThan(0);
    for (const { kernel } of launches) {
      const { module, sharedBytes } = lower(kernel.kernel, target);
      expect(sharedBytes).toBeLessThanOrEqual(99 * 1024);
      modules.push([`kernel_${modules.length}`, module]);
    }
  });

  test.skipIf(!hasPtxas)("the assembler takes them (skipped where there is no ptxas)", () => {
    expect(modules.length).toBeGreaterThanOrEqual(taken.length);
    // It says of one kernel for sm_120a that it leaves the trade of registers out (C7506).
    expect(assemble(combineModules(modules), target.name)).not.toMatch(/error|fatal|warning/);
  });
});
