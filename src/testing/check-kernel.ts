/**
 * Testing a kernel under many schedules. One call runs it with every check of the simulator under the
 * fixed schedule and under seeded random and adversarial ones, and requires the same bits each time:
 * what only some interleavings show is found here and reported with the seed that shows it. On the
 * emulator, the kernel's PTX runs with all checks, and each seed is a schedule.
 */
import { requireArguments, requireKernel } from "../device/argument-checks.ts";
import { listedResults } from "../device/argument-lists.ts";
import type { HostResults, RunArguments } from "../device/types.ts";
import type { LaunchOptions } from "../device/wait-limits.ts";
import type { HostArray } from "../formats/hostarray.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { open } from "../runtime/open.ts";
import {
  checkingDevices,
  countRule,
  oneOf,
  requireRules,
  seedRule,
  truthRule,
} from "../runtime/open-options.ts";
import type { CheckingDevice, OpenOptions } from "../runtime/open-options.ts";
import type { ScheduleName } from "../sim/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { requireTarget } from "../targets/given.ts";
import type { Target, TargetName } from "../targets/target.ts";

/** Options of `checkKernel`. */
export interface CheckOptions extends LaunchOptions {
  /** What runs the kernel; the simulator unless given. */
  readonly device?: CheckingDevice;
  /** How many schedules besides the fixed one; half are random, half adversarial. 20 unless given. */
  readonly schedules?: number;
  /** The first seed; each schedule takes the next one. 1 unless given. */
  readonly seed?: number;
  /** The GPU whose limits hold, or its name; sm_90a unless given. */
  readonly target?: Target | TargetName;
  /** False for kernels whose results may depend on the order of atomic updates; true unless given. */
  readonly deterministic?: boolean;
}

/** One schedule to run under. */
export interface Turn {
  /** Absent on the emulator, which knows seeds alone. */
  readonly schedule?: ScheduleName;
  readonly seed: number;
}

/** The fixed schedule, then seeded ones; a seed alone decides its kind, so that it can be run again. */
export function turns({
  device = "simulator",
  schedules = 20,
  seed = 1,
}: Pick<CheckOptions, "device" | "schedules" | "seed">): readonly Turn[] {
  if (device === "emulator")
    return Array.from({ length: schedules + 1 }, (_, index) => ({ seed: seed + index }));
  const seeded = Array.from({ length: schedules }, (_, index): Turn => ({
    schedule: (seed + index) % 2 === 0 ? "adversarial" : "random",
    seed: seed + index,
  }));
  return [{ schedule: "fixed", seed }, ...seeded];
}

const rules = {
  device: oneOf(checkingDevices),
  schedules: countRule,
  seed: seedRule,
  deterministic: truthRule,
};

function checkOptions(options: CheckOptions, location: Location): void {
  const limits = ["signal", "timeLimit", "stepLimit"];
  const known = [...Object.keys(rules), "target", "dimensions", ...limits];
  requireKnownOptions("checkKernel", options, known, "TW4015", location);
  requireRules("checkKernel", rules, options, location);
  if (options.target !== undefined) requireTarget(options.target, location);
}

/** Runs the kernel under every schedule and gives its results; throws what any of them finds. */
export async function checkKernel<K extends KernelDefinition>(
  definition: K,
  inputs: RunArguments<K>,
  options: CheckOptions = {},
): Promise<HostResults<K>> {
  requireKernel("checkKernel", definition);
  requireArguments("checkKernel", inputs);
  checkOptions(options, captureLocation());
  let first: HostResults<K> | undefined;
  for (const turn of turns(options)) {
    const results = await runTurn(definition, inputs, turn, options);
    if (first === undefined) first = results;
    else if (options.deterministic ?? true) requireSame(definition, turn, first, results);
  }
  if (first === undefined) throw new Error("the fixed schedule always runs");
  return first;
}

async function runTurn<K extends KernelDefinition>(
  definition: K,
  inputs: RunArguments<K>,
  turn: Turn,
  { device: name = "simulator", target, dimensions = {}, ...options }: CheckOptions,
): Promise<HostResults<K>> {
  const settings: OpenOptions = target === undefined ? { ...turn } : { ...turn, target };
  const device = await open(name, settings);
  try {
    const { signal, timeLimit, stepLimit } = options;
    return await device.run(definition, inputs, { dimensions, signal, timeLimit, stepLimit });
  } catch (error) {
    throw error instanceof TilewrightError
      ? error.withNotes([{ message: describeTurn(turn) }])
      : error;
  } finally {
    device.dispose();
  }
}

export function describeTurn(turn: Turn): string {
  return `found ${turnText(turn)}`;
}

function turnText({ schedule, seed }: Turn): string {
  if (schedule === undefined) return `on the emulator, seed ${seed}`;
  return `under the ${schedule} schedule${schedule === "fixed" ? "" : `, seed ${seed}`}`;
}

function requireSame(
  { name }: KernelDefinition,
  turn: Turn,
  first: { readonly [name: string]: HostArray | readonly HostArray[] },
  results: { readonly [name: string]: HostArray | readonly HostArray[] },
): void {
  const others = listedResults(results);
  for (const [output, array] of Object.entries(listedResults(first))) {
    const other = others[output];
    if (other !== undefined && sameBytes(array, other)) continue;
    throw new TilewrightError({
      code: "TW5102",
      message: `output ${output} of kernel ${name} depends on the schedule`,
      expected: "the same bits as under the first schedule",
      found: `other bits ${turnText(turn)}`,
    });
  }
}

function sameBytes(left: HostArray, right: HostArray): boolean {
  const bytes = ({ data }: HostArray): Uint8Array =>
    new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const [a, b] = [bytes(left), bytes(right)];
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}
