/**
 * Options of public functions, by name. Types say which there are, but a program whose types were
 * erased still runs, and there a misspelt option would simply be ignored:
 *
 *   barrier({ arivals: 3 })    unknown option arivals of barrier; did you mean arrivals?
 */
import { TilewrightError } from "./diagnostics.ts";
import type { DiagnosticCode } from "./diagnostics.ts";
import type { Location } from "./location.ts";
import { renamedOption, renamedValue } from "./renamed-options.ts";

/** Refuses what is not an object of the `known` names; `what` is who takes it: "barrier". */
export function requireKnownOptions(
  what: string,
  options: unknown,
  known: readonly string[],
  code: DiagnosticCode,
  location: Location,
): void {
  if (!isRecord(options) || !isReadable(options, known)) {
    const message = `the options of ${what} are not an object with names`;
    const found = optionText(options);
    throw new TilewrightError({ code, message, location, expected: namesText(known), found });
  }
  for (const name of Object.keys(options)) {
    if (known.includes(name)) {
      refuseOldValue(what, name, options[name], code, location);
      continue;
    }
    const now = renamedOption(name, known);
    if (now !== undefined)
      throw new TilewrightError({
        code,
        message: `unknown option ${name} of ${what}, which is called ${now}`,
        location,
        expected: namesText(known),
        found: name,
        remedy: `write ${now}`,
      });
    const meant = nearestName(name, known, wrongOfFew);
    throw new TilewrightError({
      code,
      message: `unknown option ${name} of ${what}${didYouMean(name, known, wrongOfFew)}`,
      location,
      expected: namesText(known),
      found: name,
      remedy: meant === undefined ? undefined : `write ${meant}`,
    });
  }
}

/** Refuses a value that has another name now. */
export function refuseOldValue(
  what: string,
  name: string,
  value: unknown,
  code: DiagnosticCode,
  location: Location,
): void {
  const now = renamedValue(name, value);
  if (now === undefined) return;
  throw new TilewrightError({
    code,
    message: `${name} ${JSON.stringify(value)} of ${what} is called ${JSON.stringify(now)}`,
    location,
    expected: `${name}: ${JSON.stringify(now)}`,
    found: optionText(value),
    remedy: `write ${JSON.stringify(now)}`,
  });
}

function namesText(known: readonly string[]): string {
  return `{ ${known.join(", ")} }`;
}

/** Whether reading these fields throws nothing, as a proxy or a getter may. */
export function isReadable(value: object, names: readonly string[]): boolean {
  try {
    Object.keys(value);
    // A proxy that refuses to be read refuses any name.
    Reflect.get(value, Symbol.toStringTag);
    for (const name of names) Reflect.get(value, name);
    return true;
  } catch {
    return false;
  }
}

/** Whether a value is an object with names, and neither a list nor an instance of a class. */
export function isRecord(options: unknown): options is { readonly [name: string]: unknown } {
  if (typeof options !== "object" || options === null) return false;
  const prototype: unknown = Object.getPrototypeOf(options);
  return prototype === Object.prototype || prototype === null;
}

/** Refuses a name or a label that is no text. */
export function requireText(what: string, value: unknown): void {
  if (typeof value === "string") return;
  throw new TilewrightError({
    code: "TW4023",
    message: `${what} cannot be ${optionText(value)}`,
    expected: "a text",
    found: optionText(value),
    remedy: "write it in quotes",
  });
}

/** The value of an option in words, for messages. */
export function optionText(value: unknown): string {
  if (typeof value === "string") return `the text ${JSON.stringify(value)}`;
  if (typeof value === "function") return "a function";
  if (Array.isArray(value)) return listText(value);
  if (ArrayBuffer.isView(value)) return `a ${value.constructor.name}`;
  if (typeof value === "object" && value !== null)
    return formatName(value) ?? arrayName(value) ?? "an object";
  return typeof value === "bigint" ? `${value}n` : String(value);
}

/** Elements of a list that a message shows. */
const shownElements = 8;

/** A list of a few numbers and texts as it is written. */
function listText(list: readonly unknown[]): string {
  const isShown = (each: unknown): boolean => typeof each === "number" || typeof each === "string";
  if (list.length === 0 || list.length > shownElements || !list.every(isShown)) return "a list";
  return `[${list.map((each) => (typeof each === "string" ? JSON.stringify(each) : each)).join(", ")}]`;
}

/** An array by its format and shape: arrays of programs name their format, those of the host have it as an object. */
function arrayName(value: object): string | undefined {
  if (!isReadable(value, ["dtype", "shape"]) || !("dtype" in value) || !("shape" in value))
    return undefined;
  const { dtype, shape } = value;
  const name = typeof dtype === "string" ? `the dtype ${dtype}` : optionText(dtype);
  return name.startsWith("the dtype ") && Array.isArray(shape)
    ? `${name.slice("the dtype ".length)} of shape ${listText(shape)}`
    : undefined;
}

/** What a dtype is called: this folder is below formats, and knows them by their fields. */
function formatName(value: object): string | undefined {
  if (!isReadable(value, ["name", "bits"]) || !("name" in value) || !("bits" in value))
    return undefined;
  const { name, bits } = value;
  return typeof name === "string" && typeof bits === "number" ? `the dtype ${name}` : undefined;
}

/** Letters of a name that may be wrong: the options of one call are few, the ops of a dialect many. */
const wrongOfFew = 1 / 2;
const wrongOfMany = 1 / 4;

/** The name that was probably meant: one that begins alike, or that few changes lead to. */
export function nearestName(
  name: string,
  known: readonly string[],
  wrong = wrongOfMany,
): string | undefined {
  // Nobody mistypes so much, and comparing takes time for each pair of letters.
  if (name.length > longestName) return undefined;
  const candidates = known
    .map((other) => ({ other, distance: nameDistance(name.toLowerCase(), other.toLowerCase()) }))
    .filter(({ other, distance }) => distance <= mostWrong(name, other, wrong))
    .sort((left, right) => left.distance - right.distance);
  return candidates[0]?.other;
}

const longestName = 100;

/** How far apart two names may be: one letter of any that has more. */
function mostWrong(name: string, other: string, wrong: number): number {
  const length = Math.max(name.length, other.length);
  return Math.max(length > 1 ? 1 : 0, length * wrong);
}

/** `; did you mean add?`, where one of the known names is near. */
export function didYouMean(name: string, known: readonly string[], wrong = wrongOfMany): string {
  const meant = nearestName(name, known, wrong);
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}

/** How many letters must be put in, taken out, replaced, or swapped with the next; none for an abbreviation. */
function nameDistance(left: string, right: string): number {
  if (left.length > 1 && right.startsWith(left)) return 0;
  let before: readonly number[] = [];
  let row = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (const [index, letter] of [...left].entries()) {
    const next = [index + 1];
    for (const [column, other] of [...right].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      const isSwapped = letter === right[column - 1] && left[index - 1] === other;
      const swapped = isSwapped ? (before[column - 1] ?? Infinity) + 1 : Infinity;
      next.push(Math.min(replaced, swapped, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row[right.length] ?? 0;
}
