/**
 * Whatever a program prints, throws or returns, as text. Programs make values that have none of their own: objects in circles, getters
 * and `toString` that throw, `null` where an error is expected. None of them may keep a run from being reported.
 */

/** Longer texts are cut: nobody reads them, and the page lays all of them out. */
const longest = 20_000;

/** The value as text, at most so many characters of it. */
export function textOf(value: unknown, most = longest): string {
  const text = attempt(() => spelled(value)) ?? attempt(() => String(value)) ?? "(without a text)";
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** What an error says of itself, as the text that it should be. */
export function fieldOf(error: Error, field: "name" | "message" | "stack"): string {
  const value = attempt<unknown>(() => error[field]);
  return value === undefined ? "" : textOf(value);
}

function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

/** Typed arrays are shown by their first elements. */
const shownElements = 32;

function spelled(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value instanceof Error) return fieldOf(value, "message");
  if (typeof value !== "object" || value === null) return String(value);
  if (ArrayBuffer.isView(value)) return elementsText(value);
  // JSON has no text for what is not data; the call says undefined then, whatever its type says.
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === "bigint" ? `${each}n` : ArrayBuffer.isView(each) ? elementsText(each) : each,
  ) as string | undefined;
}

function elementsText(view: ArrayBufferView): string {
  const { length = 0 } = view as { readonly length?: number };
  const items = Array.from({ length: Math.min(length, shownElements) }, (_, index) =>
    String((view as unknown as ArrayLike<number | bigint>)[index]),
  );
  return `[${items.join(", ")}${length > shownElements ? ", …" : ""}]`;
}
