/** The PTX version that a module asks for: no higher than its instructions and its target need. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Statement, Variable } from "./module.ts";
import { isOlderPtx, ptxVersion } from "./version.ts";

function body(...opcodes: readonly string[]): readonly Statement[] {
  return opcodes.map((opcode) => ({ kind: "instruction", opcode, operands: [] }));
}

describe("the version", () => {
  test.each([
    ["sm_80", [], "7.0"],
    ["sm_80", ["add.rn.f32", "mbarrier.init.shared.b64"], "7.0"],
    ["sm_80", ["mbarrier.test_wait.parity.shared.b64"], "7.1"],
    ["sm_80", ["cvt.rn.bf16x2.f32"], "7.8"],
    ["sm_80", ["cvt.rn.satfinite.f16x2.f32"], "8.1"],
    ["sm_90", ["cvt.rn.satfinite.e4m3x2.f32"], "7.8"],
    ["sm_90", ["stmatrix.sync.aligned.m8n8.x4.shared.b16"], "7.8"],
    ["sm_90", ["cp.async.bulk.commit_group"], "8.0"],
    ["sm_90", ["mapa.shared::cluster.u32", "red.global.add.v4.f32"], "8.1"],
    ["sm_90a", [], "8.0"],
    ["sm_90a", ["wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8"], "8.0"],
    ["sm_90a", ["wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8", "ret"], "8.4"],
    ["sm_90a", ["wgmma.mma_async.sp.sync.aligned.m64n8k64.s32.u8.s8", "ret"], "8.4"],
    ["sm_100a", ["add.rn.f32"], "8.6"],
    ["sm_86", ["add.rn.f32"], "7.1"],
    ["sm_89", ["add.rn.f32"], "7.8"],
    ["sm_89", ["cvt.rn.satfinite.e4m3x2.f32"], "8.1"],
    ["sm_120a", ["add.rn.f32"], "8.7"],
  ] as const)("%s with %j: %s", (target, opcodes, version) => {
    expect(ptxVersion(target, body(...opcodes))).toBe(version);
  });

  test.each([
    [543, "8.0"],
    [544, "8.1"],
  ])("with %i pointers and a number before them: %s", (count, version) => {
    const pointers = Array.from({ length: count }, (_, index): Variable => ({
      ...{ kind: "variable", space: "param", type: "u64", name: `x${index}` },
    }));
    const number: Variable = { kind: "variable", space: "param", type: "b8", name: "n" };
    expect(ptxVersion("sm_90a", [], [number, ...pointers])).toBe(version);
    expect(ptxVersion("sm_100a", [], [number, ...pointers])).toBe("8.6");
  });

  test("of a target that nobody knows is refused", () => {
    expect(() => ptxVersion("sm_20", [])).toThrow(TilewrightError);
    expect(() => ptxVersion("sm_20", [])).toThrow("TW7001");
  });

  test("is compared by its numbers, not its letters", () => {
    expect(isOlderPtx("8.9", "8.10")).toBe(true);
    expect(isOlderPtx("9.0", "8.10")).toBe(false);
    expect(isOlderPtx("7.8", "8.0")).toBe(true);
    expect(isOlderPtx("8.0", "8.0")).toBe(false);
  });
});
