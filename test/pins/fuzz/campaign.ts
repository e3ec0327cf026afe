/** Kernels with stated layouts, seed after seed: accepted or refused alike with each simplification on and off, with equal results. */
import type { KernelDefinition } from "tilewright";
import { TilewrightError } from "tilewright";
import { fromNumbers } from "../../../src/formats/hostarray.ts";
import { toNumbers } from "../../../src/formats/hostarray.ts";
import type { HostArray } from "../../../src/formats/hostarray.ts";
import { f32 } from "../../../src/formats/dtype.ts";
import { printKernel } from "../../../src/ir/printer.ts";
import { place } from "../../../src/lower/stages.ts";
import { simplify } from "../../../src/lower/simplify.ts";
import { passNames } from "../../../src/passes/pass-order.ts";
import type { PassName } from "../../../src/passes/pass-order.ts";
import { Random } from "../../../src/support/random.ts";
import { defaultTarget } from "../../../src/targets/target.ts";
import { runKernel } from "../../simulation.ts";
import { emulateKernel } from "../../support/emulated-kernel.ts";
import { pinnedKernel } from "./kernels.ts";

/** Passes that are left out: none, all, each one, and all but each one. */
export const choices: readonly (readonly PassName[])[] = [
  [],
  passNames,
  ...passNames.map((name) => [name]),
  ...passNames.map((name) => passNames.filter((other) => other !== name)),
];

/** One kernel in so many also runs on the emulator. */
const emulated = 10;

/** Room in registers and shared memory depends on what is simplified. */
const roomCodes: ReadonlySet<string> = new Set(["TW6103", "TW6106"]);

export interface PinTally {
  kernels: number;
  accepted: number;
  refused: number;
  /** Kernels that took too much room in some form. */
  crowded: number;
  emulated: number;
  readonly failures: { readonly seed: number; readonly why: string }[];
}

export function emptyPinTally(): PinTally {
  return { kernels: 0, accepted: 0, refused: 0, crowded: 0, emulated: 0, failures: [] };
}

export function addPinTally(sum: PinTally, more: PinTally): void {
  sum.kernels += more.kernels;
  sum.accepted += more.accepted;
  sum.refused += more.refused;
  sum.crowded += more.crowded;
  sum.emulated += more.emulated;
  sum.failures.push(...more.failures);
}

export async function tryPins(seeds: Iterable<number>): Promise<PinTally> {
  const tally = emptyPinTally();
  for (const seed of seeds) {
    tally.kernels += 1;
    try {
      await tryOne(seed, tally);
    } catch (error) {
      tally.failures.push({ seed, why: error instanceof Error ? error.message : String(error) });
    }
  }
  return tally;
}

/** "accepted", "crowded" or the code of a refusal. */
function verdict({ kernel }: KernelDefinition, without: readonly PassName[]): string {
  try {
    place(kernel, defaultTarget, { without });
    return "accepted";
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    return roomCodes.has(error.code) ? "crowded" : error.code;
  }
}

async function tryOne(seed: number, tally: PinTally): Promise<void> {
  const definition = pinnedKernel(seed);
  const forms = new Map<string, readonly PassName[]>();
  for (const without of choices) {
    const text = printKernel(simplify(definition.kernel, { without }));
    if (!forms.has(text)) forms.set(text, without);
  }
  const different = [...forms.values()];
  const verdicts = different.map((without) => verdict(definition, without));
  const decided = new Set(verdicts.filter((each) => each !== "crowded"));
  if (decided.size > 1)
    throw new Error(
      different.map((without, index) => `${verdicts[index]} without ${without.join()}`).join("\n"),
    );
  const [what = "crowded"] = decided;
  if (verdicts.includes("crowded")) tally.crowded += 1;
  if (what === "accepted") tally.accepted += 1;
  else if (what !== "crowded") tally.refused += 1;
  const inputs = inputsOf(definition, seed);
  const expected = await simulated(definition, inputs, passNames);
  // Kernels that read alike place and run alike.
  for (const without of different) {
    const found = await simulated(definition, inputs, without);
    if (found !== expected) throw new Error(`other results without ${without.join()}`);
  }
  if (seed % emulated !== 0) return;
  for (const without of choices.slice(0, 2)) {
    if (verdict(definition, without) !== "accepted") continue;
    tally.emulated += 1;
    const { results, findings } = emulateKernel(definition, inputs, { without });
    if (findings.length > 0) throw new Error(`the emulator reports ${findings[0]?.message}`);
    if (textOf(results) !== expected)
      throw new Error(`other results on the emulator without ${without.join()}`);
  }
}

type Arrays = { readonly [name: string]: HostArray };

function inputsOf({ kernel }: KernelDefinition, seed: number): Arrays {
  const random = new Random(seed + 1);
  return Object.fromEntries(
    kernel.parameters.flatMap(({ role, name, value: { type } }) => {
      if (role !== "input" || type.kind !== "ref") return [];
      const shape = type.shape.map(Number);
      const count = shape.reduce((product, extent) => product * extent, 1);
      const numbers = Array.from({ length: count }, () => random.below(7) - 3);
      return [[name, fromNumbers(f32, shape, numbers)] as const];
    }),
  );
}

async function simulated(
  { kernel }: KernelDefinition,
  inputs: Arrays,
  without: readonly PassName[],
): Promise<string> {
  const { results, findings } = await runKernel({ kernel: simplify(kernel, { without }) }, inputs);
  if (findings.length > 0) throw new Error(`the simulator reports ${findings[0]?.message}`);
  return textOf(results);
}

function textOf(results: Arrays): string {
  const names = Object.keys(results).sort();
  return names
    .map((name) => {
      const array = results[name];
      return array === undefined ? "" : `${name} ${[...toNumbers(array)].join()}`;
    })
    .join("\n");
}
