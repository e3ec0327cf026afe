/**
 * The lines of tuning files, and the fastest choice for some work among them. Tables are sets: which file comes first, and which line in it, does not
 * matter, since nobody knows it any more once files were joined and sorted.
 *
 *   two lines of one choice and the same kernels      what failed counts, else what was measured in more rounds
 *   of one choice, but of other kernels               both stay; the choice is not taken where either failed
 *   measured anew by the tuner                        lines of the kernels that there were before go
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import {
  choiceOf,
  identityOf,
  isMeasured,
  isRejected,
  isTuningLine,
  lineText,
  workText,
  wrongPart,
} from "./line.ts";
import type { MeasuredLine, TunedWork, TuningLine } from "./line.ts";

const version = 1;
const header = JSON.stringify({ tilewright: "tuning", version });

/** Measured choices of operations, which devices look in before they ask a model. */
export class TuningTable {
  /** What is known, a line for each measurement, estimate or rejection. */
  readonly lines: readonly TuningLine[];
  /** Measurements of each piece of work, the fastest first. */
  readonly #measured = new Map<string, readonly MeasuredLine[]>();
  /** Choices that were tried in vain, with a driver. */
  readonly #failed: ReadonlySet<string>;

  constructor(lines: readonly TuningLine[]) {
    const known = new Map<string, TuningLine>();
    for (const line of lines) {
      const identity = identityOf(line);
      const before = known.get(identity);
      if (before === undefined || outweighs(line, before)) known.set(identity, line);
    }
    this.lines = [...known.values()];
    this.#failed = new Set(this.lines.filter(hasFailed).map(choiceOf));
    for (const line of this.lines.filter(isMeasured)) {
      if (this.#failed.has(choiceOf(line))) continue;
      const work = workText(line);
      const others = this.#measured.get(work) ?? [];
      this.#measured.set(work, [...others, line].sort(bySpeed));
    }
  }

  /** The lines of a file; `name` is what the file is called in errors. Files that were joined have their first lines within. */
  static parse(text: string, name: string): TuningTable {
    const [first = "", ...rows] = text.split("\n");
    requireHeader(first, name);
    const last = rows.length - 1;
    return new TuningTable(
      rows.flatMap((row, index) => {
        const value = parsed(row);
        if (isTuningLine(value)) return [value];
        // What comes after the last line break was being written when the tuner was stopped.
        if (row.trim() === "" || row.trim() === header || index === last) return [];
        throw noLine(row, value, `${name}:${index + 2}`);
      }),
    );
  }

  /** The lines of several tables. */
  static union(tables: readonly TuningTable[]): TuningTable {
    return new TuningTable(tables.flatMap(({ lines }) => lines));
  }

  /** The fastest with this driver, else with another one, of those that did not fail with this one. */
  best(work: TunedWork, driver: string): MeasuredLine | undefined {
    const measured = this.#measured.get(workText(work)) ?? [];
    const own = measured.find((line) => line.driver === driver);
    return own ?? measured.find((line) => !this.#failed.has(choiceOf({ ...line, driver })));
  }

  /** With lines of the kernels that there are now: what is said of the same choices with others goes. */
  updated(current: readonly TuningLine[]): TuningTable {
    const keys = new Map(current.map((line) => [choiceOf(line), line.key]));
    const isCurrent = (line: TuningLine): boolean =>
      (keys.get(choiceOf(line)) ?? line.key) === line.key;
    return new TuningTable([...this.lines.filter(isCurrent), ...current]);
  }

  /** The file: sorted, so that what is added changes few lines of it. */
  get text(): string {
    return `${[header, ...this.lines.map(lineText).sort()].join("\n")}\n`;
  }

  /** What a file begins with. */
  static readonly start = `${header}\n`;

  /** Whether a text is no more than the beginning of a file's first line: a tuner was stopped before it had any result. */
  static isBarelyStarted(text: string): boolean {
    return TuningTable.start.startsWith(text);
  }
}

/** Whether a choice was tried in vain; what a model thought little of was not tried. */
function hasFailed(line: TuningLine): boolean {
  return isRejected(line) && line.rejected !== "model";
}

/** How much a line says: a failure most, an estimate least. */
function weightOf(line: TuningLine): number {
  if (hasFailed(line)) return 2;
  return isMeasured(line) ? 1 : 0;
}

/** Whether one of two lines of the same kernels counts rather than the other; of any two different ones one does. */
function outweighs(line: TuningLine, other: TuningLine): boolean {
  const more = weightOf(line) - weightOf(other);
  if (more !== 0) return more > 0;
  if (isMeasured(line) && isMeasured(other)) {
    if (line.rounds !== other.rounds) return line.rounds > other.rounds;
    if (line.spread !== other.spread) return line.spread < other.spread;
  }
  return lineText(line) < lineText(other);
}

function bySpeed(left: MeasuredLine, right: MeasuredLine): number {
  if (left.us !== right.us) return left.us - right.us;
  return lineText(left) < lineText(right) ? -1 : 1;
}

function requireHeader(row: string, name: string): void {
  const found = parsed(row);
  const isOurs = typeof found === "object" && found !== null && "tilewright" in found;
  if (isOurs && found.tilewright === "tuning" && "version" in found && found.version === version)
    return;
  throw new TilewrightError({
    code: "TW9811",
    message: isOurs
      ? `${name} is a tuning file of another version`
      : `${name} is not a tuning file`,
    expected: `the first line ${header}`,
    found: row.slice(0, 80),
    remedy: isOurs
      ? "tune into another file with this version, or use the version that wrote this one"
      : undefined,
  });
}

function noLine(row: string, value: unknown, place: string): TilewrightError {
  return new TilewrightError({
    code: "TW9811",
    message: `${place} is not a line of a tuning file`,
    expected: "op, variant, key, gpu, target, driver, bucket, choice, and us or rejected",
    found: value === undefined ? `no JSON: ${row.slice(0, 80)}` : (wrongPart(value) ?? row),
    remedy: "delete the line: what it said is measured again",
  });
}

function parsed(row: string): unknown {
  try {
    return JSON.parse(row) as unknown;
  } catch {
    return undefined;
  }
}
