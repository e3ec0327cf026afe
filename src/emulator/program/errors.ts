/** Errors of loading: what the emulator cannot run is said before anything runs. */
import type { Instruction, PtxModule, SourcePosition } from "../../ptx/module.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { locationAt, unknownLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";

export function locationOf(module: PtxModule, position: SourcePosition | undefined): Location {
  const file = position === undefined ? undefined : module.files[position.file - 1];
  if (position === undefined || file === undefined) return unknownLocation;
  return locationAt(file, position.line, position.column);
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
  });
}

export function unknownName(name: string, location: Location): TilewrightError {
  return new TilewrightError({
    code: "TW8002",
    message: `${name} is not defined`,
    location,
  });
}
