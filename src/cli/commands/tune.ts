/**
 * `tilewright tune`: measures the choices of the operations that a file exports, and keeps the results in a file.
 *
 *   export const mine = tunable({ … });        tilewright tune mine.ts --case m=4096,n=4096 --file tuning.jsonl
 */
import type { Device } from "../../device/device.ts";
import { recordText } from "../../device/tuning/line.ts";
import type { Sizes } from "../../device/tuning/line.ts";
import { open } from "../../runtime/open.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import { tune } from "../../tune/index.ts";
import type { TuneProgress, TuneReport } from "../../tune/index.ts";
import { interruptedStatus, interruptible } from "../interruption.ts";
import { formatTime } from "../output.ts";
import type { Output } from "../output.ts";
import { runUserCode } from "../program-output.ts";
import { loadUserModule } from "../user-module.ts";
import type { ExportedOperation } from "../user-module.ts";

export interface TuneCommandSettings {
  readonly file: string;
  /** The exported operation; all of them unless given. */
  readonly operation: string | undefined;
  readonly cases: readonly Sizes[];
  /** Where results are kept. */
  readonly results: string;
  /** What the machine has unless given. */
  readonly device: DeviceName | undefined;
  readonly seconds: number | undefined;
  readonly rounds: number | undefined;
  readonly workers: number | undefined;
}

export async function tuneCommand(settings: TuneCommandSettings, output: Output): Promise<number> {
  const { file, cases, results, seconds, rounds, workers } = settings;
  const { operations } = await runUserCode(output, () => loadUserModule(file));
  const chosen = selectOperations(file, operations, settings.operation);
  const device = await open(settings.device);
  const done = new Map<string, number>();
  try {
    const reports: { readonly name: string; readonly report: TuneReport }[] = [];
    const finished = await interruptible(async (signal) => {
      for (const { name, operation } of chosen) {
        const report = await tune(device, operation, {
          ...{ cases, file: results, seconds, rounds, workers, signal },
          onProgress: (progress) => {
            done.set(name, progress.done);
            output.progress(progressText(name, progress));
          },
        });
        output.clearProgress();
        output.line(output.bold(name));
        output.line(report.table().trimEnd());
        reports.push({ name, report });
      }
      return true;
    });
    const isInterrupted = finished === undefined;
    output.clearProgress();
    if (isInterrupted) output.report(interruptedText(sum([...done.values()]), device, results));
    else output.line(`kept in ${results}`);
    output.document({
      file,
      device: device.gpu?.name ?? device.name,
      results,
      operations: reports.map(({ name, report: { cases: found } }) => ({ name, cases: found })),
      ...(isInterrupted && { interrupted: true }),
    });
    return isInterrupted ? interruptedStatus : 0;
  } finally {
    output.clearProgress();
    device.dispose();
  }
}

/** What an interrupt leaves, and how to go on. */
function interruptedText(count: number, { gpu }: Device, results: string): string {
  const what = gpu === undefined ? "estimated by the model" : "measured";
  const kept = `${count} ${count === 1 ? "choice was" : "choices were"} ${what} before it`;
  return `interrupted: ${kept}, kept in ${results}\nrun the same command again to go on with the others`;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}

/** Those with choices, or the one that is named. */
function selectOperations(
  file: string,
  operations: readonly ExportedOperation[],
  name: string | undefined,
): readonly ExportedOperation[] {
  const tunable = operations.filter(({ operation }) => operation.choices !== undefined);
  const found = name === undefined ? tunable : tunable.filter((each) => each.name === name);
  if (found.length > 0) return found;
  throw new TilewrightError({
    code: "TW5014",
    message:
      name === undefined
        ? `${file} exports no operation with choices`
        : `${file} exports no operation ${name} with choices`,
    location: unknownLocation,
    expected:
      tunable.map((each) => each.name).join(", ") ||
      "export const mine = tunable({ … }), or an operation of the library",
    found: name ?? (operations.map((each) => each.name).join(", ") || "no operation"),
  });
}

const barWidth = 24;

/** How far it is: a bar, the choices that are done with, and the time left. */
function progressText(name: string, { done, all, sizes, doing, remaining }: TuneProgress): string {
  const full = all === 0 ? 0 : Math.round((done / all) * barWidth);
  const bar = `${"█".repeat(full)}${"░".repeat(barWidth - full)}`;
  const left = Number.isFinite(remaining) ? `, ${formatTime(remaining)} left` : "";
  return `${bar} ${done} of ${all}${left}  ${name} ${recordText(sizes)} ${doing}`;
}
