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

/** Entries by their codes. Types name the codes alone: texts in them would be most of what the package declares. */
export type CodeEntries<K extends string> = { readonly [code in K]: CodeEntry };

/** Keeps the codes as literal keys while checking each entry's form. */
export function registerCodes<const K extends `TW${string}`>(
  entries: CodeEntries<K>,
): CodeEntries<K> {
  return Object.freeze(entries);
}
