import { expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Instruction } from "./module.ts";
import { isOlderPtx, ptxVersion } from "./version.ts";

function instruction(opcode: string): Instruction {
  return { kind: "instruction", opcode, operands: [] };
}

test.each([
  ["sm_80", "add.rn.f32", "7.0"],
  ["sm_80", "add.rn.bf16", "7.8"],
  ["sm_80", "mbarrier.test_wait.parity.shared.b64", "7.1"],
  ["sm_90", "griddepcontrol.wait", "7.8"],
  ["sm_90a", "add.rn.f32", "8.0"],
  ["sm_90a", "red.global.add.v4.f32", "8.1"],
  ["sm_90a", "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.bf16.bf16", "8.2"],
  ["sm_90a", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8", "8.4"],
  ["sm_100a", "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.u8", "8.6"],
])("%s with %s needs PTX %s", (target, opcode, version) => {
  expect(ptxVersion(target, [instruction("ret"), instruction(opcode)])).toBe(version);
});

test("an unknown target is TW7001", () => {
  let refusal: unknown;
  try {
    ptxVersion("sm_75", []);
  } catch (error) {
    refusal = error;
  }
  expect(refusal).toBeInstanceOf(TilewrightError);
  expect(refusal).toMatchObject({ code: "TW7001", found: "sm_75" });
});

test("versions are compared as numbers of two parts", () => {
  expect(isOlderPtx("7.8", "8.0")).toBe(true);
  expect(isOlderPtx("8.0", "8.0")).toBe(false);
});
