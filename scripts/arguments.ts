/**
 * The arguments of the repository's own scripts. The comment at the top of a script describes its options, and `--help`
 * prints it, so that there is one description. What a script does not understand ends it with status 2 and the reason:
 *
 *   $ npm run bench:gpu -- --rounds many
 *   --rounds takes a whole number from 1, not "many"; --help tells the options
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { ParseArgsConfig } from "node:util";

type Options = NonNullable<ParseArgsConfig["options"]>;

/** Ends the script: its caller gave something that it does not take. */
export function refuse(reason: string): never {
  process.stderr.write(`${reason}; --help tells the options\n`);
  process.exit(2);
}

/** The first comment of a script's source, without its stars. */
export function headerComment(source: string): string {
  const comment = /^\/\*\*\n([\s\S]*?)\n \*\//u.exec(source)?.[1] ?? "";
  return comment.replaceAll(/^ \*(?: |$)/gmu, "");
}

/** What was given to the script at `url`: its options by name, and the rest as positionals. */
export function scriptArguments<const Given extends Options>(url: string, options: Given) {
  const given = process.argv.slice(2).filter((argument) => argument !== "--");
  if (given.includes("--help")) {
    process.stdout.write(`${headerComment(readFileSync(fileURLToPath(url), "utf8"))}\n`);
    process.exit(0);
  }
  try {
    return parseArgs({ args: given, allowPositionals: true, options });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

/** The same of a script that takes options alone. */
export function scriptOptions<const Given extends Options>(url: string, options: Given) {
  const { values, positionals } = scriptArguments(url, options);
  const [first] = positionals;
  return first === undefined ? values : refuse(`"${first}" is no option`);
}

/** The number that `--name` gives, at least `from`, and whole unless it need not be. */
export function numberOption(
  name: string,
  text: string,
  { from = 1, whole = true }: { readonly from?: number; readonly whole?: boolean } = {},
): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  const fits = value >= from && (!whole || Number.isInteger(value) || value === Infinity);
  const expected = `a ${whole ? "whole " : ""}number from ${from}`;
  return fits ? value : refuse(`--${name} takes ${expected}, not "${text}"`);
}

/** The name that `--name` gives, one of those that there are. */
export function namedOption<Name extends string>(
  name: string,
  text: string,
  known: readonly Name[],
): Name {
  const found = known.find((one) => one === text);
  return found ?? refuse(`--${name} takes ${known.join(", ")}, not "${text}"`);
}
