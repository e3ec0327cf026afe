/** Bugs planted in correct PTX: the emulator finds every one of them under every seed. */
import { describe, expect, test } from "vitest";
import { runOnEmulator } from "../foreign/emulation.ts";
import { hasPtxas, assemble } from "../ptxas.ts";
import { collectiveKernels } from "./collective.ts";
import { copyKernels } from "./copies.ts";
import { memoryKernels } from "./memory.ts";
import { planted } from "./planted.ts";
import type { PlantedKernel } from "./planted.ts";

const kernels = [...memoryKernels, ...copyKernels, ...collectiveKernels];
const seeds = [0, 1, 2, 3, 4, 5, 6, 7];

function isRight(kernel: PlantedKernel, results: Parameters<PlantedKernel["check"]>[0]): boolean {
  try {
    kernel.check(results);
    return true;
  } catch {
    return false;
  }
}

test("there are enough bugs, each with a name of its own", () => {
  const names = kernels.flatMap(({ bugs }) => bugs.map(({ name }) => name));
  expect(new Set(names).size).toBe(names.length);
  expect(names.length).toBeGreaterThanOrEqual(30);
});

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

test.skipIf(!hasPtxas)("all of it is PTX that assembles", () => {
  const texts = kernels.flatMap((kernel) => [
    kernel.text,
    ...kernel.bugs.map((bug) => planted(kernel, bug)),
  ]);
  const [header = ""] = texts[0]?.split(".visible") ?? [];
  const entries = texts.map((text, index) =>
    text.slice(header.length).replace(/\.entry (\w+)/, `.entry $1_${index}`),
  );
  expect(assemble(header + entries.join("\n"), "sm_90a")).not.toMatch(/error|fatal/);
});
