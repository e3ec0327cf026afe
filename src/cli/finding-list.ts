/**
 * Findings of many runs, each kept once. Schedules report the same mistake with other blocks, iterations
 * and order of the two accesses; the code and the lines involved tell mistakes apart.
 */
import type { TilewrightError } from "../support/diagnostics.ts";
import { formatPosition } from "../support/location.ts";

export class FindingList {
  readonly #findings = new Map<string, TilewrightError>();

  get findings(): readonly TilewrightError[] {
    return [...this.#findings.values()];
  }

  /** Adds those not yet known, with notes, and gives them. */
  addAll(
    findings: readonly TilewrightError[],
    notes: readonly string[],
  ): readonly TilewrightError[] {
    return findings.flatMap((finding) => {
      const key = identityOf(finding);
      if (this.#findings.has(key)) return [];
      const noted = finding.withNotes(notes.map((message) => ({ message })));
      this.#findings.set(key, noted);
      return [noted];
    });
  }
}

function identityOf({ code, position, notes }: TilewrightError): string {
  const places = [position, ...notes.map((note) => note.position)].map(formatPosition);
  return [code, ...new Set(places.sort())].join(" ");
}
