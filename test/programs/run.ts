/** What every program must do on the emulator, whichever file runs it. */
import { expect, test } from "vitest";
import { digest } from "./compare-bytes.ts";
import { emulateProgram, programModule } from "./emulate.ts";
import { allPrograms } from "./index.ts";
import { difference, readMeasurements } from "./measured.ts";

const measurements = readMeasurements();

/**
 * Tests the programs of some groups: the checks find nothing, exact results are those of an H200, and another
 * schedule, one of two, does not change them. `every` says of how many programs one is run under it.
 */
export function testGroups(select: (group: string) => boolean, every = 1): void {
  const programs = allPrograms().filter(({ group }) => select(group));
  test.each(programs.map((program, position) => ({ ...program, position })))("$name", (program) => {
    const module = programModule(program);
    const { output, findings } = emulateProgram(program, module, { seed: 0, checks: true });
    expect(findings).toEqual([]);
    expect(difference(measurements, program, output)).toBeUndefined();
    if (program.position % every !== 0) return;
    const seed = 1 + (Math.floor(program.position / every) % 2);
    const other = emulateProgram(program, module, { seed, checks: false });
    const message = `the schedule of seed ${seed} changes the result`;
    expect(digest(other.output), message).toBe(digest(output));
  });
}
