/** The entries and options of `bench`, checked, with what is not given filled in. */
import type { LaunchCost } from "../ir/cost/roofline.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { isReadable, isRecord, optionText, requireKnownOptions } from "../support/options.ts";
import { leastRounds } from "./statistics.ts";

/** How far a benchmark is. */
export interface BenchProgress {
  /** Rounds that are over, those that warm up included. */
  readonly round: number;
  /** Rounds in all. */
  readonly rounds: number;
  /** Milliseconds until the end, by the rounds so far. */
  readonly remaining: number;
}

/** Options of `bench`. */
export interface BenchOptions {
  /** Rounds that count; 20 by default, and at least 6, since fewer have no interval of 95%. */
  readonly rounds?: number | undefined;
  /** Launches in a sample; 50 by default. */
  readonly launches?: number | undefined;
  /** Rounds before those that count; 3 by default. */
  readonly warmUp?: number | undefined;
  /**
   * Milliseconds that the device rests before each sample; 0 by default. Without a rest, long work runs at the power
   * limit, and its clock is what the samples before it have left; with one, every sample finds the same device.
   */
  readonly rest?: number | undefined;
  /** Sets of arrays that launches go around; by default so many that the cache holds none of them. */
  readonly sets?: number | "beyond-l2" | undefined;
  /** The entry that ratios are to; the last one by default. */
  readonly against?: string | undefined;
  /** What a launch costs, for TB/s, TFLOP/s and the roofline: of all entries, or by their names. */
  readonly cost?: LaunchCost | { readonly [name: string]: LaunchCost } | undefined;
  /** Ends the benchmark when it is aborted. */
  readonly signal?: AbortSignal | undefined;
  /** Hears how far the benchmark is. */
  readonly onProgress?: ((progress: BenchProgress) => void) | undefined;
}

export interface BenchSettings {
  readonly rounds: number;
  readonly launches: number;
  readonly warmUp: number;
  readonly rest: number;
  readonly sets: number | "beyond-l2";
  readonly against: string;
  readonly cost: BenchOptions["cost"];
  readonly signal: AbortSignal | undefined;
  readonly onProgress: BenchOptions["onProgress"];
  readonly location: Location;
}

const names: readonly (keyof BenchOptions)[] = [
  "rounds",
  "launches",
  "warmUp",
  "rest",
  "sets",
  "against",
  "cost",
  "signal",
  "onProgress",
];

/** The entries by name, in the order in which they were written. */
export function requireEntries<E>(
  entries: unknown,
  location: Location,
): readonly (readonly [string, E])[] {
  if (isRecord(entries) && isReadable(entries, Object.keys(entries))) {
    const named = Object.entries(entries);
    if (named.length > 0 && named.every(([, entry]) => typeof entry === "function"))
      return named as readonly (readonly [string, E])[];
  }
  throw new TilewrightError({
    code: "TW9801",
    message: "bench is given nothing to time",
    location,
    expected: "an object with a function for each entry, such as { ours: (set) => device.bind(…) }",
    found:
      isRecord(entries) && Object.keys(entries).length === 0 ? "no entry" : optionText(entries),
  });
}

export function benchSettings(
  options: BenchOptions,
  entries: readonly string[],
  location: Location,
): BenchSettings {
  requireKnownOptions("bench", options, names, "TW9802", location);
  const { rounds = 20, launches = 50, warmUp = 3, rest = 0, sets = "beyond-l2" } = options;
  const { against = entries.at(-1) ?? "", cost, signal, onProgress } = options;
  const check = (name: keyof BenchOptions, holds: boolean, expected: string): void => {
    if (!holds) throw wrongOption(name, options[name], expected, location);
  };
  const whole = (value: unknown, least: number): boolean =>
    Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= 1e6;
  check("rounds", whole(rounds, leastRounds), `a whole number, ${leastRounds} or more`);
  check("launches", whole(launches, 1), "a whole number, 1 or more");
  check("warmUp", whole(warmUp, 0), "a whole number, 0 or more");
  check("rest", whole(rest, 0), "milliseconds, a whole number, 0 or more");
  check(
    "sets",
    sets === "beyond-l2" || whole(sets, 1),
    '"beyond-l2", or a whole number, 1 or more',
  );
  check("against", entries.includes(against), `one of ${entries.join(", ")}`);
  check(
    "cost",
    cost === undefined || isCostOf(cost, entries),
    "what cost() gives, or an object of such by the entries' names",
  );
  check("signal", signal === undefined || signal instanceof AbortSignal, "an AbortSignal");
  check("onProgress", onProgress === undefined || typeof onProgress === "function", "a function");
  return { rounds, launches, warmUp, rest, sets, against, cost, signal, onProgress, location };
}

function isCostOf(cost: unknown, entries: readonly string[]): boolean {
  if (isCost(cost)) return true;
  return (
    isRecord(cost) &&
    Object.entries(cost).every(([name, each]) => entries.includes(name) && isCost(each))
  );
}

function isCost(cost: unknown): cost is LaunchCost {
  if (!isRecord(cost)) return false;
  return typeof cost["flops"] === "number" && isRecord(cost["products"]) && isRecord(cost["bytes"]);
}

function wrongOption(
  name: string,
  found: unknown,
  expected: string,
  location: Location,
): TilewrightError {
  return new TilewrightError({
    code: "TW9802",
    message: `${name} of bench cannot be ${optionText(found)}`,
    location,
    expected,
    found: optionText(found),
  });
}
