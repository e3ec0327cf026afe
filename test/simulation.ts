/** Runs kernels in the simulator directly, for tests of the simulator itself. */
import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { allocateElements, packedBytes } from "../src/formats/dtype.ts";
import type { HostValue, Elements } from "../src/formats/dtype.ts";
import { hostArray, toNumbers } from "../src/formats/hostarray.ts";
import { elementCount } from "../src/formats/shape.ts";
import type { HostArray } from "../src/formats/hostarray.ts";
import type { Kernel } from "../src/ir/node.ts";
import { evaluateSize } from "../src/ir/size.ts";
import { simulate } from "../src/sim/index.ts";
import type { SimulatedBuffer, SimulationOptions, SimulationResult } from "../src/sim/index.ts";

export interface RunOptions extends SimulationOptions {
  readonly dimensions?: { readonly [name: string]: number };
}

export interface Run extends SimulationResult {
  /** Outputs and in-out arrays after the run. */
  readonly results: { readonly [name: string]: HostArray };
  readonly printed: readonly string[];
  /** The elements of a result as numbers. */
  numbers(name: string): readonly number[];
}

export async function runKernel(
  { kernel }: { readonly kernel: Kernel },
  inputs: { readonly [name: string]: HostArray | HostValue } = {},
  options: RunOptions = {},
): Promise<Run> {
  const dimensions = new Map(Object.entries(options.dimensions ?? {}));
  const arrays = new Map<string, SimulatedBuffer>();
  const scalars = new Map<string, HostValue>();
  const results: { [name: string]: HostArray } = {};
  for (const { name, role, value } of kernel.parameters) {
    const given = inputs[name];
    if (value.type.kind !== "ref") {
      if (given === undefined || typeof given === "object") throw new Error(`no scalar ${name}`);
      scalars.set(name, given);
      continue;
    }
    const { dtype } = value.type;
    const shape = value.type.shape.map((size) => evaluateSize(size, dimensions));
    const data: Elements =
      typeof given === "object"
        ? given.data.slice()
        : dtype.bits === 4
          ? new Uint8Array(packedBytes(dtype, elementCount(shape)))
          : allocateElements(dtype, elementCount(shape));
    arrays.set(name, { dtype, data, initialised: given !== undefined });
    if (role !== "input") results[name] = hostArray(dtype, shape, data as never);
  }
  const printed: string[] = [];
  const { findings, statistics } = await simulate(
    kernel,
    { arrays, scalars, dimensions },
    { onPrint: (line) => printed.push(line), ...options },
  );
  return {
    findings,
    statistics,
    results,
    printed,
    numbers(name) {
      const array = results[name];
      if (array === undefined) throw new Error(`no result ${name}`);
      return [...toNumbers(array)];
    },
  };
}

/** Codes of what a run found. */
export function codesOf({ findings }: SimulationResult): readonly string[] {
  return findings.map(({ code }) => code);
}

/** Schedules that a clean kernel must pass and a broken one must not. */
export const schedules: readonly SimulationOptions[] = [
  { schedule: "fixed" },
  ...[1, 2, 3].map((seed) => ({ schedule: "random", seed }) as const),
  ...[1, 2, 3].map((seed) => ({ schedule: "adversarial", seed }) as const),
];

export interface Expectation {
  readonly code: string;
  /** Comments at the end of lines that the report names, among others. */
  readonly marks?: readonly string[];
  readonly text?: RegExp;
}

interface FindingTools {
  /** The number of the only line that ends with the comment. */
  lineOf(mark: string): number;
  /** Every schedule finds the one mistake, on the same lines. */
  expectFinding(
    definition: { readonly kernel: Kernel },
    inputs: { readonly [name: string]: HostArray | HostValue },
    expectation: Expectation,
    options?: RunOptions,
  ): Promise<void>;
}

/** Lines that the run's first finding names. */
function linesOf({ findings: [finding] }: Run): readonly number[] {
  const places = [finding?.position, ...(finding?.notes ?? []).map(({ position }) => position)];
  return places.flatMap((place) => (place === undefined ? [] : [place.line]));
}

/** Tools for tests of reports, which name lines of the test file itself. */
export function findingsOf(testFile: string): FindingTools {
  const lines = readFileSync(new URL(testFile), "utf8").split("\n");
  const lineOf = (mark: string): number => {
    const found = lines.flatMap((line, index) => (line.endsWith(`// ${mark}`) ? [index + 1] : []));
    if (found.length !== 1) throw new Error(`${found.length} lines are marked ${mark}`);
    return found[0] ?? 0;
  };
  return {
    lineOf,
    async expectFinding(definition, inputs, { code, marks = [], text = /./ }, options = {}) {
      for (const schedule of schedules) {
        const run = await runKernel(definition, inputs, { ...schedule, ...options });
        const label = `${schedule.schedule} ${schedule.seed}: ${run.findings.join("\n")}`;
        expect(codesOf(run), label).toEqual([code]);
        expect(linesOf(run), label).toEqual(expect.arrayContaining(marks.map(lineOf)));
        expect(run.findings[0]?.message).toMatch(text);
      }
    },
  };
}
