import { describe, expect, test } from "vitest";
import { bf16, f32 } from "../../formats/dtype.ts";
import {
  accumulator,
  tensor,
  commitShared,
  dim,
  kernel,
  slice,
  smem,
  wgmma,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import type { Instruction } from "../../ptx/module.ts";
import { integer } from "../../ptx/operands.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { targets } from "../../targets/target.ts";
import { reportKernel } from "./kernel-report.ts";
import type { KernelReport } from "./kernel-report.ts";
import type { Measurer } from "./measurer.ts";
import { memoryAccess } from "../../ptx/notes/memory-instructions.ts";
import { drawReports } from "./report-drawing.ts";
import { reportText } from "./report-text.ts";

function instruction(opcode: string, ...operands: Instruction["operands"]): Instruction {
  return { kind: "instruction", opcode, operands };
}

describe("accesses to memory", () => {
  test.each([
    ["ld.global.v4.b32", { kind: "global load", bytes: 16 }],
    ["ld.global.nc.L1::no_allocate.v2.b64", { kind: "global load", bytes: 16 }],
    ["ld.relaxed.gpu.global.u8", { kind: "global load", bytes: 1 }],
    ["st.global.b16", { kind: "global store", bytes: 2 }],
    ["st.shared::cluster.v2.f32", { kind: "shared store", bytes: 8 }],
    ["st.local.b32", { kind: "spill", bytes: 4 }],
    ["red.global.add.noftz.bf16x2", { kind: "global atomic", bytes: 4 }],
    ["atom.shared.add.u32", { kind: "shared atomic", bytes: 4 }],
    [
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
      { kind: "shared load", bytes: 16, matrix: "plain" },
    ],
    [
      "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16",
      { kind: "shared store", bytes: 8, matrix: "transposed" },
    ],
    [
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
      { kind: "tensor copy", bytes: undefined },
    ],
    [
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
      { kind: "bulk copy", bytes: undefined },
    ],
    ["cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile", { kind: "tensor copy" }],
    ["cp.async.commit_group", undefined],
    ["cp.async.bulk.wait_group.read", undefined],
    ["cp.async.mbarrier.arrive.noinc.shared::cta.b64", undefined],
    ["ld.param.b64", undefined],
    ["add.rn.f32", undefined],
  ])("%s", (opcode, expected) => {
    expect(memoryAccess(instruction(opcode))).toEqual(expected);
  });

  test("of cp.async are as wide as they say", () => {
    const copy = instruction("cp.async.cg.shared.global", integer(0), integer(0), integer(16));
    expect(memoryAccess(copy)).toEqual({ kind: "async copy", bytes: 16 });
  });
});

/** Lanes along columns, read across rows that lie 128 bytes apart: one bank for all of them. */
const across = kernel(
  {
    name: "across",
    inputs: { x: tensor(f32, [32, 32]) },
    outputs: { out: tensor(f32, [32, 32]) },
    scratch: { tile: smem(f32, [32, 32], { layout: "shared()" }) },
  },
  ({ x, out, tile }) => {
    tile.store(x.load());
    const turned = tile.transpose().load().layoutCast("(W0 W1 | L0 L1 L2 L3 L4)");
    out.store(turned.neg().layoutCast("(L0 L1 L2 L3 L4 | W0 W1)"));
  },
);

const n = dim("n", { multipleOf: 4 });
const wide = kernel(
  {
    name: "wide",
    grid: { i: 1 },
    inputs: { x: tensor(f32, [n]) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ x, out }) => {
    const here = slice(0, 512);
    out.at(here).store(x.at(here).load());
  },
);

function report(
  { kernel: traced, name }: KernelDefinition,
  measurer?: Measurer,
): Promise<KernelReport> {
  return reportKernel(name, traced, targets.sm_90a, measurer);
}

const taking = (usage: {
  readonly registers: number;
  readonly warnings?: readonly string[];
}): Measurer => ({
  name: "ptxas",
  measure: async () => ({ barriers: 0, spillStores: 8, spillLoads: 12, warnings: [], ...usage }),
});

const sourceText = (_file: string, line: number): string => `  text of line ${line}`;

describe("a report", () => {
  test("finds wide accesses", async () => {
    const { lines } = await report(wide);
    expect(lines.flatMap(({ accesses }) => accesses)).toEqual([
      { kind: "global load", bytes: 16, count: 1 },
      { kind: "global store", bytes: 16, count: 1 },
    ]);
  });

  test("counts conflicts of banks and conversions where they are", async () => {
    const { lines } = await report(across);
    const [store, load, conversion] = lines.slice(-3);
    expect(store?.banks).toEqual([{ op: "store", wavefronts: 32, ideal: 32 }]);
    // 32 accesses of a warp, each of 32 words in one bank.
    expect(load?.banks).toEqual([{ op: "load", wavefronts: 1024, ideal: 32 }]);
    expect(load?.line).toBe((store?.line ?? 0) + 1);
    expect(conversion?.conversions).toMatchObject([
      { op: "neg", kind: "shared", times: 1 },
      { op: "store", kind: "shared", times: 1 },
    ]);
  });

  test("says what it knows of registers", async () => {
    const known = reportText(await report(wide, taking({ registers: 168 })), sourceText).join("\n");
    expect(known).toMatch(/registers +168 a thread, spills 8 bytes and reads 12 back, by ptxas\n/);
    expect(known).toMatch(
      /occupancy +3 blocks a processor, 384 of 2048 threads; the limit is registers/,
    );
    const unknown = reportText(await report(wide), sourceText).join("\n");
    expect(unknown).toMatch(/registers +not known: ptxas is not installed\n/);
    const slow: Measurer = {
      name: "ptxas",
      measure: () =>
        Promise.reject(
          new TilewrightError({
            code: "TW5012",
            message: "ptxas did not finish",
            expected: "3 seconds",
            found: "900 lines",
          }),
        ),
    };
    const stopped = reportText(await report(wide, slow), sourceText).join("\n");
    expect(stopped).toMatch(
      /registers +not known: TW5012, ptxas did not finish in 3 seconds; make/,
    );
    expect(unknown).toMatch(/16 blocks a processor.*the limit is threads, registers not counted\n/);
  });

  test("shows each line with its text, and only columns that say something", async () => {
    const text = reportText(await report(across), sourceText);
    expect(text[0]).toBe("across on sm_90a");
    expect(text.join("\n")).toMatch(/bank conflicts +992 wavefronts more than at best/);
    expect(text.join("\n")).toMatch(/conversions +2, \d+ cycles in all/);
    const heading = text.findIndex((line) => line.startsWith("  line "));
    expect(text[heading]).toMatch(
      /^ {2}line +instructions +memory +conversions +bank conflicts +source$/,
    );
    expect(text.find((line) => line.includes("wavefronts, "))).toMatch(
      /load: 1024 wavefronts, 32 at best +text of line \d+$/,
    );
    const plain = reportText(await report(wide), sourceText);
    expect(plain.find((line) => line.startsWith("  line "))).toMatch(
      /^ {2}line +instructions +memory +source$/,
    );
  });

  test("tells of wgmma that runs one after the other, where it is", async () => {
    const products = kernel(
      {
        name: "products",
        inputs: { x: tensor(bf16, [64, 64]) },
        outputs: { out: tensor(f32, [64, 64]) },
        scratch: { tile: smem(bf16, [64, 64]) },
      },
      ({ x, out, tile }) => {
        tile.store(x.load());
        commitShared();
        const product = wgmma(accumulator(f32, [64, 64]), tile, tile);
        out.store(product.wait());
      },
    );
    const warnings = [
      "ptxas info : (C7510) Potential Performance Loss: wgmma.mma_async … serialized",
    ];
    const [fast, slow] = await Promise.all(
      [[], warnings].map((each) => report(products, taking({ registers: 40, warnings: each }))),
    );
    const text = (each: KernelReport | undefined): string =>
      each === undefined ? "" : reportText(each, sourceText).join("\n");
    expect(text(fast)).toMatch(/\n {2}wgmma +not serialised\n/);
    expect(text(fast)).toMatch(/\n {2}\d+ +\d+ +4 +text of line/);
    expect(text(slow)).toMatch(/\n {2}wgmma +ptxas info : \(C7510\)/);
    expect(text(slow)).toMatch(/\n {2}\d+ +\d+ +4, serialised +text of line/);
  });

  test("is drawn with a cell for each line and cost", async () => {
    const svg = drawReports([await report(across), await report(wide)], sourceText);
    expect(svg).toMatch(/^<svg /);
    expect(svg).toContain("across on sm_90a");
    expect(svg).toMatch(/lost to banks: 992 \(shared load 4 B × 8\)/);
  });
});
