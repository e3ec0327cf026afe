/** Files that commands write. */
import { writeFileSync } from "node:fs";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";

export function writeText(path: string, text: string): void {
  try {
    writeFileSync(path, text);
  } catch (error) {
    throw new TilewrightError({
      code: "TW5008",
      message: `${path} cannot be written`,
      location: unknownLocation,
      found: error instanceof Error ? error.message : String(error),
    });
  }
}
