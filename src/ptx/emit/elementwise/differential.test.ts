/** What elementwise sequences compute when they run, against the arithmetic that defines the results. */
import { describe, expect, test } from "vitest";
import { differences, planRun } from "../../../../test/elementwise-cases.ts";
import { allElementwise, elementwiseProbe, isExact } from "../../../../test/elementwise-probes.ts";
import type { Elementwise } from "../../../../test/elementwise-probes.ts";
import { emulateRun } from "../../../../test/emulated-probe.ts";
import { probeModule } from "../../../../test/ptx-probe.ts";
import type { Probe } from "../../../../test/ptx-probe.ts";
import { targets } from "../../../targets/target.ts";
import type { Target } from "../../../targets/target.ts";

const seed = 1;

function findDifferences(
  target: Target,
  list: readonly Elementwise[],
  level: Probe["level"],
  size: number,
): readonly string[] {
  const probes = list.map((computes) => elementwiseProbe(computes, level));
  const module = probeModule(target, probes);
  return probes.flatMap((probe) => {
    const run = planRun(probe, size, seed);
    return differences(run, emulateRun(module, target, run)).map((text) => `${text}, seed ${seed}`);
  });
}

const exact = allElementwise().filter(isExact);
const casts = exact.filter(({ kind }) => kind === "cast");
const functions = exact.filter(({ kind }) => kind !== "cast");

describe.each([targets.sm_80, targets.sm_90a])("bit for bit on $name", (target) => {
  test.each(["element", "words"] as const)("functions of %s", (level) => {
    expect(findDifferences(target, functions, level, 1024)).toEqual([]);
  });

  test.each(["element", "words"] as const)("conversions of %s", (level) => {
    expect(findDifferences(target, casts, level, 1024)).toEqual([]);
  });
});
