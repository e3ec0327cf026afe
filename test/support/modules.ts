/**
 * Lets Node load TypeScript itself, before a process loads its first file of tests (`erase-types.mjs`). Stacks are Node's
 * own, too: the runner maps every frame back to a source, of which nothing here differs, and the compiler asks every op
 * where the user wrote it.
 */
import { register } from "node:module";

// This file runs before every file of tests, in a process that they share.
const host = globalThis as { erasesTypes?: true };
if (host.erasesTypes === undefined) {
  host.erasesTypes = true;
  register("./erase-types.mjs", import.meta.url);
  delete (Error as { prepareStackTrace?: unknown }).prepareStackTrace;
}
