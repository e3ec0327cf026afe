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

/** What JavaScript must have for an attribute of each form; whether its value makes sense is inferred. */
const formKinds: { readonly [F in AttributeForm]: readonly [string, (item: unknown) => boolean] } =
  {
    integer: ["a number", (item) => typeof item === "number"],
    integers: ["a list of numbers", (item) => isListOf(item, "number")],
    text: ["a text", (item) => typeof item === "string"],
    texts: ["a list of texts", (item) => isListOf(item, "string")],
    flag: ["true or false", (item) => typeof item === "boolean"],
    literal: ["a plain value", (item) => ["number", "bigint", "boolean"].includes(typeof item)],
    dtype: ["a number format, such as f32", (item) => formats.has(item)],
    size: ["a size", isSizeKind],
    sizes: ["a list of sizes", (item) => Array.isArray(item) && item.every(isSizeKind)],
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
  for (const { name, slot } of attributeSlotsOf(opTable[kind])) {
    const { form, optional } = slot;
    const [expected, holds] = formKinds[form ?? "text"];
    const item = values[name];
    if (holds(item) || (optional && item === undefined)) continue;
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
  }
}
