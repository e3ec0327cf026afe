/**
 * The public names that have changed: `docs/renames.json`, a row for each. The library does not read it; programs are
 * rewritten by it, the page on upgrading shows it, and a test holds it against the exports.
 *
 *   { "entry": "tilewright", "kind": "export", "old": "array", "new": "tensor", … }
 *   { "entry": "tilewright/arrays", "kind": "signature", "of": ["argmax"], "old": "(x, axis)", "new": "(x, { axis })", … }
 */
import { readFileSync } from "node:fs";

/**
 * What a row renames: a function or a value, a type, an option of the functions and types `of` (`a.b` is option b of
 * option a), a method or a field of the class `of`, what an option is set to, or where an argument stands.
 */
export type RenameKind = "export" | "type" | "option" | "method" | "value" | "signature";

export interface Rename {
  readonly entry: string;
  readonly kind: RenameKind;
  /** Functions (`argmax`, `nn.conv`, `Device.run`) and types that have the option, method or argument, by their new names. */
  readonly of: readonly string[];
  readonly old: string;
  readonly new: string;
  /** Which argument the options are, from 0; the last one unless it says. */
  readonly argument: number | undefined;
  /** The version that has the new name first. */
  readonly since: string;
}

const kinds: readonly RenameKind[] = ["export", "type", "option", "method", "value", "signature"];

/** Rows as JSON has them; what is no row throws. */
export function parseRenames(text: string): readonly Rename[] {
  const rows: unknown = JSON.parse(text);
  if (!Array.isArray(rows)) throw new Error("docs/renames.json is not a list");
  return rows.map((row: unknown) => parseRow(row));
}

function parseRow(row: unknown): Rename {
  const field = (name: string): unknown =>
    typeof row === "object" && row !== null ? Reflect.get(row, name) : undefined;
  const text = (name: string): string => {
    const value = field(name);
    if (typeof value === "string" && value !== "") return value;
    throw new Error(`docs/renames.json: ${name} is missing in ${JSON.stringify(row)}`);
  };
  const kind = kinds.find((each) => each === text("kind"));
  if (kind === undefined) throw new Error(`docs/renames.json: no kind is ${text("kind")}`);
  const of: unknown = field("of") ?? [];
  if (!Array.isArray(of)) throw new Error(`docs/renames.json: of is no list in ${text("old")}`);
  const argument = field("argument");
  return {
    entry: text("entry"),
    kind,
    of: of.map(String),
    old: text("old"),
    new: text("new"),
    argument: typeof argument === "number" ? argument : undefined,
    since: text("since"),
  };
}

/** The rows of this checkout. */
export function readRenames(): readonly Rename[] {
  return parseRenames(readFileSync(new URL("../../docs/renames.json", import.meta.url), "utf8"));
}
