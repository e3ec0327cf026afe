/**
 * Performance notes: what makes a kernel slower than it could be, although it is right. The placement knows some
 * (`placement-notes.ts`), the assembler others (`assembler-notes.ts`); all of them have a code, the user's line and a remedy, and
 * are plain data, so that a kept kernel keeps its notes.
 *
 *   TW7502: load of x moves 2 bytes a lane at a time
 *     at norm.ts:12:31
 *     because:  rows of n elements need not begin at a multiple of 16 bytes
 *     remedy:   say what n is a multiple of: dim("n", { multipleOf: 8 })
 */
import type { codes } from "../../support/diagnostic-codes/index.ts";
import type { TilewrightError } from "../../support/diagnostics.ts";
import { formatPosition } from "../../support/location.ts";
import type { Position } from "../../support/location.ts";
import { performanceCodes } from "../../support/diagnostic-codes/performance.ts";
import type { Target } from "../../targets/target.ts";

export type PerformanceCode = keyof typeof codes & keyof typeof performanceCodes;

/** Something that makes a kernel slower than it could be, and what to do about it. */
export interface PerformanceNote {
  /** Which kind of note it is. */
  readonly code: PerformanceCode;
  /** One sentence, no full stop. */
  readonly message: string;
  /** Why it is so. */
  readonly because: string;
  /** What to do about it. */
  readonly remedy: string;
  /** The user's line; undefined for what holds of the whole kernel. */
  readonly position: Position | undefined;
}

/** Whether it answers what the program asked the compiler, which is told wherever it is compiled. */
export function isAnswer({ code }: PerformanceNote): boolean {
  return code === "TW7514";
}

export function noteText({ code, message, because, remedy, position }: PerformanceNote): string {
  return [
    `${code}: ${message}`,
    ...(position === undefined ? [] : [`  at ${formatPosition(position)}`]),
    `  because:  ${because}`,
    `  remedy:   ${remedy}`,
  ].join("\n");
}

const refusalCode = "TW7513";

/** What a target says of a kernel that it would not take. */
export function refusalNote(
  { code, summary, expected, found, remedy, position }: TilewrightError,
  target: Target,
): PerformanceNote {
  // What is expected may be a drawing, of which the first line is the text.
  const [wanted = ""] = expected.split("\n");
  const [given = ""] = found.split("\n");
  return {
    code: refusalCode,
    message: `${target.name} refuses the kernel with ${code}: ${summary}`,
    because: `expected ${wanted}, found ${given}`,
    remedy,
    position,
  };
}

/** Whether a note says that a kernel would not be compiled at all. */
export function isRefusal({ code }: PerformanceNote): boolean {
  return code === refusalCode;
}

/** Whether data read from a file is a list of notes. */
export function isNotes(data: unknown): data is readonly PerformanceNote[] {
  return Array.isArray(data) && data.every(isNote);
}

function isNote(data: unknown): boolean {
  if (typeof data !== "object" || data === null) return false;
  const { code, message, because, remedy, position } = data as Partial<PerformanceNote>;
  const texts = [message, because, remedy].every((each) => typeof each === "string");
  return texts && typeof code === "string" && code in performanceCodes && isPlace(position);
}

function isPlace(position: unknown): boolean {
  if (position === undefined) return true;
  if (typeof position !== "object" || position === null) return false;
  const { file, line, column } = position as Partial<Position>;
  return typeof file === "string" && Number.isInteger(line) && Number.isInteger(column);
}

/** Notes that say the same of the same line, once. */
export function distinctNotes(notes: readonly PerformanceNote[]): readonly PerformanceNote[] {
  return [...new Map(notes.map((note) => [noteText(note), note])).values()];
}
