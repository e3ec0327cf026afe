/** Conversions with options run on the emulator, bit for bit what the simulator takes for them. */
import { describe, expect, test } from "vitest";
import { chosenCasts } from "../../../../test/elementwise-probes.ts";
import type { ElementwiseProbe } from "../../../../test/elementwise-probes.ts";
import { findDifferences, probesOf } from "../../../../test/emulated-differences.ts";
import { joinedModule } from "../../../../test/ptx-probe.ts";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { assemble } from "../../../../test/support/accepted-assembly.ts";
import { isTaken } from "../../../../test/support/sample.ts";
import { targets } from "../../../targets/target.ts";
import type { Target } from "../../../targets/target.ts";
import { printPtx } from "../../printer.ts";

const probes = [...probesOf(chosenCasts(), "words"), ...probesOf(chosenCasts(), "element")];
const all = [targets.sm_80, targets.sm_90a, targets.sm_100a];

test("every choice is probed", () => {
  const names = new Set(probes.map(({ name }) => name));
  expect(names.size).toBe(probes.length);
  for (const name of ["f32_i8_nearest", "i32_u8_saturate", "f64_bf16_saturate_up", "f32_f32_unit"])
    expect(names).toContain(`cast_${name}_words`);
});

/** Each target has some of its own. */
function someOf(target: Target, oneIn: number): readonly ElementwiseProbe[] {
  const place = all.indexOf(target);
  return probes.filter((_, index) => isTaken(all.length * index + place, oneIn));
}

test.each(all)("on $name", (target) => {
  expect(findDifferences(target, someOf(target, 40), 128)).toEqual([]);
});

describe.skipIf(!hasPtxas)("the assembler (skipped where there is no ptxas)", () => {
  test.each(all)("accepts all sequences for $name", (target) => {
    expect(assemble(printPtx(joinedModule(target, someOf(target, 16))), target.name)).toBe("");
  });
});
