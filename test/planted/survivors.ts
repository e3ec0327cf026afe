/**
 * Faults that are right to go unnoticed. A list of all of them is kept in `test/golden/planted`, each with the reason that its name has here: one without a reason
 * fails, and so does one that is not in the list, or is and was found.
 */
import { expect } from "vitest";
import { expectGolden } from "../golden.ts";
import { readText } from "../source-files.ts";
import { takesAll } from "../support/sample.ts";

/** A pattern of names, and why such faults do no harm. */
export type Reason = readonly [of: RegExp, why: string];

export function expectSurvivors(
  file: string,
  reasons: readonly Reason[],
  { tried, survived }: { readonly tried: readonly string[]; readonly survived: readonly string[] },
): void {
  const lines = survived.map((name) => {
    const [, why] = reasons.find(([of]) => of.test(name)) ?? [];
    expect(why, `${name} is found by nothing, and has no reason`).toBeDefined();
    return `${name}: ${why}`;
  });
  const path = `test/golden/planted/${file}.txt`;
  if (takesAll || process.env["UPDATE_GOLDEN"] === "1") {
    expect(takesAll, "the list is written from all faults: TILEWRIGHT_CASES=all").toBe(true);
    expectGolden(path, `${lines.join("\n")}\n`);
    return;
  }
  const kept = readText(path)
    .trimEnd()
    .split("\n")
    .filter((line) => tried.some((name) => line.startsWith(`${name}: `)));
  expect(
    lines,
    `${path} is not current: TILEWRIGHT_CASES=all UPDATE_GOLDEN=1 npx vitest run test/planted`,
  ).toEqual(kept);
}
