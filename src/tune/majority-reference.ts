/**
 * Who says which results are right. Without a reference, and without a choice that the operation trusts, the choices do: what more than
 * half of them agree on. Which of them the model thinks fastest is no reason to believe it.
 *
 *   a, b, d  give 1 2 3      three of five agree: they are right, and the others wrong
 *   c, e     give 1 2 4
 *
 *   a        gives 1 2 3     nobody is right: no choice is kept, and the report says why
 *   b        gives 1 2 4
 */
import type { Judge } from "../device/tuning/line.ts";
import type { Candidate } from "./candidate.ts";

/** What results were held against, and in words. */
export interface Verdict {
  /** "undecided" where no result was right, so that no choice is kept. */
  readonly by: Judge | "undecided";
  /** The same in words. */
  readonly text: string;
}

export const byReference: Verdict = { by: "reference", text: "results are those of the reference" };

export const byTrusted: Verdict = {
  by: "trusted",
  text: "no reference: results are those of the choice that the operation trusts",
};

/** Candidates whose results are the same. */
export interface Group {
  readonly candidates: readonly Candidate[];
}

/** What follows from the groups, of which there is one at least; `isComplete` says whether every candidate has run. */
export function verdictOf<G extends Group>(
  groups: readonly G[],
  isComplete: boolean,
): { readonly verdict: Verdict; readonly right: G | undefined } {
  const counts = groups.map(({ candidates }) => candidates.length).sort((a, b) => b - a);
  const all = counts.reduce((sum, count) => sum + count, 0);
  const undecided = (why: string) => ({
    verdict: { by: "undecided", text: `no reference, and ${why}: none is kept` } as const,
    right: undefined,
  });
  const right = groups.find(({ candidates }) => 2 * candidates.length > all);
  if (right === undefined)
    return undecided(
      `no result that more than half of the ${all} choices agree on (${counts.join(", ")})`,
    );
  if (all > 1) {
    const text = `no reference: ${right.candidates.length} of ${all} choices agree on the results`;
    return { verdict: { by: "majority", text }, right };
  }
  if (!isComplete) return undecided("time was over before a second choice ran");
  const text = "no reference, and one choice alone ran: nobody has checked its results";
  return { verdict: { by: "alone", text }, right };
}
