/**
 * Correct kernels, and changes of their text that plant one bug each. The kernel as it stands must run
 * clean and give the right numbers; every planted bug must be caught, whatever the seed.
 */
import type { DiagnosticCode } from "../../src/support/diagnostics.ts";
import type { Argument, Results } from "../foreign/case.ts";

/** What must happen: one of these findings, or numbers that differ. */
export type Caught = DiagnosticCode | readonly DiagnosticCode[] | "result";

export interface PlantedBug {
  readonly name: string;
  /** The text to replace, which must occur once, and what stands there instead. */
  readonly change: readonly [string, string];
  readonly caught: Caught;
}

export interface PlantedKernel {
  readonly name: string;
  readonly text: string;
  readonly blocks: readonly [number, number, number];
  readonly threads: readonly [number, number, number];
  readonly cluster?: number | undefined;
  readonly arguments: readonly Argument[];
  check(results: Results): void;
  readonly bugs: readonly PlantedBug[];
}

/** A module for sm_90a with the one entry. */
export function module(body: string): string {
  return `.version 8.3\n.target sm_90a\n.address_size 64\n\n.visible .entry ${body}\n`;
}

export function planted(kernel: PlantedKernel, bug: PlantedBug): string {
  const [from, to] = bug.change;
  if (kernel.text.split(from).length !== 2)
    throw new Error(`${kernel.name}: ${JSON.stringify(from)} does not occur once`);
  return kernel.text.replace(from, () => to);
}
