/**
 * Locations in program text, as JAX prints them with debug information. Of the tree of places, an op
 * keeps what people ask for: the name they know, and the innermost place in a file.
 *
 *   loc("jit(f)/add"(callsite("f"("model.py":3:4) at "main.py":9:1)))
 *     -> name "jit(f)/add", position model.py:3:4
 */
import type { Position } from "../../support/location.ts";
import { quoted } from "./scanner.ts";
import type { Scanner } from "./scanner.ts";

export interface TextLocation {
  readonly name: string;
  readonly position: Position | undefined;
}

const unknown: TextLocation = Object.freeze({ name: "", position: undefined });

export type LocationAliases = (name: string) => TextLocation | undefined;

/** What stands between `loc(` and `)`. */
function parseLocation(scanner: Scanner, aliases: LocationAliases): TextLocation {
  return scanner.nested(() => parseNestedLocation(scanner, aliases));
}

function parseNestedLocation(scanner: Scanner, aliases: LocationAliases): TextLocation {
  const recurse = (): TextLocation => parseLocation(scanner, aliases);
  if (scanner.accept("unknown")) return unknown;
  if (scanner.accept("callsite")) {
    scanner.expect("(");
    const callee = recurse();
    scanner.expect("at");
    recurse();
    scanner.expect(")");
    return callee;
  }
  if (scanner.accept("fused")) {
    if (scanner.sees("<")) scanner.balanced("<");
    const parts = scanner.list("[", "]", recurse);
    return {
      name: parts.find(({ name }) => name !== "")?.name ?? "",
      position: parts.find(({ position }) => position !== undefined)?.position,
    };
  }
  if (scanner.sees("#")) {
    const name = scanner.match(/#[\w$.-]+/y) ?? "";
    if (scanner.sees("<")) scanner.balanced("<");
    return aliases(name.slice(1)) ?? unknown;
  }
  return parseNamed(scanner, recurse);
}

function parseNamed(scanner: Scanner, recurse: () => TextLocation): TextLocation {
  const text = scanner.string();
  if (scanner.accept(":")) {
    const line = scanner.integer();
    scanner.expect(":");
    const column = scanner.integer();
    if (scanner.accept("to")) scanner.match(/(?:\d+)?\s*:\s*\d+/y);
    return { name: "", position: { file: text, line, column } };
  }
  if (!scanner.sees("(")) return { name: text, position: undefined };
  const [inner = unknown] = scanner.list("(", ")", recurse);
  return { name: text, position: inner.position };
}

/** A trailing `loc(…)`, where there is one. */
export function parseTrailingLocation(
  scanner: Scanner,
  aliases: LocationAliases,
): TextLocation | undefined {
  if (!scanner.seesPattern(/loc\s*\(/y)) return undefined;
  scanner.expect("loc");
  return scanner.list("(", ")", () => parseLocation(scanner, aliases))[0];
}

export function locationText({ name, position }: TextLocation): string {
  const place =
    position === undefined
      ? undefined
      : `${quoted(position.file)}:${position.line}:${position.column}`;
  if (name === "") return `loc(${place ?? "unknown"})`;
  return place === undefined ? `loc(${quoted(name)})` : `loc(${quoted(name)}(${place}))`;
}
