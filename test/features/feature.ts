/**
 * What the language can do, a row each, with what shows it: a page, kernels that the simulator and the emulator agree on and ptxas takes,
 * and what is refused. `docs/language-features.md` is printed from the rows; `features.test.ts` fails where a cell is empty or untrue.
 *
 *   { name: "An explicit conversion", written: ["convertLayout("], page: "layouts.md#conversions",
 *     cases: () => [{ name: "to wgmma", … }], refused: [{ code: "TW6101", by: () => … }] }
 */
import type { KernelDefinition } from "../../src/lang/index.ts";
import type { TargetName } from "../../src/targets/target.ts";
import type { Arrays } from "../matrix/case.ts";

/** A small kernel, what it is given, and what its outputs must be by an independent computation. */
export interface FeatureCase {
  readonly name: string;
  readonly kernel: () => KernelDefinition;
  readonly inputs: Arrays;
  /** Elements of each output in order of rows; of 64-bit integers as bigint. */
  readonly expected: { readonly [output: string]: readonly (number | bigint)[] };
  /** How far the emulator and the simulator may each be from what is expected, absolutely; 0 by default. NaN equals NaN. */
  readonly within?: number;
  /** What simulator and emulator stand for, of a kernel that other devices have no instructions for. */
  readonly device?: TargetName;
  /** What ptxas must take it for; sm_90a by default. */
  readonly targets?: readonly TargetName[];
}

/** A bad program. It must throw, with the code and a line of the file that wrote it. */
export interface Refusal {
  readonly code: string;
  readonly by: () => unknown;
}

export interface Feature {
  /** What it is, as the table's first column has it. */
  readonly name: string;
  /** What a user writes: each text stands in a block of code under the heading of the page. */
  readonly written: readonly string[];
  /** A page of docs and a heading on it: "language.md#atomics". */
  readonly page: string;
  /** None, with the reason, of what runs on the host alone. */
  readonly cases: (() => readonly FeatureCase[]) | { readonly none: string };
  /** None, with the reason, of what takes everything. */
  readonly refused: readonly Refusal[] | { readonly none: string };
}
