/** Single codes of float formats, as programs ask for them: `floats.ts` with its arguments looked at. */
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import * as floats from "./floats.ts";
import type { CodedFloatName, ConversionOptions } from "./floats.ts";

/** How many codes each format has. */
const codes: { readonly [N in CodedFloatName]: number } = {
  f32: 2 ** 32,
  tf32: 2 ** 32,
  f16: 2 ** 16,
  bf16: 2 ** 16,
  f8e4m3fn: 2 ** 8,
  f8e5m2: 2 ** 8,
  f8e8m0fnu: 2 ** 8,
  f6e2m3fn: 2 ** 6,
  f6e3m2fn: 2 ** 6,
  f4e2m1fn: 2 ** 4,
};

/** The code of the number nearest to `value`. */
export function encodeFloat(
  name: CodedFloatName,
  value: number,
  options?: ConversionOptions,
): number {
  requireCoded(name);
  if (typeof value === "number") return floats.encodeFloat(name, value, options);
  throw new TilewrightError({
    code: "TW0004",
    message: "encodeFloat takes a number",
    expected: "a number",
    found: optionText(value),
    remedy: "convert it first: Number(value)",
  });
}

/** The number that a code stands for. */
export function decodeFloat(name: CodedFloatName, code: number): number {
  requireCoded(name);
  if (Number.isInteger(code) && code >= 0 && code < codes[name])
    return floats.decodeFloat(name, code);
  throw new TilewrightError({
    code: "TW0004",
    message: `this is no code of ${name}`,
    expected: `a whole number from 0 to ${codes[name] - 1}`,
    found: optionText(code),
    remedy: "give the bits of one element",
  });
}

/** Refuses what names no format with codes, such as the format itself. */
function requireCoded(name: unknown): void {
  if (typeof name === "string" && Object.hasOwn(codes, name)) return;
  throw new TilewrightError({
    code: "TW0007",
    message: "this is no name of a float format with codes",
    expected: Object.keys(codes).join(", "),
    found: optionText(name),
    remedy: 'give the name as a text, such as "bf16"',
  });
}
