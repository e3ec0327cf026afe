/** Files that commands read, and files and folders that they write. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { Stats } from "node:fs";
import { dirname, resolve } from "node:path";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";

export function writeFile(path: string, content: string | Uint8Array): void {
  attempt(path, () => {
    writeFileSync(path, content);
  });
}

export function makeFolder(path: string): void {
  attempt(path, () => {
    makeFolders(path);
  });
}

/** Makes a folder, and those that it lies in. Node's own way never ends where the system has none made, as in /proc. */
function makeFolders(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const parent = dirname(path);
  if (parent !== path) makeFolders(parent);
  mkdirSync(path);
}

function attempt(path: string, write: () => void): void {
  try {
    write();
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

/** What is said of a file, a folder or a stream that the system does not let be written. */
export function cannotWrite(what: string, error: unknown): TilewrightError {
  return new TilewrightError({
    code: "TW5008",
    message: `${what} cannot be written`,
    location: unknownLocation,
    expected: "a place that can be written to",
    found: error instanceof Error ? error.message : String(error),
  });
}

/** Refuses what cannot be imported: a folder, a pipe, and what is not there; `expected` is what file it should be. */
export function requireFile(path: string, expected: string): void {
  const found = requireEntry(path, expected);
  if (!found.isFile()) throw cannotRead(path, expected, "no plain file");
}

/** The bytes of a file, or of a pipe; `expected` is what file it should be. */
export function readFile(path: string, expected: string): Uint8Array {
  requireEntry(path, expected);
  return attemptToRead(path, expected, () => new Uint8Array(readFileSync(path)));
}

function requireEntry(path: string, expected: string): Stats {
  const found = attemptToRead(path, expected, () => statSync(path, { throwIfNoEntry: false }));
  if (found === undefined)
    throw new TilewrightError({
      code: "TW5003",
      message: `there is no file ${path}`,
      location: unknownLocation,
      expected,
      found: `nothing at ${resolve(path)}`,
    });
  if (found.isDirectory())
    throw new TilewrightError({
      code: "TW5003",
      message: `${path} is a folder`,
      location: unknownLocation,
      expected,
      found: "a folder",
      remedy: "name a file in the folder",
    });
  return found;
}

function attemptToRead<T>(path: string, expected: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw cannotRead(path, expected, error instanceof Error ? error.message : String(error));
  }
}

function cannotRead(path: string, expected: string, found: string): TilewrightError {
  return new TilewrightError({
    code: "TW5016",
    message: `${path} cannot be read`,
    location: unknownLocation,
    expected,
    found,
  });
}
