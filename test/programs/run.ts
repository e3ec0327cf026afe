/** What every program must do on the emulator, whichever file runs it. */
import { expect, test } from "vitest";
import { isTaken } from "../support/sample.ts";
import { digest } from "./compare-bytes.ts";
import { emulateProgram, programModule } from "./emulate.ts";
import { allPrograms } from "./index.ts";
import { difference, readMeasurements } from "./measured.ts";

const measurements = readMeasurements();

export interface GroupOptions {
  /** Of how many programs one is run under another schedule. */
  readonly reordered: number;
  /** Of how many programs one is run at all, unless all are asked for. */
  readonly oneIn?: number;
}

/**
 * Tests the programs of some groups: the checks find what they should, most often nothing, exact results are those of an H200, and another
 * schedule, one of two, does not change them.
 */
export function testGroups(
  select: (group: string) => boolean,
  { reordered: every, oneIn = 1 }: GroupOptions,
): void {
  const programs = allPrograms()
    .filter(({ group }) => select(group))
    .filter((_, place) => isTaken(place, oneIn));
  test.each(programs.map((program, position) => ({ ...program, position })))("$name", (program) => {
    const module = programModule(program);
    const { output, findings } = emulateProgram(program, module, { seed: 0, checks: true });
    expect(findings).toEqual(program.finds);
    expect(difference(measurements, program, output)).toBeUndefined();
    if (program.position % every !== 0) return;
    const seed = 1 + (Math.floor(program.position / every) % 2);
    const other = emulateProgram(program, module, { seed, checks: false });
    const message = `the schedule of seed ${seed} changes the result`;
    expect(digest(other.output), message).toBe(digest(output));
  });
}
