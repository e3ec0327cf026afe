/** Pipelines of every configuration, and loops that the compiler pipelines, on any device: their results are exact. */
import { toNumbers } from "../../src/formats/hostarray.ts";
import type { Device } from "../../src/device/device.ts";
import type { RunArguments } from "../../src/device/types.ts";
import type { KernelDefinition } from "../../src/lang/kernel.ts";
import type { Check } from "./check.ts";
import { choicesText, plainChoices, specializedChoices } from "../pipelines/choices.ts";
import { compiledCases } from "../pipelines/compiled.ts";
import { earlyChoices, earlyExpected, earlyKernel } from "../pipelines/early.ts";
import { plainExpected, plainKernel } from "../pipelines/plain.ts";
import type { Expected } from "../pipelines/plain.ts";
import { specializedExpected, warpSpecializedKernel } from "../pipelines/warp-specialized.ts";

interface Pipeline {
  readonly name: string;
  readonly definition: () => KernelDefinition;
  readonly expected: () => Expected;
  readonly dimensions?: { readonly [name: string]: number } | undefined;
}

const pipelines: readonly Pipeline[] = [
  ...plainChoices.map((choices) => ({
    name: `pipeline with ${choicesText(choices)}`,
    definition: () => plainKernel(choices),
    expected: () => plainExpected(choices),
  })),
  ...specializedChoices.map((choices) => ({
    name: `pipeline of specialized threads with ${choicesText(choices)}`,
    definition: () => warpSpecializedKernel(choices),
    expected: () => specializedExpected(choices),
  })),
  ...earlyChoices.map((choices) => ({
    name: `pipeline of early blocks with ${choicesText(choices)}`,
    definition: () => earlyKernel(choices),
    expected: () => earlyExpected(choices),
  })),
  ...Object.entries(compiledCases).map(([name, { definition, expected, dimensions }]) => ({
    name: `pipeline by the compiler, ${name}`,
    definition: () => definition,
    expected: () => expected,
    dimensions,
  })),
];

export const pipelineChecks: readonly Check[] = pipelines.map((one) => ({
  name: one.name,
  run: (device) => check(device, one),
}));

async function check(
  device: Device,
  { definition, expected, dimensions = {} }: Pipeline,
): Promise<void> {
  const { inputs, results } = expected();
  const found = await device.run(definition(), inputs as RunArguments<KernelDefinition>, {
    dimensions,
  });
  for (const [name, elements] of Object.entries(results)) {
    const array = found[name];
    const values = array === undefined ? [] : [...toNumbers(array)];
    const wrong = elements.findIndex(
      (element, index) => !Object.is(element + 0, (values[index] ?? NaN) + 0),
    );
    if (wrong >= 0)
      throw new Error(`${name}[${wrong}] is ${values[wrong]}, not ${elements[wrong]}`);
  }
}
