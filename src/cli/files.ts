/** Files that commands read, and files and folders that they write. */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
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

/** Refuses a folder, and what is not there; `expected` is what file it should be. */
export function requireFile(path: string, expected: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() === true)
    throw new TilewrightError({
      code: "TW5003",
      message: `${path} is a folder`,
      location: unknownLocation,
      expected,
      found: "a folder",
      remedy: "name a file in the folder",
    });
  if (found?.isFile() !== true)
    throw new TilewrightError({
      code: "TW5003",
      message: `there is no file ${path}`,
      location: unknownLocation,
    });
}
