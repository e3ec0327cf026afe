/** Running kernels of pipelines: under many schedules of the simulator, and on the emulator. */
import { expect } from "vitest";
import { open, toNumbers } from "tilewright";
import type { HostArray, KernelDefinition, RunArguments } from "tilewright";
import { turns } from "../../src/testing/check-kernel.ts";
import { runKernel } from "../simulation.ts";
import { takesAll } from "../support/sample.ts";
import type { Expected } from "./plain.ts";

export function requireResults(
  results: { readonly [name: string]: HostArray },
  expected: Expected,
  title: string,
): void {
  for (const [name, elements] of Object.entries(expected.results)) {
    const found = results[name];
    if (found === undefined) throw new Error(`no result ${name}`);
    expect([...toNumbers(found)], `${name}, ${title}`).toEqual(elements);
  }
}

/** Twenty where all cases are asked for. */
const usualSchedules = takesAll ? 20 : 2;

/** Runs under the fixed schedule and `schedules` seeded ones: nothing may be found, and all results must be right. */
export async function requireClean(
  definition: Pick<KernelDefinition, "kernel">,
  expected: Expected,
  schedules = usualSchedules,
  dimensions: { readonly [name: string]: number } = {},
): Promise<void> {
  for (const turn of turns({ schedules })) {
    const title = `${turn.schedule} schedule, seed ${turn.seed}`;
    const { findings, results } = await runKernel(definition, expected.inputs, {
      ...turn,
      dimensions,
    });
    expect(
      findings.map(({ message }) => message),
      title,
    ).toEqual([]);
    requireResults(results, expected, title);
  }
}

/** Runs the kernel's PTX with every check of the emulator. */
export async function requireEmulated(
  definition: KernelDefinition,
  expected: Expected,
  dimensions: { readonly [name: string]: number } = {},
): Promise<void> {
  const device = await open("emulator", { seed: 7 });
  try {
    const inputs = expected.inputs as RunArguments<KernelDefinition>;
    requireResults(await device.run(definition, inputs, { dimensions }), expected, "emulator");
  } finally {
    device.dispose();
  }
}

/** Lines of a printed kernel but for constants, of which equal ones are written once. */
export function opLines(text: string): number {
  return text.split("\n").filter((line) => !/ = constant\b/.test(line)).length;
}
