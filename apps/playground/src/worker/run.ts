/**
 * A run: the program is loaded, which traces its kernels; then its `main` is called with a device, or each of its kernels
 * is launched on generated inputs. What the run leaves behind is kept for questions.
 */
import type { Device } from "../../../../src/device/device.ts";
import { printKernel } from "../../../../src/ir/printer.ts";
import type { Kernel } from "../../../../src/ir/node.ts";
import { isKernelDefinition, kernel as traceKernel } from "../../../../src/lang/index.ts";
import type { KernelDefinition } from "../../../../src/lang/index.ts";
import type { DeviceName, OpenOptions } from "../../../../src/index.ts";
import { TilewrightError } from "../../../../src/support/diagnostics.ts";
import type {
  Finding,
  FromWorker,
  KernelSummary,
  Program,
  RunReport,
  Settings,
} from "../protocol.ts";
import { deadlockGraph } from "./deadlock-graph.ts";
import { generatedLaunch } from "./inputs.ts";
import { loadProgram } from "./load-program.ts";
import { compiler, importable } from "./modules.ts";
import type { Importable, ModuleExports } from "./modules.ts";
import { openRecorded } from "./recorded-device.ts";
import { Recording } from "./recording.ts";
import { SourceLines } from "./source-lines.ts";
import type { FinishedRun } from "./finished.ts";
import { textOf } from "./texts.ts";
import { comparedLaunch, summarizeLaunch } from "./values.ts";

type Post = (message: FromWorker) => void;

/** More kernels than this are more than anybody chooses from. */
const shownKernels = 40;

/** One execution of the program on one device. */
class Execution {
  readonly recording = new Recording();
  readonly traced: Kernel[] = [];
  readonly #devices: Device[] = [];
  readonly #settings: Settings;
  readonly #lines: SourceLines;
  readonly #post: Post;

  constructor(settings: Settings, lines: SourceLines, post: Post) {
    this.#settings = settings;
    this.#lines = lines;
    this.#post = post;
  }

  /** Runs everything; gives what `main` returned, and in a list what was thrown, which may be anything. */
  async run({
    source,
  }: Program): Promise<{ readonly returned: unknown; readonly thrown: readonly unknown[] }> {
    let returned: unknown;
    const thrown: unknown[] = [];
    try {
      const exports = await loadProgram(source, this.#modules(), this.#lines);
      this.#post({ kind: "progress", message: `running on the ${this.#settings.device}` });
      returned = await this.#launchAll(exports);
    } catch (error) {
      thrown.push(error);
    }
    await this.recording.settled();
    for (const device of this.#devices) device.dispose();
    return { returned, thrown };
  }

  async #launchAll(exports: ModuleExports): Promise<unknown> {
    const { main } = exports;
    if (typeof main === "function")
      return (main as (device: Device) => unknown)(await this.#open());
    // A program whose top level has launched something has said all it wants to run.
    if (this.#devices.length > 0) return undefined;
    for (const value of new Set(Object.values(exports)))
      if (isKernelDefinition(value)) await this.#launch(value);
    return undefined;
  }

  async #launch(definition: KernelDefinition): Promise<void> {
    const { inputs, dimensions } = generatedLaunch(definition.kernel, this.#settings);
    const device = await this.#open();
    await device.run(definition, inputs, { dimensions });
  }

  async #open(settings: Settings = this.#settings): Promise<Device> {
    const device = await openRecorded(settings, this.recording, (line) => {
      this.#post({ kind: "printed", text: line });
    });
    this.#devices.push(device);
    return device;
  }

  /** What the program imports: the library, with devices and kernels that are kept. */
  #modules(): { readonly [specifier: string]: Importable } {
    const open = async (name?: DeviceName, options: OpenOptions = {}): Promise<Device> => {
      if (name === "gpu") return (await compiler()).library.open(name, options);
      const { schedule = this.#settings.schedule, seed = this.#settings.seed } = options;
      return this.#open({
        ...this.#settings,
        device: name ?? this.#settings.device,
        schedule,
        seed,
      });
    };
    const kernel = (...given: Parameters<typeof traceKernel>): KernelDefinition => {
      const definition = traceKernel(...given);
      this.traced.push(definition.kernel);
      return definition;
    };
    const { atHand = {}, whole } = importable["tilewright"] ?? {};
    return {
      ...importable,
      tilewright: {
        atHand: { ...atHand, open, kernel },
        whole: async () => ({ ...(await whole?.()), open, kernel }),
      },
    };
  }
}

export async function runProgram(
  program: Program,
  settings: Settings,
  post: Post,
): Promise<FinishedRun> {
  const begin = performance.now();
  const lines = new SourceLines(program.name);
  const execution = new Execution(settings, lines, post);
  post({ kind: "progress", message: "tracing" });
  const { returned, thrown } = await execution.run(program);
  const { recording } = execution;
  const milliseconds = performance.now() - begin;
  let ranOther: Promise<Recording> | undefined;
  const runOnOther = (): Promise<Recording> =>
    (ranOther ??= runOther(program, settings, lines, post));
  const other = settings.compare ? await runOnOther() : undefined;
  const kernels = distinctKernels([...recording.compiled, ...execution.traced]);
  const report: RunReport = {
    findings: findingsOf(recording.findings, thrown, lines),
    deadlock: recording.deadlock && deadlockGraph(recording.deadlock, lines),
    launches: recording.launches.map((launch, position) =>
      other === undefined
        ? summarizeLaunch(launch)
        : comparedLaunch(launch, other.launches[position]),
    ),
    kernels: kernels.map((kernel) => describeKernel(kernel, recording, lines)),
    ...returnedValue(returned),
    milliseconds,
  };
  const arrays = recording.launches.map((launch) => launch.arrays);
  return { report, kernels, arrays, recording, settings, lines, other: runOnOther };
}

/** The same program on the other device. */
async function runOther(
  program: Program,
  settings: Settings,
  lines: SourceLines,
  post: Post,
): Promise<Recording> {
  const device = settings.device === "simulator" ? "emulator" : "simulator";
  post({ kind: "progress", message: `running on the ${device}, to compare` });
  const execution = new Execution({ ...settings, device }, lines, (message) => {
    // What it prints was printed already.
    if (message.kind !== "printed") post(message);
  });
  await execution.run(program);
  return execution.recording;
}

/** Kernels with the same text are one; those that were launched come first. */
function distinctKernels(kernels: readonly Kernel[]): readonly Kernel[] {
  const distinct = new Map(
    [...kernels].reverse().map((kernel) => [printKernel(kernel), kernel] as const),
  );
  return [...distinct.values()].reverse().slice(0, shownKernels);
}

function describeKernel(
  { name, location }: Kernel,
  { launches }: Recording,
  lines: SourceLines,
): KernelSummary {
  const launch = launches.findIndex(({ kernel }) => kernel.name === name);
  return { name, line: lines.lineOf(location.position), launch: launch < 0 ? undefined : launch };
}

/** A launch throws its first finding; what else is thrown is a finding too. */
function findingsOf(
  found: readonly TilewrightError[],
  thrown: readonly unknown[],
  lines: SourceLines,
): readonly Finding[] {
  const others = thrown.filter(
    (each) =>
      !(each instanceof TilewrightError) ||
      !found.some(({ code, summary }) => code === each.code && summary === each.summary),
  );
  return [...found, ...others].map((each) => lines.finding(each));
}

function returnedValue(returned: unknown): Pick<RunReport, "reference" | "returned"> {
  if (returned === undefined) return { reference: undefined, returned: undefined };
  const reference = comparisonOf(returned);
  return {
    reference,
    returned: reference === undefined ? textOf(returned, longestText) : undefined,
  };
}

/** What `compareWithReference` gives, where it is that. */
function comparisonOf(returned: unknown): RunReport["reference"] {
  try {
    const { elements, worst } = returned as { readonly elements: unknown; readonly worst: unknown };
    return typeof elements === "number" && typeof worst === "number"
      ? { elements, worst }
      : undefined;
  } catch {
    return undefined; // Nothing to ask: null, or an object that refuses.
  }
}

const longestText = 2000;
