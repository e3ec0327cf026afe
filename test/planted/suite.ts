/** Runs a table of kernels: each clean as it stands, each of its bugs caught, under every seed. */
import { describe, expect, test } from "vitest";
import { runOnEmulator } from "../foreign/emulation.ts";
import { takesAll } from "../support/sample.ts";
import { planted } from "./planted.ts";
import type { PlantedKernel } from "./planted.ts";

const seeds = takesAll ? [0, 1, 2, 3, 4, 5, 6, 7] : [0, 1, 2, 3];

function isRight(kernel: PlantedKernel, results: Parameters<PlantedKernel["check"]>[0]): boolean {
  try {
    kernel.check(results);
    return true;
  } catch {
    return false;
  }
}

export function definePlantedTests(kernels: readonly PlantedKernel[]): void {
  describe.each(kernels)("$name", (kernel) => {
    test.each(seeds)("is right and clean as it stands, seed %d", (seed) => {
      const { findings, results } = runOnEmulator(kernel.text, `${kernel.name}.ptx`, kernel, seed);
      expect(findings.map(({ message }) => message)).toEqual([]);
      kernel.check(results);
    });

    test.each(kernel.bugs)("$name", (bug) => {
      const text = planted(kernel, bug);
      const codes = bug.caught === "result" ? [] : [bug.caught].flat();
      for (const seed of seeds) {
        const { codes: found, results } = runOnEmulator(text, `${kernel.name}.ptx`, kernel, seed);
        if (bug.caught === "result") {
          expect(found, `seed ${seed}`).toEqual([]);
          expect(isRight(kernel, results), `seed ${seed}`).toBe(false);
        } else
          expect(
            codes.some((code) => found.includes(code)),
            `seed ${seed}: ${found.join(" ")}`,
          ).toBe(true);
      }
    });
  });
}
