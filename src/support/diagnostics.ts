/**
 * Diagnostics: every mistake a user can make is reported as a `TilewrightError` with a stable code,
 * the user's line, what was expected and found, and one remedy.
 *
 *   TW1004: operands of add have different shapes
 *     at kernel.ts:12:20
 *     expected: [128, 64]
 *     found:    [64, 128]
 *     remedy:   transpose one of them, or broadcast it to the other's shape
 *     note:     the left operand comes from kernel.ts:10:15
 *
 * Codes are registered in `codes/`, a file an area, with cause, example and remedy; the reference in
 * docs/diagnostics.md is generated from that registry.
 */
import { codes } from "./diagnostic-codes/index.ts";
import { captureLocation, formatPlace, reportDepth, userFrames } from "./location.ts";
import type { Location, Position } from "./location.ts";

/** The code of a diagnostic, such as `"TW1020"`; each is explained in docs/diagnostics.md. */
export type DiagnosticCode = keyof typeof codes;

/** Another place that belongs to the report: the other access of a race, the definition of a value. */
export interface RelatedNote {
  readonly message: string;
  readonly location?: Location | undefined;
}

/** A note with its place looked up. */
interface Note extends Location {
  readonly message: string;
}

export interface DiagnosticDetails {
  readonly code: DiagnosticCode;
  /** One sentence, no full stop, naming the things involved. */
  readonly message: string;
  /** Where the user wrote it; the current call when absent. */
  readonly location?: Location | undefined;
  /** What would be right, and what there is instead: every report says both. */
  readonly expected: string;
  readonly found: string;
  /** What to do about this very case; the registered remedy when absent. */
  readonly remedy?: string | undefined;
  readonly notes?: readonly RelatedNote[] | undefined;
}

/** Where a report says that it is one, to every copy of the library in the program. */
const report = Symbol.for("tilewright.report");

/** By which Node asks an object how it is to be printed. */
const inspected = Symbol.for("nodejs.util.inspect.custom");

/** The one error class of tilewright. `message` is the whole report, ready to print. */
export class TilewrightError extends Error {
  /** Reports are plain data, so that one of another copy of the library is as good as an own one. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && report in value;
  }

  /**
   * What Node prints of an uncaught error begins with it, and bundlers rename classes.
   *
   * @internal
   */
  static override readonly name = "TilewrightError";

  /** Always `"TilewrightError"`, also where a bundler renames the class. */
  override readonly name = "TilewrightError";
  /** Which mistake it is, such as `"TW4012"`; see docs/diagnostics.md. */
  readonly code: DiagnosticCode;
  /** The report's first line without its code. */
  readonly summary: string;
  /** The line of the program that it is about. */
  readonly position: Position | undefined;
  /** Where text that was made from the user's, such as PTX, has it. */
  readonly generated: Position | undefined;
  /** What was expected. */
  readonly expected: string;
  /** What was found instead. */
  readonly found: string;
  /** What to do about it. */
  readonly remedy: string;
  /** Other places that have to do with it, each with a message. */
  readonly notes: readonly Note[];

  /** @internal */
  get [report](): true {
    return true;
  }

  constructor(details: DiagnosticDetails) {
    super();
    this.code = details.code;
    this.summary = details.message;
    const location = details.location ?? captureLocation(reportDepth);
    this.position = location.position;
    this.generated = location.generated;
    this.expected = details.expected;
    this.found = details.found;
    this.remedy = details.remedy ?? codes[details.code].remedy;
    this.notes = (details.notes ?? []).map(({ message, location }) => ({
      message,
      position: location?.position,
      generated: location?.generated,
    }));
    // Before there is a message, whose own place would be taken for a frame.
    const frames = userFrames(this.stack ?? "");
    this.message = formatReport(this);
    this.stack = [`${this.name}: ${this.message}`, ...frames].join("\n");
  }

  /** @internal What Node prints of it, uncaught too: the report says what the fields hold, so that they need not follow. */
  [inspected](): string {
    return this.stack ?? this.message;
  }

  /** The same report with further notes. */
  withNotes(notes: readonly RelatedNote[]): TilewrightError {
    const { code, summary, expected, found, remedy } = this;
    const own = this.notes.map((note) => ({ message: note.message, location: note }));
    const details = { code, message: summary, location: this, expected, found, remedy };
    return new TilewrightError({ ...details, notes: [...own, ...notes] });
  }

  /** The same report at another place: after an `await` the stack need not show who called. */
  located(location: Location): TilewrightError {
    const { code, summary, expected, found, remedy } = this;
    const notes = this.notes.map((note) => ({ message: note.message, location: note }));
    const details = { code, message: summary, location, expected, found, remedy, notes };
    return new TilewrightError(details);
  }

  /** The report as plain data, for `--json`. */
  toJSON(): Record<string, unknown> {
    const { code, summary, position, generated, expected, found, remedy, notes } = this;
    return { code, summary, position, generated, expected, found, remedy, notes };
  }
}

/** Runs `body`; a report it throws names the given place instead of where it was thrown. */
export function locatedAt<T>(location: Location, body: () => T): T {
  try {
    return body();
  } catch (error) {
    throw error instanceof TilewrightError ? error.located(location) : error;
  }
}

/** The same failure; a report that names no place, as of a kernel of the library, names the given one. */
export function placedAt(location: Location, error: unknown): unknown {
  if (!(error instanceof TilewrightError)) return error;
  return (error.position ?? error.generated) === undefined ? error.located(location) : error;
}

function formatReport(error: TilewrightError): string {
  const lines = [`${error.code}: ${error.summary}`];
  const place = formatPlace(error);
  if (place !== "") lines.push(`  at ${place}`);
  lines.push(`  expected: ${indent(error.expected)}`);
  lines.push(`  found:    ${indent(error.found)}`);
  for (const note of error.notes) {
    const where = formatPlace(note);
    lines.push(`  note:     ${indent(note.message)}${where === "" ? "" : ` (${where})`}`);
  }
  lines.push(`  remedy:   ${indent(error.remedy)}`);
  return lines.join("\n");
}

function indent(text: string): string {
  return text.replaceAll("\n", "\n            ");
}
