/** What every program must do on the emulator, whichever file runs it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { digest, exactBytes } from "./compare-bytes.ts";
import { emulateProgram, programModule } from "./emulate.ts";
import { allPrograms } from "./index.ts";

/** Digests of what an H200 gave, by program. */
const measured = JSON.parse(readFileSync(new URL("h200.json", import.meta.url), "utf8")) as {
  readonly digests: { readonly [program: string]: string };
};
const digests = new Map(Object.entries(measured.digests));

/**
 * Tests the programs of some groups: the checks find nothing, exact results are those of an H200, and
 * no schedule changes them. `every` says of how many programs one is run under more schedules.
 */
export function testGroups(select: (group: string) => boolean, every = 1): void {
  const programs = allPrograms().filter(({ group }) => select(group));
  test.each(programs.map((program, position) => ({ ...program, position })))("$name", (program) => {
    const module = programModule(program);
    const { output, findings } = emulateProgram(program, module, { seed: 0, checks: true });
    expect(findings).toEqual([]);
    expect(digest(exactBytes(program, output)), "an H200 gives other bytes").toBe(
      digests.get(program.name),
    );
    if (program.position % every !== 0) return;
    for (const seed of [1, 2]) {
      const other = emulateProgram(program, module, { seed, checks: false });
      const message = `the schedule of seed ${seed} changes the result`;
      expect(digest(other.output), message).toBe(digest(output));
    }
  });
}
