/**
 * Functions as programs call them: what each argument is, checked before anything is done with it. A library's own
 * files call the functions themselves, often and with what they made, so the checks stand at the entry and not in them:
 *
 *   export const holders = checkedCall("holders", "TW6010", [layout, shape, element], elements.holders);
 *
 *   holders("wgmma", [64, 8], 0)     TW6010: argument 1 of holders is not a layout of registers
 */
import { refuseForeign } from "./duplicate-library.ts";
import { TilewrightError } from "./diagnostics.ts";
import type { DiagnosticCode } from "./diagnostics.ts";
import { isReadable, isRecord, optionText } from "./options.ts";
import { renamedOption } from "./renamed-options.ts";

/** What an argument must be, in words and as a test, which sees the other arguments too. */
export interface ArgumentKind {
  readonly expected: string;
  readonly holds: (value: unknown, all: readonly unknown[]) => boolean;
}

/** The function with its arguments checked, those that may be left out included. */
export function checkedCall<F extends (...values: never[]) => unknown>(
  name: string,
  code: DiagnosticCode,
  kinds: readonly ArgumentKind[],
  call: F,
): F {
  const checking = (...values: never[]): unknown => {
    for (const [position, { expected, holds }] of kinds.entries()) {
      const value: unknown = values[position];
      if (holds(value, values)) continue;
      refuseForeign(`what ${name} was given`, value);
      throw new TilewrightError({
        code,
        message: `argument ${position + 1} of ${name} is not ${expected}`,
        expected,
        found: givenText(value),
        remedy: remedyOf(expected, value),
      });
    }
    return call(...values);
  };
  // It takes what the function takes and gives what that gives.
  return checking as F;
}

/** What to write for an option by its old name, or for one that was an argument once. */
function remedyOf(expected: string, value: unknown): string | undefined {
  const known = /^\{ ([\w, ]+) \}/u.exec(expected)?.[1]?.split(", ") ?? [];
  const [first] = known;
  if (typeof value === "number" && first !== undefined) return `write { ${first}: ${value} }`;
  if (!isRecord(value) || !isReadable(value, [])) return undefined;
  for (const name of Object.keys(value)) {
    const now = known.includes(name) ? undefined : renamedOption(name, known);
    if (now !== undefined) return `write ${now} for ${name}`;
  }
  return undefined;
}

/** What was given, in words; of a record the names, one of which may be misspelt. */
function givenText(value: unknown): string {
  const isNamed = isRecord(value) && isReadable(value, []) && Object.keys(value).length > 0;
  return isNamed ? `{ ${Object.keys(value).join(", ")} }` : optionText(value);
}

/** The fields of an object; none where reading them throws, as a proxy or a getter may. */
export function fieldsOf(
  value: unknown,
  names: readonly string[],
): { readonly [name: string]: unknown } {
  const isObject = typeof value === "object" && value !== null;
  if (!isObject || !isReadable(value, names)) return {};
  return value as { readonly [name: string]: unknown };
}

export function isWhole(least: number, most = Number.MAX_SAFE_INTEGER) {
  return (value: unknown): boolean =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

export function isListOf(holds: (value: unknown) => boolean) {
  return (value: unknown): boolean => Array.isArray(value) && value.every(holds);
}

/** The same, or nothing. */
export function optional({ expected, holds }: ArgumentKind): ArgumentKind {
  return {
    expected: `${expected}, or nothing`,
    holds: (value, all) => value === undefined || holds(value, all),
  };
}

export const functionKind: ArgumentKind = {
  expected: "a function",
  holds: (value) => typeof value === "function",
};
