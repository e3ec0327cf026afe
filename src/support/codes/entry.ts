/** The form of a registered diagnostic; see `../diagnostics.ts`. */

export interface CodeEntry {
  /** What is wrong, in a few words. */
  readonly title: string;
  /** Why it is wrong, in one to three sentences. */
  readonly cause: string;
  /** The mistake in code, as short as can be. */
  readonly example: string;
  /** What to do, as an instruction. */
  readonly remedy: string;
}

/** Keeps the codes as literal keys while checking each entry's form. */
export function registerCodes<const T extends Record<`TW${string}`, CodeEntry>>(entries: T): T {
  return Object.freeze(entries);
}
