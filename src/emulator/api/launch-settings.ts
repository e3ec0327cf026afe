/**
 * How an entry of PTX or of a cubin is launched: the same words on the emulator and on a device, so that what was
 * emulated runs on a GPU.
 *
 *   { blocks: [4, 2], threads: 256, sharedBytes: 49152, parameters: [x, out, n] }
 */
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Location } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import type { RunLimits } from "../../support/run-limits.ts";
import type { Entry } from "./module.ts";

/** Along x, or along x, y and z; 1 where nothing is said. */
export type TripleLike = number | readonly [x: number, y?: number, z?: number];

/** The launch of an entry, whose parameters are given as `V`. */
export interface EntryLaunch<V> extends RunLimits {
  /** The name of the `.entry`; may be left out where the module has one. */
  readonly entry?: string;
  /** Blocks of the grid. */
  readonly blocks: TripleLike;
  /** Threads of a block. */
  readonly threads: TripleLike;
  /** Blocks of a cluster, along x; what the entry requires unless given, or else 1. */
  readonly cluster?: number;
  /** Dynamic shared memory of a block; 0 unless given. */
  readonly sharedBytes?: number;
  /** In the order of the entry's parameters. */
  readonly parameters?: readonly V[];
}

export const entryLaunchNames: { readonly [N in keyof EntryLaunch<unknown>]-?: true } = {
  entry: true,
  blocks: true,
  threads: true,
  cluster: true,
  sharedBytes: true,
  parameters: true,
  signal: true,
  timeLimit: true,
  stepLimit: true,
};

/** A launch's sizes, checked. */
export interface LaunchForm {
  readonly entry: string;
  readonly blocks: readonly [number, number, number];
  readonly threads: readonly [number, number, number];
  readonly cluster: number;
  readonly sharedBytes: number;
}

export function launchForm(
  entry: Entry,
  settings: EntryLaunch<unknown>,
  location: Location,
): LaunchForm {
  // Types are erased, and a null is not a setting that was left out.
  const { cluster = entry.requiredCluster ?? 1, sharedBytes = 0 } = settings;
  return {
    entry: entry.name,
    blocks: triple("blocks", settings.blocks, location),
    threads: triple("threads", settings.threads, location),
    cluster: count("cluster", cluster, 1, location),
    sharedBytes: count("sharedBytes", sharedBytes, 0, location),
  };
}

export function impossible(
  name: string,
  expected: string,
  found: unknown,
  location: Location,
): TilewrightError {
  return new TilewrightError({
    code: "TW4016",
    message: `${name} cannot be ${optionText(found)}`,
    location,
    expected,
    found: optionText(found),
  });
}

export function count(
  name: string,
  value: unknown,
  least: number,
  location: Location,
  what = "launch",
): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  throw impossible(`${name} of ${what}`, `a whole number from ${least} up`, value, location);
}

function triple(
  name: string,
  value: TripleLike,
  location: Location,
): readonly [number, number, number] {
  const [x, y = 1, z = 1, ...more] = Array.isArray(value) ? (value as readonly unknown[]) : [value];
  if (more.length > 0)
    throw impossible(`${name} of launch`, "at most three numbers", value, location);
  const along = (extent: unknown): number => count(name, extent, 1, location);
  return [along(x), along(y), along(z)];
}
