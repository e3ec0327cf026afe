/** Kernels that cannot be placed: the report names both lines, and its remedy makes them placeable. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "tilewright";
import type { KernelDefinition } from "tilewright";
import { placeKernel } from "../../src/layout/plan/place.ts";
import { refusalOf } from "../../src/lower/refusals.ts";
import { defaultTarget } from "../../src/targets/target.ts";
import { registerContradictions } from "./registers.ts";
import { sharedContradictions } from "./shared.ts";

const tables = { registers: registerContradictions, "shared memory": sharedContradictions };

function reportOf({ kernel }: KernelDefinition): TilewrightError {
  try {
    placeKernel(kernel, defaultTarget);
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the kernel was placed");
}

for (const [title, { contradictions, linesOf }] of Object.entries(tables)) {
  describe(title, () => {
    test.each(contradictions.map((entry) => [entry.name, entry] as const))(
      "%s",
      (name, { make, remedy }) => {
        const report = reportOf(make(false));
        expect(report.code).toBe("TW6101");
        const [first] = report.notes;
        const lines = [report.position?.line ?? 0, first?.position?.line ?? 0];
        expect(
          lines.sort((a, b) => a - b),
          report.message,
        ).toEqual(linesOf(name));
        expect(report.remedy).toContain(remedy);
        expect(placeKernel(make(true).kernel, defaultTarget).cost).toBeGreaterThan(0);
      },
    );
  });
}

/** Contradictions of instructions alone, about which nobody has stated anything. */
const unstated = [
  "bytes on both sides",
  "bytes and their transpose",
  "operand that starts between chunks",
];

test("a simulation tells what compiling would refuse", () => {
  const entries = Object.values(tables).flatMap(({ contradictions }) => contradictions);
  const found = entries.map(({ name, make }) => ({
    name,
    as: refusalOf(make(false).kernel, defaultTarget)?.code,
    mended: refusalOf(make(true).kernel, defaultTarget)?.code,
  }));
  const expected = entries.map(({ name }) => ({
    name,
    as: unstated.includes(name) ? undefined : "TW6101",
    mended: undefined,
  }));
  expect(found).toEqual(expected);
});

test("there are many different ones", () => {
  const names = Object.values(tables).flatMap(({ contradictions }) =>
    contradictions.map(({ name }) => name),
  );
  expect(new Set(names).size).toBeGreaterThanOrEqual(27);
});
