/** `tilewright run`: a file's `main` on a device, or its kernels on random inputs. */
import { listedResults } from "../../device/argument-lists.ts";
import type { CompilationRecord } from "../../device/compilation.ts";
import type { Device } from "../../device/device.ts";
import type { KernelProfile } from "../../device/profile/kernel-profile.ts";
import { requireKeptLimits } from "../../device/wait-limits.ts";
import { formatArray, toNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { takesSeed } from "../../runtime/open-options.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { RunLimits } from "../../support/run-limits.ts";
import type { Target } from "../../targets/target.ts";
import { Dumps } from "../dump.ts";
import { formatTime } from "../output.ts";
import type { Output } from "../output.ts";
import { writeProfiles } from "../profile-file.ts";
import { idle, noticingOutput, runUserCode } from "../program-output.ts";
import { chooseDimensions, randomInputs, randomNote, requireTaken } from "../random-inputs.ts";
import type { Dimensions } from "../random-inputs.ts";
import { loadUserModule, nothingDone, selectLaunchables } from "../user-module.ts";
import type { Launchable, UserModule } from "../user-module.ts";

export interface RunSettings {
  readonly file: string;
  /** What the program finds in `process.argv` after its own name. */
  readonly programArguments: readonly string[];
  readonly device: DeviceName;
  /** The GPU that is simulated or emulated; the device's own choice unless given. */
  readonly target?: Target | undefined;
  readonly kernel: string | undefined;
  readonly dimensions: Dimensions;
  readonly seed: number;
  /** The folder that takes every stage of what is compiled. */
  readonly dump: string | undefined;
  /** The file that takes how long profile scopes took. */
  readonly profile: string | undefined;
  /** Of each launch. */
  readonly limits: RunLimits;
}

export async function runCommand(settings: RunSettings, output: Output): Promise<number> {
  const { file, programArguments, kernel, dimensions, seed, dump, profile } = settings;
  const { result: module, hasPrinted } = await noticingOutput(() =>
    runUserCode(output, () => loadUserModule(file, programArguments)),
  );
  const callsMain = module.main !== undefined && kernel === undefined;
  const count = module.kernels.length + module.operations.length;
  const isScript = !callsMain && count === 0 && kernel === undefined;
  const kernels = callsMain || isScript ? [] : selectLaunchables(module, kernel);
  requireTaken(dimensions, kernels);
  if (isScript) {
    if (!hasPrinted && Object.keys(module.exports).length > 0) await requireOutput(module);
    return endScript(settings, output);
  }
  const compilations: CompilationRecord[] = [];
  const profiles: KernelProfile[] = [];
  const { limits } = settings;
  const onGpu = settings.device === "gpu";
  // Nothing ends what a main launches on a GPU.
  if (onGpu && callsMain) requireKeptLimits("launch", limits, false, unknownLocation);
  const device = await open(settings.device, {
    ...(!onGpu && { limits }),
    // The schedules of other devices are their own.
    ...(takesSeed(settings.device) && { seed }),
    ...(settings.target !== undefined && { target: settings.target }),
    onCompile: (record) => compilations.push(record),
    ...(profile !== undefined && { onProfile: (each) => profiles.push(each) }),
  });
  try {
    const document = callsMain
      ? { result: await runMain(module, device, output) }
      : { kernels: await runKernels(kernels, device, settings, output) };
    if (profile !== undefined) {
      await device.synchronize();
      writeProfiles(profile, profiles);
      output.line(`wrote ${profile}`);
    }
    output.document({ file, device: device.name, ...document });
  } finally {
    device.dispose();
    if (dump !== undefined) await dumpAll(compilations, device.target, dump, output);
  }
  return 0;
}

/** Fails where a script that only exports something ends without having printed anything. */
async function requireOutput(module: UserModule): Promise<void> {
  // What it has begun, and does not wait for, may print yet.
  const { hasPrinted } = await noticingOutput(idle);
  if (!hasPrinted && process.exitCode === undefined) throw nothingDone(module);
}

/** A script has run, on devices of its own where it has any, so that no other is opened: nothing is left to run, to profile or to dump. */
function endScript({ file, device, dump, profile }: RunSettings, output: Output): number {
  if (profile !== undefined) writeProfiles(profile, []);
  output.document({ file, device, kernels: [] });
  if (dump !== undefined) output.report(new Dumps(dump).summary());
  return 0;
}

async function dumpAll(
  compilations: readonly CompilationRecord[],
  target: Target,
  folder: string,
  output: Output,
): Promise<void> {
  const dumps = new Dumps(folder);
  for (const { kernel: name, traced, machineCode } of compilations)
    if (traced !== undefined)
      await dumps.write({ name, kernel: traced, target, driverLog: machineCode?.log });
  output.report(dumps.summary());
}

async function runMain({ main }: UserModule, device: Device, output: Output): Promise<unknown> {
  const result = await runUserCode(output, async () => main?.(device));
  return isPlainObject(result) ? result : null;
}

function isPlainObject(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

async function runKernels(
  kernels: readonly Launchable[],
  device: Device,
  settings: RunSettings,
  output: Output,
): Promise<readonly unknown[]> {
  const documents = [];
  for (const kernel of kernels) documents.push(await runKernel(kernel, device, settings, output));
  return documents;
}

async function runKernel(
  { name, definition }: Launchable,
  device: Device,
  { seed, dimensions: given, limits }: RunSettings,
  output: Output,
): Promise<unknown> {
  const { kernel } = definition;
  const dimensions = chooseDimensions(kernel, given, device.target);
  const inputs = randomInputs(kernel, dimensions, seed);
  const start = performance.now();
  const note = randomNote(kernel, seed);
  const results = await runUserCode(output, async () =>
    listedResults(
      await device.run(definition, inputs, { dimensions, ...(!device.stopsKernels && limits) }),
    ),
  ).catch((error: unknown) => {
    const isNoted = note !== undefined && error instanceof TilewrightError;
    throw isNoted ? error.withNotes([{ message: note }]) : error;
  });
  const milliseconds = performance.now() - start;
  const sizes = Object.entries(dimensions).map(([dimension, extent]) => `${dimension} = ${extent}`);
  const facts = [...sizes, `seed ${seed}`, `${formatTime(milliseconds)} on the ${device.name}`];
  output.line(`${output.bold(name)}: ${facts.join(", ")}`);
  for (const [result, array] of Object.entries(results))
    output.line(`${result} = ${formatArray(array)}`);
  return { name, kernel: kernel.name, dimensions, seed, milliseconds, outputs: summaries(results) };
}

const listedElements = 16;

function summaries(results: { readonly [name: string]: HostArray }): unknown {
  return Object.fromEntries(
    Object.entries(results).map(([name, array]) => [
      name,
      {
        dtype: array.dtype.name,
        shape: array.shape,
        first: toNumbers(array).subarray(0, listedElements),
      },
    ]),
  );
}
