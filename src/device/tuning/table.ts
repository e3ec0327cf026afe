/** The lines of tuning files, and the fastest choice for some work among them. */
import { TilewrightError } from "../../support/diagnostics.ts";
import { identityOf, isMeasured, isTuningLine, lineText, workText } from "./line.ts";
import type { MeasuredLine, TunedWork, TuningLine } from "./line.ts";

const version = 1;
const header = JSON.stringify({ tilewright: "tuning", version });

export class TuningTable {
  readonly lines: readonly TuningLine[];
  /** Measurements of each piece of work, the fastest first. */
  readonly #measured = new Map<string, readonly MeasuredLine[]>();

  /** Of lines that say the same of one choice, the last counts. */
  constructor(lines: readonly TuningLine[]) {
    this.lines = [...new Map(lines.map((line) => [identityOf(line), line])).values()];
    for (const line of this.lines.filter(isMeasured)) {
      const work = workText(line);
      const known = this.#measured.get(work) ?? [];
      this.#measured.set(
        work,
        [...known, line].sort((left, right) => left.us - right.us),
      );
    }
  }

  /** The lines of a file; `name` is what the file is called in errors. */
  static parse(text: string, name: string): TuningTable {
    const rows = text.split("\n");
    requireHeader(rows[0] ?? "", name);
    // What comes after the last line break was being written when the tuner was stopped.
    const whole = rows.slice(1, -1);
    return new TuningTable(
      whole.flatMap((row, index) =>
        row.trim() === "" ? [] : [lineOf(row, `${name}:${index + 2}`)],
      ),
    );
  }

  /** The lines of several tables; those of later ones count where they say the same. */
  static union(tables: readonly TuningTable[]): TuningTable {
    return new TuningTable(tables.flatMap(({ lines }) => lines));
  }

  /** The fastest choice that was measured; of another driver where this one has none. */
  best(work: TunedWork, driver: string): MeasuredLine | undefined {
    const measured = this.#measured.get(workText(work)) ?? [];
    return measured.find((line) => line.driver === driver) ?? measured[0];
  }

  /** The file: sorted, so that what is added changes few lines of it. */
  get text(): string {
    return `${[header, ...this.lines.map(lineText).sort()].join("\n")}\n`;
  }

  /** What a file begins with. */
  static readonly start = `${header}\n`;
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
  });
}

function lineOf(row: string, place: string): TuningLine {
  const value = parsed(row);
  if (isTuningLine(value)) return value;
  throw new TilewrightError({
    code: "TW9811",
    message: `${place} is not a line of a tuning file`,
    expected: "op, variant, key, gpu, target, driver, bucket, choice, and us or rejected",
    found: row.slice(0, 80),
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
