/** What a launch found wrong, as the one error that it fails with. */
import type { TilewrightError } from "../support/diagnostics.ts";

/** One error that stands for all findings of a launch: the first, with a note for each other one. */
export function combineFindings(
  first: TilewrightError,
  others: readonly TilewrightError[],
): TilewrightError {
  const alike = new Map<string, { readonly finding: TilewrightError; times: number }>();
  for (const finding of others) {
    const { code, summary, position } = finding;
    const key = `${position?.file}:${position?.line} ${code} ${summary}`;
    const known = alike.get(key);
    if (known === undefined) alike.set(key, { finding, times: 1 });
    else known.times += 1;
  }
  return first.withNotes(
    [...alike.values()].map(({ finding, times }) => ({
      message: `also ${finding.code}: ${finding.summary}${times === 1 ? "" : `, ${times} times`}`,
      location: finding,
    })),
  );
}
