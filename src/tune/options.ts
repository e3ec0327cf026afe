/** The options of `tune`, checked, with what is not given filled in. */
import { Device } from "../device/device.ts";
import { isOperation } from "../device/operation.ts";
import type { Operation } from "../device/operation.ts";
import type { OperationChoices } from "../device/tuning/advice.ts";
import type { Sizes } from "../device/tuning/line.ts";
import type { HostValue } from "../formats/dtype.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { leastRounds } from "../bench/statistics.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../support/options.ts";
import type { GivenInputs } from "./arrays.ts";

/** How far `tune` is. */
export interface TuneProgress {
  /** Choices that are done with, of all cases, and how many there are. */
  readonly done: number;
  /** How many there are. */
  readonly all: number;
  /** The case that is being worked on. */
  readonly sizes: Sizes;
  /** What is being done: "compiling", "checking", "timing"; without a GPU "estimating". */
  readonly doing: string;
  /** Milliseconds until the end, by those that are done. */
  readonly remaining: number;
}

/** Options of `tune`. */
export interface TuneOptions {
  /** The sizes to tune for. */
  readonly cases: readonly Sizes[];
  /** Where results are kept, and where those of before are taken from. */
  readonly file?: string | undefined;
  /** Inputs of a case by name; those that are not given are random. */
  readonly inputs?: ((sizes: Sizes) => GivenInputs) | undefined;
  /** The right results for some inputs; unless given those of the operation's plainest choice, or what most choices agree on. */
  readonly reference?:
    | ((
        inputs: { readonly [name: string]: HostArray | HostValue },
        sizes: Sizes,
      ) => { readonly [output: string]: HostArray })
    | undefined;
  /** How many choices of a case to measure, those that the model thinks fastest; all of them unless given. */
  readonly most?: number | undefined;
  /** When to start nothing more, in seconds; everything is measured unless given. */
  readonly seconds?: number | undefined;
  /** Rounds of the last comparison, among the fastest; 15 unless given. */
  readonly rounds?: number | undefined;
  /** Launches in a sample; as many as take 2 ms, up to 50, unless given. */
  readonly launches?: number | undefined;
  /** Processes that compile; as many as processors, up to eight, unless given. */
  readonly workers?: number | undefined;
  /** Ends the tuning when it is aborted; what was measured is kept. */
  readonly signal?: AbortSignal | undefined;
  /** Hears how far the tuning is. */
  readonly onProgress?: ((progress: TuneProgress) => void) | undefined;
}

export interface TuneSettings extends TuneOptions {
  readonly rounds: number;
  readonly location: Location;
}

const names: readonly (keyof TuneOptions)[] = [
  "cases",
  "file",
  "inputs",
  "reference",
  "most",
  "seconds",
  "rounds",
  "launches",
  "workers",
  "signal",
  "onProgress",
];

export function tuneSettings(options: TuneOptions, location: Location): TuneSettings {
  requireKnownOptions("tune", options, names, "TW9815", location);
  const {
    cases,
    file,
    inputs,
    reference,
    most,
    seconds,
    rounds = 15,
    launches,
    workers,
    signal,
  } = options;
  const check = (name: keyof TuneOptions, holds: boolean, expected: string): void => {
    if (!holds) throw wrongOption(name, options[name], expected, location);
  };
  const isFunction = (value: unknown): boolean =>
    value === undefined || typeof value === "function";
  const whole = (value: unknown, least: number): boolean =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= 1e6;
  const wanted = "a list of sizes by name, such as [{ m: 4096, n: 4096 }]";
  check("cases", Array.isArray(cases), wanted);
  const wrong =
    cases.length === 0 ? "an empty list" : caseText(cases.find((each) => !isSizes(each)));
  if (wrong !== undefined) throw wrongOption("cases", wrong, wanted, location, wrong);
  check("file", file === undefined || (typeof file === "string" && file !== ""), "a file's name");
  check("inputs", isFunction(inputs), "a function of sizes");
  check("reference", isFunction(reference), "a function of inputs");
  check("most", most === undefined || whole(most, 1), "a whole number, 1 or more");
  check(
    "seconds",
    seconds === undefined || (typeof seconds === "number" && seconds > 0),
    "a number above 0",
  );
  check("rounds", whole(rounds, leastRounds), `a whole number, ${leastRounds} or more`);
  check("launches", launches === undefined || whole(launches, 1), "a whole number, 1 or more");
  check("workers", workers === undefined || whole(workers, 0), "a whole number, 0 or more");
  check("signal", signal === undefined || signal instanceof AbortSignal, "an AbortSignal");
  check("onProgress", isFunction(options.onProgress), "a function");
  return { ...options, rounds, location };
}

/** A case in words; undefined where there is none. */
function caseText(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return `a list with ${isRecord(value) ? JSON.stringify(value) : optionText(value)}`;
}

function isSizes(value: unknown): value is Sizes {
  return isRecord(value) && Object.values(value).every(Number.isSafeInteger);
}

/** The operation's choices; an operation without any cannot be tuned. */
export function requireTunable(
  device: Device,
  operation: Operation,
  location: Location,
): OperationChoices {
  if (!(device instanceof Device))
    throw wrongOption("the device", device, "what open(…) gave", location);
  if (!isOperation(operation))
    throw wrongOption("the operation", operation, "what tunable(…) or matmul(…) gives", location);
  if (operation.choices !== undefined) return operation.choices;
  throw new TilewrightError({
    code: "TW9813",
    message: `${operation.name} has nothing to choose`,
    expected: "an operation of tunable(…), or one of the library without a configuration",
    found: "no choices",
    location,
  });
}

function wrongOption(
  name: string,
  found: unknown,
  expected: string,
  location: Location,
  text = optionText(found),
): TilewrightError {
  return new TilewrightError({
    ...{ code: "TW9815", message: `${name} of tune cannot be ${text}` },
    ...{ location, expected, found: text },
  });
}
