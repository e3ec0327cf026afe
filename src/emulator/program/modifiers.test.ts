import { describe, expect, test } from "vitest";
import { collectiveRules } from "../collective-rules.ts";
import { laneRoots } from "../thread-instructions/index.ts";
import { LaneInstruction } from "../thread-instructions/rule.ts";
import { warpRoots } from "./compile.ts";
import { modifierRoots, requireKnownModifiers } from "./modifiers.ts";

function check(opcode: string): void {
  requireKnownModifiers(new LaneInstruction({ kind: "instruction", opcode, operands: [] }));
}

describe("modifiers", () => {
  test("of every instruction that the emulator runs are listed", () => {
    const roots = [...laneRoots, ...warpRoots, ...Object.keys(collectiveRules)];
    expect(roots.filter((root) => !modifierRoots.includes(root))).toEqual([]);
  });

  test.each(modifierRoots)("of %s are known, or refused", (root) => {
    expect(() => {
      check(`${root}.rounded`);
    }).toThrow(`.rounded is no modifier of ${root}`);
  });

  test.each([
    "add.rn.ftz.f32",
    "ld.global.nc.L1::no_allocate.L2::cache_hint.v4.b32",
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16",
    "cvt.rn.satfinite.e4m3x2.f32",
  ])("%s is fine", (opcode) => {
    expect(() => {
      check(opcode);
    }).not.toThrow();
  });

  test("shapes are for products alone", () => {
    expect(() => {
      check("add.m16n8k16.f32");
    }).toThrow(".m16n8k16 is no modifier of add");
  });
});
