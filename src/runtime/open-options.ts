/**
 * The options of `open`, checked once, so that a device meets only values that exist. What is wrong is
 * reported where `open` was called.
 *
 *   { schedule: "random", target: "sm_80" }  ->  { schedule: "random", target: targets.sm_80 }
 */
import type { DeviceOptions } from "../device/device-options.ts";
import { TuningTable } from "../device/tuning/table.ts";
import type { ScheduleName } from "../sim/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../support/options.ts";
import { requireRunLimits } from "../support/run-limits.ts";
import type { RunLimits } from "../support/run-limits.ts";
import { requireTarget } from "../targets/given.ts";
import type { Target, TargetName } from "../targets/target.ts";
import type { SimulatorOptions } from "./simulator-backend.ts";

/** What `open` takes besides the device's name. Each device has its own; without a name all are taken. */
export interface OpenOptions
  extends Omit<DeviceOptions, "measurements">, Omit<SimulatorOptions, "target"> {
  /** Tuning files, or what was read from them; later ones count where two say the same. */
  readonly tuning?: readonly (string | TuningTable)[];
  /** The GPU whose limits hold on the simulator, or its name; sm_90a unless given. */
  readonly target?: Target | TargetName;
  /** The number of the GPU to open, in the driver's order; 0 unless given. */
  readonly gpu?: number;
  /** Bytes that arrays and the like may have on the device at once. */
  readonly memoryLimit?: number;
  /** Threads that the CPU and the emulator run blocks on; as many as there are processors unless given. */
  readonly threads?: number;
}

/** What `open` can open. */
export type DeviceName = "gpu" | "cpu" | "simulator" | "emulator";

type Rule = readonly [expected: string, holds: (value: unknown) => boolean];

const scheduleNames: readonly ScheduleName[] = ["fixed", "random", "adversarial", "timed"];

export const truthRule: Rule = ["true or false", (value) => typeof value === "boolean"];
export const seedRule: Rule = ["a whole number", Number.isSafeInteger];
export const countRule: Rule = [
  "a whole number from 0",
  (value) => Number.isSafeInteger(value) && (value as number) >= 0,
];
const numberRule: Rule = [
  "a whole number from 1",
  (value) => Number.isSafeInteger(value) && (value as number) >= 1,
];
const functionRule: Rule = ["a function", (value) => typeof value === "function"];

/** The values that an option has names for. */
export function oneOf(names: readonly string[]): Rule {
  return [
    names.map((name) => `"${name}"`).join(", "),
    (value) => names.some((name) => name === value),
  ];
}

const rules: { readonly [N in Exclude<keyof OpenOptions, "target">]-?: Rule } = {
  schedule: oneOf(scheduleNames),
  seed: seedRule,
  checks: truthRule,
  onPrint: functionRule,
  onFindings: functionRule,
  onLeak: functionRule,
  onCompile: functionRule,
  onNotes: functionRule,
  onProfile: functionRule,
  gpu: countRule,
  threads: numberRule,
  memoryLimit: countRule,
  limits: ["{ signal, timeLimit, stepLimit }", isRecord],
  requireTuned: truthRule,
  tuning: [
    "a list of tuning files by name, or of TuningTable",
    (value) =>
      Array.isArray(value) &&
      value.every((each) => typeof each === "string" || each instanceof TuningTable),
  ],
};

const common: readonly (keyof OpenOptions)[] = [
  "onPrint",
  "onLeak",
  "onCompile",
  "onNotes",
  "onProfile",
  "memoryLimit",
  "tuning",
  "requireTuned",
];

/** The options that a device takes. */
const optionNames: { readonly [N in DeviceName]: readonly (keyof OpenOptions)[] } = {
  gpu: [...common, "gpu"],
  cpu: [...common, "limits", "threads"],
  emulator: [...common, "limits", "seed", "checks", "threads", "onFindings", "target"],
  simulator: [...common, "limits", "schedule", "seed", "checks", "onFindings", "target"],
};

/** The names that `open` takes. */
export const deviceNames = Object.freeze(Object.keys(optionNames)) as readonly DeviceName[];

/** Whether a device has schedules that a seed picks. */
export function takesSeed(device: DeviceName): boolean {
  return optionNames[device].includes("seed");
}

/** The devices that look for mistakes. */
export const checkingDevices = ["simulator", "emulator"] as const;
export type CheckingDevice = (typeof checkingDevices)[number];

export type CheckedOptions = Omit<DeviceOptions, "measurements"> &
  SimulatorOptions & {
    readonly tuning?: OpenOptions["tuning"];
    readonly gpu?: number;
    readonly threads?: number;
  };

/** The options of a device, or of any where none is named. */
export function checkOpenOptions(
  device: DeviceName | undefined,
  options: OpenOptions,
  location: Location,
): CheckedOptions {
  const names =
    device === undefined ? [...new Set(Object.values(optionNames).flat())] : optionNames[device];
  const what = device === "gpu" ? `open("gpu")` : "open";
  requireKnownOptions(what, options, names, "TW4015", location);
  requireRules("open", rules, options, location);
  const { target, ...others } = options;
  if (options.limits !== undefined) requireLimits(options.limits, location);
  return target === undefined ? others : { ...others, target: requireTarget(target, location) };
}

function requireLimits(limits: RunLimits, location: Location): void {
  const names = ["signal", "timeLimit", "stepLimit"];
  requireKnownOptions("limits of open", limits, names, "TW4015", location);
  requireRunLimits("open", limits, location);
}

/** Refuses options that are given and break their rule. */
export function requireRules(
  what: string,
  wanted: { readonly [name: string]: Rule },
  options: { readonly [name: string]: unknown } | object,
  location: Location,
): void {
  const values = new Map<string, unknown>(Object.entries(options));
  for (const [name, [expected, holds]] of Object.entries(wanted)) {
    const value = values.get(name);
    if (value === undefined || holds(value)) continue;
    throw new TilewrightError({
      code: "TW4016",
      message: `${name} of ${what} cannot be ${optionText(value)}`,
      location,
      expected,
      found: optionText(value),
    });
  }
}
