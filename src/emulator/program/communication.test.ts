import { describe, expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { kernelText } from "../../../test/support/emulated-blocks.ts";
import { f32 } from "../../formats/dtype.ts";
import { tensor, debugPrint, full, kernel, slice } from "../../lang/index.ts";
import { printPtx } from "../../ptx/printer.ts";
import { defaultTarget } from "../../targets/target.ts";
import { collectiveRules } from "../collective-rules.ts";
import { parsePtx } from "../../ptx/parser/index.ts";
import { communicates } from "./communication.ts";
import { loadProgram } from "./load.ts";
import { lower } from "../../lower/stages.ts";

function programOf(text: string, entry = "kernel"): boolean {
  const options = { checks: false, collectives: collectiveRules };
  return loadProgram(parsePtx(text), entry, options).communicates;
}

function bodyCommunicates(body: string, module?: string): boolean {
  const arrays = [new Uint32Array(1)];
  return programOf(
    kernelText({ body: `${body} ret;`, arrays, ...(module !== undefined && { module }) }),
  );
}

describe("blocks communicate", () => {
  test.each([
    "atom.global.add.u32 %r0, [%d0], 1;",
    "atom.add.u32 %r0, [%d0], 1;",
    "red.global.add.u32 [%d0], %r0;",
    "red.relaxed.gpu.global.add.u32 [%d0], %r0;",
    "ld.volatile.global.b32 %r0, [%d0];",
    "ld.relaxed.gpu.b32 %r0, [%d0];",
    "ld.acquire.gpu.global.b32 %r0, [%d0];",
    "ld.acquire.cta.global.b32 %r0, [%d0];",
    "st.release.sys.global.b32 [%d0], %r0;",
    "st.volatile.b32 [%d0], %r0;",
    "st.relaxed.gpu.global.b32 [%d0], %r0;",
    "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d0], [%r0], 16;",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%d0, {%r0, %r1}], [%r2];",
    "mov.u32 %r0, %clock;",
    "mov.u64 %d1, %clock64;",
    "mov.u64 %d1, %globaltimer;",
  ])("through %s", (body) => {
    expect(bodyCommunicates(body)).toBe(true);
  });

  test("through functions that are called", () => {
    const module =
      ".func count() { .reg .b64 %a; .reg .b32 %b; atom.global.inc.u32 %b, [%a], 7; ret; }";
    expect(bodyCommunicates("call count, ();", module)).toBe(true);
    expect(bodyCommunicates("", module)).toBe(false);
  });
});

describe("functions of the driver", () => {
  const declared = (name: string): string =>
    `.extern .func (.param .b64 given) ${name} (.param .b64 size);`;
  const call = (name: string): string =>
    `{ .param .b64 a; .param .b64 g; st.param.b64 [a], %d0; call (g), ${name}, (a); }`;

  test.each(["malloc", "free", "vprintf"])("%s shows which block came first", (name) => {
    expect(bodyCommunicates(call(name), declared(name))).toBe(true);
  });

  test("__assertfail only ends a launch", () => {
    expect(bodyCommunicates(call("__assertfail"), declared("__assertfail"))).toBe(false);
  });
});

test("kernels that print communicate", () => {
  const define = (print: boolean) =>
    kernel({ name: "kernel", grid: { i: 4 }, outputs: { out: tensor(f32, [4]) } }, ({ i, out }) => {
      out.at(slice(i, 1)).store(full(f32, [1], 2));
      if (print) debugPrint("{}", i);
    });
  const [silent, printing] = [false, true].map((print) => {
    const { module, entry } = lower(define(print).kernel, defaultTarget);
    return programOf(printPtx(module), entry);
  });
  expect([silent, printing]).toEqual([false, true]);
});

describe("blocks do not communicate", () => {
  test.each([
    "ld.global.b32 %r0, [%d0];",
    "ld.global.nc.v4.b32 {%r0, %r1, %r2, %r3}, [%d0];",
    "ld.weak.global.b32 %r0, [%d0];",
    "st.global.cs.b32 [%d0], %r0;",
    "atom.shared.add.u32 %r0, [%r1], 1;",
    "red.shared::cluster.add.u32 [%r1], %r0;",
    "ld.volatile.shared.b32 %r0, [%r1];",
    "st.release.cluster.shared::cluster.b32 [%r1], %r0;",
    "fence.acq_rel.gpu;",
    "membar.gl;",
    "bar.sync 0;",
    "barrier.cluster.arrive.release;",
    "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [%r0], 0;",
    "cp.async.ca.shared.global [%r0], [%d0], 16;",
    "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 16;",
    "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r0], [%r1], 16, [%r2];",
    "mov.u32 %r0, %ctaid.x;",
    "mov.u32 %r0, %smid;",
  ])("through %s", (body) => {
    expect(bodyCommunicates(body)).toBe(false);
  });
});

test.each([
  ["nvcc/histogram", true],
  ["nvcc/spin-lock", true],
  ["nvcc/tiled-matmul", false],
  ["nvcc/tensor-map", false],
  // Generic addresses, which are of shared memory.
  ["nvcc/cluster", true],
  ["triton/matmul-fp16", false],
  ["triton/histogram", true],
])("of %s: %s", (name, expected) => {
  const url = new URL(`../../../test/fixtures/ptx/${name}.ptx`, import.meta.url);
  const module = parsePtx(readFileSync(url, "utf8"));
  const entry = module.declarations.find((each) => each.kind === "function" && each.entry);
  expect(programOf(readFileSync(url, "utf8"), entry?.name)).toBe(expected);
});

test("an instruction among many", () => {
  const site = (opcode: string) => ({
    instruction: { kind: "instruction", opcode, operands: [] } as const,
  });
  expect(communicates([site("add.s32"), site("st.global.b32")])).toBe(false);
  expect(communicates([site("add.s32"), site("red.add.u32"), site("st.global.b32")])).toBe(true);
});
