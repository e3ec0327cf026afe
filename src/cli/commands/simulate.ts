/**
 * `tilewright simulate`: a file's `main`, or each of its kernels on random inputs, under the fixed
 * schedule and under seeded ones, with every check; or their PTX on the emulator with as many seeds. What
 * several schedules find is one finding.
 *
 *   brokenHandoff: schedule 4 of 21                         progress, on a terminal
 *
 *   TW3001: …                                               each finding in full, once
 *     note: found under the random schedule, seed 3
 *
 *   kernel         schedules  findings  time                then the table
 *   brokenHandoff  21         1         840 ms
 */
import { open } from "../../runtime/open.ts";
import type { CheckingDevice } from "../../runtime/open-options.ts";
import type { Device } from "../../device/device.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Target } from "../../targets/target.ts";
import { describeTurn, turns } from "../../testing/check-kernel.ts";
import type { Turn } from "../../testing/check-kernel.ts";
import { FindingList } from "../finding-list.ts";
import { formatTable, formatTime } from "../output.ts";
import type { Output } from "../output.ts";
import { redirectOutput, runUserCode } from "../program-output.ts";
import { chooseDimensions, randomInputs, randomNote, requireTaken } from "../random-inputs.ts";
import type { Dimensions } from "../random-inputs.ts";
import { loadUserModule, selectLaunchables } from "../user-module.ts";
import type { Launchable, UserModule } from "../user-module.ts";

export interface SimulateSettings {
  readonly file: string;
  readonly device: CheckingDevice;
  readonly kernel: string | undefined;
  readonly dimensions: Dimensions;
  readonly seed: number;
  readonly schedules: number;
  readonly checks: boolean;
  readonly target: Target;
  /** Of each launch. */
  readonly timeLimit?: number;
  readonly stepLimit?: number;
}

/** Something to run once a schedule. */
interface Subject {
  readonly name: string;
  /** What findings have to say of its inputs. */
  readonly note?: string | undefined;
  run(device: Device): Promise<unknown>;
}

interface SubjectReport {
  readonly name: string;
  readonly schedules: number;
  readonly milliseconds: number;
  readonly findings: readonly TilewrightError[];
}

export async function simulateCommand(settings: SimulateSettings, output: Output): Promise<number> {
  const { file } = settings;
  const module = await runUserCode(output, () => loadUserModule(file));
  const reports: SubjectReport[] = [];
  for (const subject of subjectsOf(module, settings))
    reports.push(await simulateSubject(subject, settings, output));
  for (const line of formatTable([
    ["kernel", "schedules", "findings", "time"],
    ...reports.map(({ name, schedules, findings, milliseconds }) => [
      name,
      String(schedules),
      findings.length === 0 ? "none" : String(findings.length),
      formatTime(milliseconds),
    ]),
  ]))
    output.line(line);
  const clean = reports.every(({ findings }) => findings.length === 0);
  const { device, target, checks, seed } = settings;
  output.document({ file, device, target: target.name, checks, seed, clean, kernels: reports });
  return clean ? 0 : 1;
}

function subjectsOf(module: UserModule, settings: SimulateSettings): readonly Subject[] {
  const { main } = module;
  const { kernel, dimensions } = settings;
  if (main !== undefined && kernel === undefined) {
    requireTaken(dimensions, []);
    return [{ name: "main", run: async (device) => main(device) }];
  }
  const kernels = selectLaunchables(module, kernel);
  requireTaken(dimensions, kernels);
  return kernels.map((exported) => kernelSubject(exported, settings));
}

function kernelSubject(
  { name, definition }: Launchable,
  { dimensions: given, seed, target }: SimulateSettings,
): Subject {
  const dimensions = chooseDimensions(definition.kernel, given, target);
  const inputs = randomInputs(definition.kernel, dimensions, seed);
  return {
    name,
    note: randomNote(definition.kernel, seed),
    run: (device) => device.run(definition, inputs, { dimensions }),
  };
}

async function simulateSubject(
  subject: Subject,
  settings: SimulateSettings,
  output: Output,
): Promise<SubjectReport> {
  const list = new FindingList();
  const planned = turns(settings);
  const start = performance.now();
  for (const [index, turn] of planned.entries()) {
    output.progress(`${subject.name}: schedule ${index + 1} of ${planned.length}`);
    const { found, printed } = await simulateTurn(subject, turn, list, settings);
    // The same text under every schedule would bury the findings.
    if (index === 0 || found.length > 0) output.text(printed);
    if (found.length > 0) output.clearProgress();
    for (const finding of found) output.line(`${finding.message}\n`);
  }
  output.clearProgress();
  return {
    name: subject.name,
    schedules: planned.length,
    milliseconds: performance.now() - start,
    findings: list.findings,
  };
}

interface TurnReport {
  /** What this schedule is the first to find. */
  readonly found: readonly TilewrightError[];
  /** What the program printed. */
  readonly printed: string;
}

/** Runs one schedule. */
async function simulateTurn(
  subject: Subject,
  turn: Turn,
  list: FindingList,
  { device: name, target, checks, timeLimit, stepLimit }: SimulateSettings,
): Promise<TurnReport> {
  const launchFindings: TilewrightError[] = [];
  const onFindings = (findings: readonly TilewrightError[]): void => {
    launchFindings.push(...findings);
  };
  const limits = {
    ...(timeLimit !== undefined && { timeLimit }),
    ...(stepLimit !== undefined && { stepLimit }),
  };
  const device = await open(name, { ...turn, target, checks, onFindings, limits });
  let printed = "";
  const take = (text: string): void => {
    printed += text;
  };
  let thrown: TilewrightError | undefined;
  try {
    await redirectOutput(take, () => subject.run(device));
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    thrown = error;
  } finally {
    device.dispose();
  }
  const notes = [describeTurn(turn), ...(subject.note === undefined ? [] : [subject.note])];
  const found = list.addAll(withThrown(launchFindings, thrown), notes);
  return { found, printed };
}

/** A launch throws its first finding; what else a program throws is a finding too. */
function withThrown(
  findings: readonly TilewrightError[],
  thrown: TilewrightError | undefined,
): readonly TilewrightError[] {
  const isKnown = ({ code, summary }: TilewrightError): boolean =>
    findings.some((finding) => finding.code === code && finding.summary === summary);
  return thrown === undefined || isKnown(thrown) ? findings : [...findings, thrown];
}
