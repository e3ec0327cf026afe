/**
 * Kernels of other compilers run on the emulator: right results, no finding, whatever the schedule. Each runs under two
 * schedules, the second of which is one of two; under all three where all cases are asked for.
 */
import { describe, expect, test } from "vitest";
import { readText } from "../source-files.ts";
import { takesAll } from "../support/sample.ts";
import { runOnEmulator } from "./emulation.ts";
import { arithmeticCases } from "./nvcc-arithmetic.ts";
import { collectiveCases } from "./nvcc-collective.ts";
import { packedCases } from "./nvcc-packed.ts";
import { runtimeCases } from "./nvcc-runtime.ts";
import { tritonCases } from "./triton.ts";
import { descriptorCases } from "./triton-descriptors.ts";

const all = [
  ...collectiveCases,
  ...arithmeticCases,
  ...runtimeCases,
  ...packedCases,
  ...tritonCases,
  ...descriptorCases,
].map((foreign, place) => ({ ...foreign, seeds: takesAll ? [0, 1, 2] : [0, 1 + (place % 2)] }));

describe.each(all)("$file", (foreign) => {
  const path = `test/fixtures/ptx/${foreign.file}`;
  const text = readText(path);

  test.each(foreign.seeds)("seed %d", (seed) => {
    const { findings, results } = runOnEmulator(text, path, foreign, seed);
    expect(findings.map(({ message }) => message)).toEqual([]);
    foreign.check(results);
  });
});
