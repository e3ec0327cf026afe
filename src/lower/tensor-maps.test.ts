/** Tensor maps are named by the copies that go by them, and asked for once, where nothing waits for them yet. */
import { expect, test } from "vitest";
import {
  tensor,
  barrier,
  block,
  commitGroup,
  copyAsync,
  dim,
  f32,
  fromNumbers,
  gmem,
  i64,
  kernel,
  open,
  prefetchMaps,
  smem,
  toNumbers,
  waitGroup,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { clusterNormalize } from "../../examples/cluster.ts";
import { gemm } from "../../examples/gemm.ts";
import { printKernel } from "../ir/printer.ts";
import { walkOps } from "../ir/traverse.ts";
import { printPtx } from "../ptx/printer.ts";
import { targets } from "../targets/target.ts";
import { lower, place } from "./stages.ts";

const placed = ({ kernel: traced }: KernelDefinition, target: keyof typeof targets = "sm_90a") =>
  place(traced, targets[target]).kernel;

const lines = (text: string, word: string): readonly string[] =>
  text.split("\n").filter((line) => line.includes(word));

const ptx = (definition: KernelDefinition, target: keyof typeof targets = "sm_90a"): string =>
  printPtx(lower(definition.kernel, targets[target]).module);

const n = dim("n", { multipleOf: 4 });

/** Copies rows of `x` through shared memory; `ask` is where the kernel may ask for maps itself. */
function copying(ask: (x: Parameters<typeof prefetchMaps>[0]) => void = () => undefined) {
  return kernel(
    {
      name: "copying",
      grid: { i: 2 },
      threads: ["load", "rest"],
      inputs: { x: tensor(f32, [64, n]) },
      outputs: { out: tensor(f32, [64, n]) },
      scratch: { buffer: smem(f32, [32, 32]), full: barrier() },
    },
    ({ i, x, out, buffer, full, load }) => {
      load(() => {
        ask(x);
        const at = [block(i, 32), block(0, 32)] as const;
        copyAsync(x.at(...at), buffer, { barrier: full });
        full.wait();
        copyAsync(buffer, out.at(...at));
        commitGroup();
        waitGroup(0);
      });
    },
  );
}

test("maps are asked for at the start, by the texts that copies have", () => {
  const text = printKernel(placed(copying()));
  expect(lines(text, "prefetch_maps").map((line) => line.trim())).toEqual([
    'prefetch_maps %0 {maps = ["load 32 of n, 32 of 64 every 4*n bytes, swizzle 128"]}',
    'prefetch_maps %1 {maps = ["store 32 of n, 32 of 64 every 4*n bytes, swizzle 128"]}',
  ]);
  expect(lines(text, 'map = "load 32 of n, 32 of 64 every 4*n bytes, swizzle 128"')).toHaveLength(
    1,
  );
  expect(text.indexOf("prefetch_maps")).toBeLessThan(text.indexOf("alloc "));
});

test("a kernel that asks itself decides where", () => {
  const text = printKernel(placed(copying(prefetchMaps)));
  const asked = lines(text, "prefetch_maps");
  expect(asked.map((line) => line.trim().slice(0, 16))).toEqual([
    "prefetch_maps %1",
    "prefetch_maps %0",
  ]);
  expect(text.indexOf("prefetch_maps %0")).toBeGreaterThan(text.indexOf("barriers_ready"));
});

test("one lane of the block asks, once a map; targets without maps ask for none", () => {
  for (const definition of [copying(), copying(prefetchMaps)]) {
    expect(lines(ptx(definition), "prefetch.tensormap")).toHaveLength(2);
    expect(lines(ptx(definition), "prefetch.tensormap").every((line) => /@%p\d+ /.test(line))).toBe(
      true,
    );
    expect(ptx(definition, "sm_80")).not.toContain("prefetch.tensormap");
  }
});

test.each([
  ["gemm", gemm],
  ["cluster", clusterNormalize],
])("every map of %s is asked for", (_, { kernel: traced }) => {
  const { parameters, module } = lower(traced, targets.sm_90a);
  const maps = parameters.filter(({ kind }) => kind === "tensorMap");
  expect(maps.length).toBeGreaterThan(0);
  expect(lines(printPtx(module), "prefetch.tensormap")).toHaveLength(maps.length);
});

test("arrays of other shapes, scratch and sums have maps of their own", () => {
  const shapes = kernel(
    {
      name: "shapes",
      inputs: { x: tensor(f32, [8, 64]) },
      outputs: { out: tensor(f32, [8, 64]), sums: tensor(i64, [8]) },
      scratch: {
        kept: gmem(f32, [8, 64]),
        buffer: smem(f32, [8, 32]),
        numbers: smem(i64, [8]),
        other: smem(f32, [8, 32]),
        full: barrier({ arrivals: 2 }),
      },
    },
    ({ x, out, kept, sums, buffer, numbers, other, full }) => {
      copyAsync(x.reshape([8, 2, 32]).at(block(0, 8), 1, block(0, 32)), buffer, { barrier: full });
      copyAsync(x.at(block(0, 8), block(0, 32)), other, { barrier: full, fill: "nan" });
      full.wait();
      copyAsync(buffer, kept.at(block(0, 8), block(0, 32)));
      copyAsync(numbers, sums, { reduction: "add" });
      commitGroup();
      waitGroup(0);
      out.store(x.load());
    },
  );
  const kernelOf = placed(shapes);
  const maps: string[] = [];
  walkOps(kernelOf.body, (op) => {
    if (op.kind === "prefetch_maps") maps.push(...(op.attributes.maps ?? []));
  });
  expect(maps).toEqual([
    "load 32 of 32, 8 of 8 every 256 bytes, 1 of 2 every 128 bytes, swizzle 128",
    "load 32 of 64, 8 of 8 every 256 bytes, swizzle 128, outside nan",
    "store 8 of 8, as u64",
    "store 32 of 64, 8 of 8 every 256 bytes, swizzle 128",
  ]);
});

test("asking changes no result", async () => {
  const numbers = Array.from({ length: 64 * 32 }, (_, index) => index);
  const device = await open("emulator");
  try {
    const x = fromNumbers(f32, [64, 32], numbers);
    for (const definition of [copying(), copying(prefetchMaps)]) {
      const { out } = await device.run(definition, { x });
      expect([...toNumbers(out)]).toEqual(numbers);
    }
  } finally {
    device.dispose();
  }
});
