/** Arithmetic in every manner, on the emulator, bit for bit what the arithmetic on elements gives. */
import { expect, test } from "vitest";
import { findDifferences, probesOf } from "../../../../test/emulated-differences.ts";
import { manneredArithmetic } from "../../../../test/elementwise-probes.ts";
import { defaultTarget } from "../../../targets/target.ts";

test.each(["words", "element"] as const)("%s", (level) => {
  const probes = probesOf(manneredArithmetic(), level);
  // Six functions: three directions of f64, seven manners of f32; one of four functions of f16.
  expect(probes.length).toBe(6 * 3 + 6 * 7 + 4);
  expect(findDifferences(defaultTarget, probes, 256)).toEqual([]);
});
