/** Keeps an op family's entries as literal types while checking their form. */
import type { OpSchema } from "../schema.ts";

export function defineOps<const T extends { readonly [kind: string]: OpSchema }>(entries: T): T {
  return Object.freeze(entries);
}
