/**
 * The environment's variables, read in this one place: a host that asks for permission (Deno without --allow-env) throws at each
 * one that it was not given, and a setting that may not be read is one that is not set.
 *
 *   TILEWRIGHT_TUNING=h100.jsonl     environmentValue("TILEWRIGHT_TUNING")  ->  "h100.jsonl", or undefined
 */
import process from "node:process";

/** What a variable holds; undefined where it is not set or may not be read. */
export function environmentValue(name: string): string | undefined {
  try {
    return process.env[name];
  } catch {
    return undefined;
  }
}

/** Those variables by their names, without any that are not set. */
export function environmentValues(names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = environmentValue(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
