/** Errors of loading: what the emulator cannot run is said before anything runs. */
import type { Instruction, PtxModule } from "../../ptx/module.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";

/** The line of the source where the text tells it, and the line of the text where that has a name. */
export function locationOf(
  { source, files }: PtxModule,
  instruction: Pick<Instruction, "position" | "line"> | undefined,
): Location {
  const { position, line } = instruction ?? {};
  const file = position === undefined ? undefined : files[position.file - 1];
  const inText =
    source === undefined || line === undefined ? undefined : { file: source, line, column: 1 };
  if (position === undefined || file === undefined)
    return inText === undefined ? unknownLocation : { position: inText };
  return { position: { file, line: position.line, column: position.column }, generated: inText };
}

export function unknownInstruction(
  { opcode }: Instruction,
  location: Location,
  why?: string,
): TilewrightError {
  return new TilewrightError({
    code: "TW8001",
    message: `the emulator cannot run ${opcode}${why === undefined ? "" : `: ${why}`}`,
    location,
    expected: "an instruction that the emulator knows, see docs/emulator.md",
    found: opcode,
  });
}

export function unknownName(name: string, location: Location): TilewrightError {
  return new TilewrightError({
    code: "TW8002",
    message: `${name} is not defined`,
    location,
    expected: "a name that the module declares",
    found: name,
  });
}
