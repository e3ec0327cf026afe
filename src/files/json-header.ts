/**
 * The JSON of a safetensors header, read as the format's own reader reads it, which is stricter than JSON.parse: that takes
 * `2.0` for 2, keeps the last of two fields of one name, and lets halves of surrogate pairs pass.
 *
 *   {"x":{"dtype":"F32","shape":[2.0],…}}                   2.0 is no whole number
 *   {"x":{"dtype":"F32","dtype":"F16","shape":[2],…}}       two fields of one name
 *
 * What may stand twice is for the caller to say: members are a list.
 */

export type JsonValue =
  | { readonly kind: "string"; readonly value: string }
  /** A number without sign, point and exponent, as 64 bits hold it. */
  | { readonly kind: "count"; readonly value: number }
  | { readonly kind: "number" | "true" | "false" | "null" }
  | { readonly kind: "array"; readonly items: readonly JsonValue[] }
  | { readonly kind: "object"; readonly members: readonly (readonly [string, JsonValue])[] };

/** What is wrong with a text, for a report. */
export class JsonSyntaxError extends Error {}

const blank = /[ \t\r\n]*/y;
const text = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;
/** As deep as the format's own reader goes. */
const deepest = 127;
const greatestCount = 2n ** 64n - 1n;

export function parseJsonHeader(source: string): JsonValue {
  let at = 0;
  const match = (form: RegExp): string | undefined => {
    form.lastIndex = at;
    const found = form.exec(source)?.[0];
    at += found?.length ?? 0;
    return found;
  };
  const unexpected = (): JsonSyntaxError => {
    const rest = source.slice(at, at + 20);
    return new JsonSyntaxError(rest === "" ? "it ends too early" : `unexpected ${rest}`);
  };
  const takes = (sign: string): boolean => {
    match(blank);
    if (source[at] !== sign) return false;
    at++;
    return true;
  };
  const string = (): string => {
    match(blank);
    const quoted = match(text);
    if (quoted === undefined) throw unexpected();
    const value = JSON.parse(quoted) as string;
    if (!isWellFormed(value)) throw new JsonSyntaxError("a text has half of a surrogate pair");
    return value;
  };
  /** What stands between brackets, with commas between. */
  const listed = <T>(close: string, item: () => T): readonly T[] => {
    const items: T[] = [];
    if (takes(close)) return items;
    do items.push(item());
    while (takes(","));
    if (!takes(close)) throw unexpected();
    return items;
  };
  const value = (depth: number): JsonValue => {
    if (depth > deepest) throw new JsonSyntaxError("it is nested too deeply");
    if (takes("{"))
      return {
        kind: "object",
        members: listed("}", () => {
          const name = string();
          if (!takes(":")) throw unexpected();
          return [name, value(depth + 1)] as const;
        }),
      };
    if (takes("[")) return { kind: "array", items: listed("]", () => value(depth + 1)) };
    if (source[at] === '"') return { kind: "string", value: string() };
    const digits = match(number);
    if (digits !== undefined && !Number.isFinite(Number(digits)))
      throw new JsonSyntaxError(`${digits} is beyond all numbers`);
    if (digits !== undefined)
      return /^\d+$/.test(digits) && BigInt(digits) <= greatestCount
        ? { kind: "count", value: Number(digits) }
        : { kind: "number" };
    const name = match(word);
    if (name === undefined) throw unexpected();
    return { kind: name as "true" | "false" | "null" };
  };
  const whole = value(1);
  match(blank);
  if (at < source.length) throw unexpected();
  return whole;
}

function isWellFormed(value: string): boolean {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(value);
}
