/**
 * What was measured of one choice of an operation, as a line of a tuning file. Files are JSON lines, so that they can
 * be appended to while a tuner runs, merged as a union of lines, and read in a commit:
 *
 *   {"tilewright":"tuning","version":1}
 *   {"op":"matmul","variant":"a bf16[m, k] …","key":"9f3c…","gpu":"NVIDIA H200","target":"sm_90a","driver":"CUDA 13.0",
 *    "bucket":{"k":4096,"m":4096,"n":4096},"choice":{"columns":256,"stages":4},"us":174.2,"spread":0.004,"rounds":20}
 *   {… "choice":{"columns":256,"stages":9},"rejected":"plan","reason":"TW9904: … 299,008 bytes of shared memory …"}
 */
import { isShallow } from "../../support/nesting-depth.ts";
import { isRecord } from "../../support/options.ts";

/** Sizes by the names of dimensions. */
export interface Sizes {
  readonly [name: string]: number;
}

/** One option of a choice. */
export type ChoiceValue = string | number | boolean;

/** What was chosen, by name. */
export interface Choice {
  readonly [name: string]: ChoiceValue;
}

/** Why a choice is out of the question: it cannot be planned or compiled, the model gives it no chance, or it is wrong. */
const rejections = ["plan", "compile", "model", "wrong"] as const;
/** Why a choice was rejected. */
export type Rejection = (typeof rejections)[number];

/**
 * What the results of a measured choice were held against: what the caller gave, the choice that the operation trusts, or what most choices
 * agree on; nothing where it was alone.
 */
const judges = ["reference", "trusted", "majority", "alone"] as const;
/** What the results of a measured choice were checked against. */
export type Judge = (typeof judges)[number];

/** What a line is of. */
export interface TunedWork {
  /** The operation's name. */
  readonly op: string;
  /** Tells operations of one name apart: formats, how arrays lie. */
  readonly variant: string;
  /** The GPU's name. */
  readonly gpu: string;
  /** The sizes, rounded to those that share a choice. */
  readonly bucket: Sizes;
}

interface LineStart extends TunedWork {
  /** A hash of the kernels that were measured: edited ones are measured anew. */
  readonly key: string;
  /** What the kernels were compiled for. */
  readonly target: string;
  /** The version of the driver. */
  readonly driver: string;
  /** The choice. */
  readonly choice: Choice;
}

export interface MeasuredLine extends LineStart {
  /** Microseconds of one launch. */
  readonly us: number;
  /** How far the times lie apart, as a fraction of the median. */
  readonly spread: number;
  /** How many rounds were measured. */
  readonly rounds: number;
  /** Lines of before have none. */
  readonly checked?: Judge;
}

/** What a model estimates where there is no GPU; never taken for a measurement. */
export interface ModelLine extends LineStart {
  /** Microseconds of one launch. */
  readonly us: number;
  /** Says that it is an estimate. */
  readonly source: "model";
}

export interface RejectedLine extends LineStart {
  /** Why it was rejected. */
  readonly rejected: Rejection;
  /** The same in words. */
  readonly reason: string;
}

/** What is known of one choice for some sizes: a measurement, an estimate, or why it was rejected. */
export type TuningLine = MeasuredLine | ModelLine | RejectedLine;

export function isMeasured(line: TuningLine): line is MeasuredLine {
  return "rounds" in line;
}

export function isRejected(line: TuningLine): line is RejectedLine {
  return "rejected" in line;
}

/** Fields in the order of their names, so that equal values are equal text. */
function ordered<V>(record: { readonly [name: string]: V }): {
  readonly [name: string]: V;
} {
  return Object.fromEntries(
    Object.entries(record).sort(([left], [right]) => (left < right ? -1 : 1)),
  );
}

export function recordText(record: { readonly [name: string]: ChoiceValue }): string {
  return JSON.stringify(ordered(record));
}

/** The line as it stands in a file. */
export function lineText(line: TuningLine): string {
  const { op, variant, key, gpu, target, driver, bucket, choice, ...outcome } = line;
  const start = { op, variant, key, gpu, target, driver };
  return JSON.stringify({
    ...start,
    bucket: ordered(bucket),
    choice: ordered(choice),
    ...outcome,
  });
}

/** Which choice of which work a line is of, whatever the kernels were. */
export function choiceOf(line: Omit<LineStart, "key">): string {
  const { op, variant, gpu, driver, bucket, choice } = line;
  return JSON.stringify([op, variant, gpu, driver, recordText(bucket), recordText(choice)]);
}

/** What may be measured once: one line of a file has it. */
export function identityOf(line: LineStart): string {
  return `${line.key} ${choiceOf(line)}`;
}

export function workText({ op, variant, gpu, bucket }: TunedWork): string {
  return JSON.stringify([op, variant, gpu, recordText(bucket)]);
}

/** A line is a record of records. */
const mostLevels = 2;

function isPositive(value: unknown): boolean {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

/** Whether a value that was read is a line. */
export function isTuningLine(value: unknown): value is TuningLine {
  return wrongPart(value) === undefined;
}

/** What keeps a value that was read from being a line, in words; undefined where nothing does. */
export function wrongPart(value: unknown): string | undefined {
  if (!isShallow(value, mostLevels)) return "values within values";
  if (!isRecord(value)) return JSON.stringify(value) ?? "nothing";
  const part = (name: string, holds: boolean): string | undefined =>
    holds ? undefined : `${name} that is ${JSON.stringify(value[name]) ?? "missing"}`;
  const texts = ["op", "variant", "key", "gpu", "target", "driver"];
  const { bucket, choice, us, rejected, reason, source, spread, rounds, checked } = value;
  const isValue = (each: unknown): boolean =>
    ["string", "boolean"].includes(typeof each) || Number.isFinite(each);
  const start =
    texts.map((name) => part(name, typeof value[name] === "string")).find(Boolean) ??
    part("bucket", isRecord(bucket) && Object.values(bucket).every(Number.isSafeInteger)) ??
    part("choice", isRecord(choice) && Object.values(choice).every(isValue));
  if (start !== undefined) return start;
  if (rejected !== undefined)
    return (
      part("rejected", rejections.includes(rejected as Rejection)) ??
      part("reason", typeof reason === "string")
    );
  const time = part("us", isPositive(us));
  if (time !== undefined || source !== undefined) return time ?? part("source", source === "model");
  return (
    part("spread", Number.isFinite(spread)) ??
    part("rounds", Number.isSafeInteger(rounds)) ??
    part("checked", checked === undefined || judges.includes(checked as Judge))
  );
}
