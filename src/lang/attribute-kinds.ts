/**
 * The attributes of an op, looked at as it is traced. Types say what each is, but a program whose types were erased
 * still runs; the op table says the same, so one check serves every function of the language:
 *
 *   tile.cast("f32")      TW1008: dtype of cast must be a number format, such as f32
 *   gridSize(0)           TW1008: axis of grid_size must be a text
 */
import { dtypes } from "../formats/dtype.ts";
import { opTable } from "../ir/ops.ts";
import type { OpKind } from "../ir/ops.ts";
import { attributeSlotsOf } from "../ir/schema.ts";
import type { AttributeForm } from "../ir/schema.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { optionText } from "../support/options.ts";

const formats = new Set<unknown>(Object.values(dtypes));

interface FormKind {
  readonly expected: string;
  readonly holds: (item: unknown) => boolean;
}

/** What JavaScript must have for an attribute of each form; whether its value makes sense is inferred. */
const formKinds: { readonly [F in AttributeForm]: FormKind } = {
  integer: { expected: "a number", holds: (item) => typeof item === "number" },
  integers: { expected: "a list of numbers", holds: (item) => isListOf(item, "number") },
  text: { expected: "a text", holds: (item) => typeof item === "string" },
  texts: { expected: "a list of texts", holds: (item) => isListOf(item, "string") },
  flag: { expected: "true or false", holds: (item) => typeof item === "boolean" },
  literal: {
    expected: "a plain value",
    holds: (item) => ["number", "bigint", "boolean"].includes(typeof item),
  },
  dtype: { expected: "a number format, such as f32", holds: (item) => formats.has(item) },
  size: { expected: "a size", holds: isSizeKind },
  sizes: {
    expected: "a list of sizes",
    holds: (item) => Array.isArray(item) && item.every(isSizeKind),
  },
};

function isListOf(item: unknown, type: string): boolean {
  return Array.isArray(item) && item.every((each) => typeof each === type);
}

function isSizeKind(item: unknown): boolean {
  return typeof item === "number" || (typeof item === "object" && item !== null);
}

/** Refuses an attribute of another kind, which only a program whose types were erased can give. */
export function requireAttributeKinds(kind: OpKind, attributes: object, location: Location): void {
  const values = attributes as { readonly [name: string]: unknown };
  attributeSlotsOf(opTable[kind]).forEach(({ name, slot: { form, optional } }) => {
    const item = values[name];
    if (optional && item === undefined) return;
    const { expected, holds } = formKinds[form ?? "text"];
    if (holds(item)) return;
    throw new TilewrightError({
      code: "TW1008",
      message: `${name} of ${kind} must be ${expected}`,
      location,
      expected,
      found: optionText(item),
      remedy:
        form === "dtype" && typeof item === "string"
          ? `import the format and give it without quotes: ${item}`
          : `give ${expected}`,
    });
  });
}
