import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { parsePtx } from "../ptx/parser/index.ts";
import { f32 } from "../formats/dtype.ts";
import { parseModule } from "../ir/parser/parser.ts";
import { accumulator, tensor, kernel } from "../lang/index.ts";
import { targets } from "../targets/target.ts";
import { Dumps } from "./dump.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tilewright-dump-"));
  // Without any tool.
  for (const name of ["PATH", "CUDA_HOME"]) vi.stubEnv(name, folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const read = (name: string): string => readFileSync(join(folder, name), "utf8");

const twice = kernel(
  { name: "twice", inputs: { x: tensor(f32, [64]) }, outputs: { out: tensor(f32, [64]) } },
  ({ x, out }) => {
    x.load(); // Nobody uses it.
    out.store(x.load().mul(2));
  },
);

test("every stage has a file that can be read back", async () => {
  const dumps = new Dumps(folder);
  const driverLog = "ptxas info : Used 8 registers\n(C7510) Potential Performance Loss";
  await dumps.write({ name: "a b", kernel: twice.kernel, target: targets.sm_90a, driverLog });
  const stages = readdirSync(join(folder, "a_b.sm_90a")).sort();
  expect(stages).toEqual([
    "00-traced.ir",
    ...stages.slice(1, -3),
    "assembler.log",
    "kernel.ptx",
    "placement.txt",
  ]);
  const passes = stages.filter((name) => name.endsWith(".ir"));
  expect(passes.length).toBeGreaterThan(1);
  const ops = passes.map(
    (name) => parseModule(read(`a_b.sm_90a/${name}`)).kernels[0]?.body.ops.length ?? 0,
  );
  const last = passes.slice(-7);
  expect(last.map((name) => name.slice(3))).toEqual([
    "select.ir",
    "place.ir",
    "allocate.ir",
    "guard-bounds.ir",
    "tensor-maps.ir",
    "barriers.ir",
    "product-groups.ir",
  ]);
  // The last before placement has lost the load that nobody uses.
  expect(ops.at(-7)).toBeLessThan(ops[0] ?? 0);
  for (const placed of last.slice(1))
    expect(parseModule(read(`a_b.sm_90a/${placed}`)).kernels[0]?.placed?.target).toBe(
      targets.sm_90a,
    );
  expect(parsePtx(read("a_b.sm_90a/kernel.ptx")).target).toBe("sm_90a");
  expect(read("a_b.sm_90a/placement.txt")).toMatch(/^twice on sm_90a\n/);
  expect(read("a_b.sm_90a/assembler.log")).toBe(
    "ptxas is not installed\nthe driver: (C7510) Potential Performance Loss\n",
  );
});

test("kernels of one name have a folder each", async () => {
  const dumps = new Dumps(folder);
  for (const target of [targets.sm_90a, targets.sm_90a, targets.sm_80])
    await dumps.write({ name: "twice", kernel: twice.kernel, target });
  expect(readdirSync(folder).sort()).toEqual(["twice.sm_80", "twice.sm_90a", "twice.sm_90a-2"]);
  expect(dumps.summary()).toContain(join(folder, "twice.sm_90a-2"));
});

test("a kernel that cannot be compiled leaves what there is, and why there is no more", async () => {
  const product = kernel({ name: "product", outputs: { out: tensor(f32, [64, 8]) } }, ({ out }) =>
    out.store(accumulator(f32, [64, 8]).wait()),
  );
  await new Dumps(folder).write({ name: "p", kernel: product.kernel, target: targets.sm_80 });
  expect(readdirSync(join(folder, "p.sm_80"))).toContain("00-traced.ir");
  expect(read("p.sm_80/error.txt")).toMatch(/^TW6105: accumulator needs wgmma/);
});
