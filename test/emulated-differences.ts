/** Elementwise probes on the emulator against the arithmetic that defines the results. */
import { printPtx } from "../src/ptx/printer.ts";
import { defaultTarget, targets } from "../src/targets/target.ts";
import type { Target } from "../src/targets/target.ts";
import { differences, greatestDistance, planRun } from "./elementwise-cases.ts";
import { elementwiseProbe } from "./elementwise-probes.ts";
import type { Elementwise, ElementwiseProbe } from "./elementwise-probes.ts";
import { emulateRun } from "./emulated-probe.ts";
import { probeModule } from "./ptx-probe.ts";
import type { Probe } from "./ptx-probe.ts";

const seed = 1;

/** What comes out otherwise, some elements of each probe. */
export function findDifferences(
  target: Target,
  probes: readonly ElementwiseProbe[],
  size: number,
): readonly string[] {
  const module = probeModule(target, probes);
  return probes.flatMap((probe) => {
    const run = planRun(probe, size, seed);
    return differences(run, emulateRun(module, target, run)).map((text) => `${text}, seed ${seed}`);
  });
}

/** How far from what is expected the results of each probe lie, at most. */
export function findDistances(
  target: Target,
  probes: readonly ElementwiseProbe[],
  size: number,
): ReadonlyMap<ElementwiseProbe, number> {
  const module = probeModule(target, probes);
  return new Map(
    probes.map((probe) => {
      const run = planRun(probe, size, seed);
      return [probe, greatestDistance(run, emulateRun(module, target, run))];
    }),
  );
}

export function probesOf(
  list: readonly Elementwise[],
  level: Probe["level"],
): readonly ElementwiseProbe[] {
  return list.map((computes) => elementwiseProbe(computes, level));
}

/** Probes that are written otherwise for sm_80 than for the default target. */
export function writtenForSm80(probes: readonly ElementwiseProbe[]): readonly ElementwiseProbe[] {
  const text = (target: Target, probe: Probe): string =>
    printPtx({ ...probeModule(target, [probe]), version: "", target: "" });
  return probes.filter((probe) => text(targets.sm_80, probe) !== text(defaultTarget, probe));
}
