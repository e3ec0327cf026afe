/** Files and folders that commands write. */
import { mkdirSync, writeFileSync } from "node:fs";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";

export function writeFile(path: string, content: string | Uint8Array): void {
  attempt(path, () => {
    writeFileSync(path, content);
  });
}

export function makeFolder(path: string): void {
  attempt(path, () => {
    mkdirSync(path, { recursive: true });
  });
}

function attempt(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    throw new TilewrightError({
      code: "TW5008",
      message: `${path} cannot be written`,
      location: unknownLocation,
      found: error instanceof Error ? error.message : String(error),
    });
  }
}
