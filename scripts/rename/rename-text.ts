/** One program's text, renamed by the rows of `docs/renames.json`. */
import { bind } from "./bindings.ts";
import { Edits } from "./edits.ts";
import type { Renamed } from "./edits.ts";
import { renameNames } from "./names.ts";
import { renameOptions } from "./options.ts";
import type { Rename } from "./table.ts";

/** A program that cannot be read: the line and what is wrong there. */
export class Unreadable extends Error {}

const mentionsPackage = /["'`]tilewright(?:\/[a-z]+)?["'`]/u;

/** `fileName` says by its ending which language the text is in. */
export function renameText(fileName: string, text: string, rows: readonly Rename[]): Renamed {
  const bindings = bind(fileName, text);
  if (bindings.mistake !== undefined) throw new Unreadable(bindings.mistake);
  const edits = new Edits(bindings.source);
  if (mentionsPackage.test(text)) {
    renameNames(bindings, rows, edits);
    renameOptions(bindings, rows, edits);
  }
  return edits.finish();
}
