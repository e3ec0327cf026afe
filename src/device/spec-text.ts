/**
 * What a function of the library was given, as text: equal texts stand for equal specifications. It is how a plan is found that an
 * earlier process compiled, so there is a text only where it says everything.
 *
 *   { a: bf16, b: tensor(bf16, [k, n], { strides: [1, k] }) }   {"a":dtype bf16,"b":{"kind":"array", … }}
 *   { a: bf16, b: bf16, epilogue: ({ sums }) => … }            none: what a function has captured shows only when it is traced
 *
 * Fields keep their order, which may be the order of a kernel's parameters.
 */
import { dtypes } from "../formats/dtype.ts";
import { isLaunchSize } from "../lang/sizes.ts";

const formatNames: ReadonlyMap<unknown, string> = new Map(
  Object.values(dtypes).map((dtype) => [dtype, dtype.name]),
);

/** Deeper than any specification; what contains itself has no text. */
const mostLevels = 16;

/** Undefined where a value is anything but plain data. */
export function specText(value: unknown, levels = mostLevels): string | undefined {
  const format = formatNames.get(value);
  if (format !== undefined) return `dtype ${format}`;
  switch (typeof value) {
    case "string":
      return JSON.stringify(value);
    case "number":
      return Object.is(value, -0) ? "-0" : String(value);
    case "bigint":
      return `${value}n`;
    case "boolean":
    case "undefined":
      return String(value);
    case "object":
      return levels === 0 ? undefined : objectText(value, levels - 1);
    case "function":
    case "symbol":
      return undefined;
  }
}

function objectText(value: object | null, levels: number): string | undefined {
  if (value === null) return "null";
  if (Array.isArray(value)) {
    const items = Array.from(value, (item: unknown) => specText(item, levels));
    return items.includes(undefined) ? undefined : `[${items.join()}]`;
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  const isPlain = prototype === Object.prototype || prototype === null || isLaunchSize(value);
  if (!isPlain) return undefined;
  const fields: string[] = [];
  for (const [name, field] of Object.entries(Object.getOwnPropertyDescriptors(value))) {
    // A field that is computed may say something else next time.
    const text = "value" in field ? specText(field.value, levels) : undefined;
    if (text === undefined) return undefined;
    fields.push(`${JSON.stringify(name)}:${text}`);
  }
  return Object.getOwnPropertySymbols(value).length > 0 ? undefined : `{${fields.join()}}`;
}
