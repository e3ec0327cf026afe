/**
 * `tilewright run FILE.mlir…`: programs of StableHLO. Of each program of each file runs `@main`, or its only
 * function, on a device or on the evaluator; its checks must hold, and with --compare its results must agree with
 * those of a file.
 *
 *   --json   [{ "file": "f.mlir", "function": "main", "ok": false, "code": "TW9502", "message": "…" }, …]
 */
import type { Device } from "../../device/device.ts";
import { isForEvaluator } from "../../arrays/default-device.ts";
import { readNpz } from "../../files/npz.ts";
import { formatArray } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import {
  arrayOfTensor,
  datumText,
  disagreement,
  evaluate,
  namedTensors,
} from "../../graph/evaluate/index.ts";
import type { Datum, Tensor } from "../../graph/evaluate/index.ts";
import type { GraphFunction, GraphModule } from "../../graph/ops/index.ts";
import type { MatmulPrecision } from "../../graph/ops/matmul-precision.ts";
import { compilePlan } from "../../graph/plan/compile.ts";
import { costNotes } from "../../graph/plan/cost-notes.ts";
import { planCosts } from "../../graph/plan/costs.ts";
import { explainPlan } from "../../graph/plan/explain.ts";
import { Program } from "../../graph/plan/program.ts";
import { planText } from "../../graph/plan/text.ts";
import { runOnRanks } from "../../graph/ranks/run-program.ts";
import { cutPrograms, parsePiece } from "../../graph/text/index.ts";
import type { ProgramPiece } from "../../graph/text/index.ts";
import { verifyGraph } from "../../graph/verify/index.ts";
import type { PerformanceNote } from "../../ptx/notes/note.ts";
import { open, openForPrograms } from "../../runtime/open.ts";
import type { DeviceName } from "../../runtime/open-options.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import type { RunLimits } from "../../support/run-limits.ts";
import type { Target } from "../../targets/target.ts";
import { failureText } from "../failure.ts";
import { readFile } from "../files.ts";
import type { Output } from "../output.ts";

export interface RunProgramsSettings {
  readonly files: readonly string[];
  /** The GPU, or the CPU where there is none, and the evaluator for what these refuse, unless given. */
  readonly device: DeviceName | "evaluator" | undefined;
  /** How many ranks run each program together; one program by itself where it is undefined. */
  readonly ranks?: number | undefined;
  /** npz files: arrays in0, in1 … for the parameters, out0, out1 … for the results. */
  readonly inputs: string | undefined;
  readonly compare: string | undefined;
  readonly matmulPrecision: MatmulPrecision;
  readonly seed: number;
  /** Of each program. */
  readonly limits: RunLimits;
  /** What is printed instead of running: the plan, and where its time goes. */
  readonly plan: PlanSettings | undefined;
}

export interface PlanSettings {
  readonly explain: boolean;
  readonly target: Target;
}

interface Arrays {
  readonly [name: string]: HostArray;
}

/** How one program went. */
interface Outcome {
  readonly file: string;
  readonly function: string;
  readonly ok: boolean;
  readonly code: string | null;
  readonly message: string;
  /** Of a program that is planned, not run. */
  readonly launches?: readonly unknown[];
  readonly notes?: readonly PerformanceNote[];
}

export async function runProgramsCommand(
  settings: RunProgramsSettings,
  output: Output,
): Promise<number> {
  const { files, inputs, compare } = settings;
  const given = inputs === undefined ? {} : await readArrays(inputs);
  const expected = compare === undefined ? undefined : await readArrays(compare);
  // What makes a kernel slow is of no use to somebody who has not written it.
  const quiet = { onNotes: () => undefined };
  const isRun = [settings.plan, settings.ranks].every((each) => each === undefined);
  const device =
    isRun && settings.device !== "evaluator"
      ? await (settings.device === undefined ? openForPrograms() : open(settings.device, quiet))
      : undefined;
  const outcomes: Outcome[] = [];
  try {
    for (const file of files)
      outcomes.push(...(await runFile(file, { given, expected, settings, output, device })));
  } finally {
    device?.dispose();
  }
  for (const outcome of outcomes)
    if (settings.plan === undefined || !outcome.ok) report(outcome, output);
  const failed = outcomes.filter(({ ok }) => !ok).length;
  if (outcomes.length > 1)
    output.line(`${outcomes.length - failed} of ${outcomes.length} programs passed`);
  output.document(outcomes);
  return failed === 0 ? 0 : 1;
}

/** The arrays of a file, which is named where it cannot be understood. */
async function readArrays(path: string): Promise<Arrays> {
  const bytes = readFile(path, "an npz file");
  try {
    return await readNpz(bytes);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    const { code, summary, expected, found, remedy, notes } = error;
    throw new TilewrightError({
      code,
      message: `${path}: ${summary}`,
      location: unknownLocation,
      expected,
      found,
      remedy,
      notes: notes.map((note) => ({ message: note.message, location: note })),
    });
  }
}

interface Run {
  readonly given: Arrays;
  readonly expected: Arrays | undefined;
  readonly settings: RunProgramsSettings;
  readonly output: Output;
  /** The evaluator where there is none. */
  readonly device: Device | undefined;
}

async function runFile(file: string, run: Run): Promise<readonly Outcome[]> {
  const outcomes: Outcome[] = [];
  try {
    for (const piece of cutPrograms(
      new TextDecoder().decode(readFile(file, "a program of StableHLO")),
    ))
      outcomes.push(...(await runPiece(file, piece, run)));
    if (outcomes.length === 0)
      throw new TilewrightError({
        code: "TW9504",
        message: `${file} has no program`,
        location: unknownLocation,
        expected: "@main, or a single function",
        found: "no function",
      });
  } catch (error) {
    outcomes.push(failed(file, "", error));
  }
  return outcomes;
}

/** One part of a file; what cannot be read there leaves the other parts as they are. */
async function runPiece(file: string, piece: ProgramPiece, run: Run): Promise<readonly Outcome[]> {
  let modules: readonly GraphModule[];
  try {
    modules = parsePiece(piece, file);
  } catch (error) {
    return [failed(file, "", error)];
  }
  const outcomes: Outcome[] = [];
  for (const module of modules) outcomes.push(await runProgram(file, module, run));
  return outcomes;
}

async function runProgram(file: string, module: GraphModule, run: Run): Promise<Outcome> {
  let name = "";
  try {
    const entry = entryOf(module);
    verifyGraph(module);
    ({ name } = entry);
    const { plan } = run.settings;
    if (plan !== undefined) return printPlan(file, module, name, plan, run);
    const results = await runEntry(module, entry, run);
    for (const [i, result] of results.entries()) run.output.line(resultText(i, result));
    return { file, function: name, ok: true, code: null, message: "passed" };
  } catch (error) {
    return failed(file, name, error);
  }
}

/** Prints the plan of a program instead of running it. */
function printPlan(
  file: string,
  module: GraphModule,
  name: string,
  { explain, target }: PlanSettings,
  { settings: { matmulPrecision }, output }: Run,
): Outcome {
  const plan = compilePlan(module, name, undefined, { matmulPrecision, target });
  const costs = planCosts(plan);
  output.line(planText(plan, { costs }));
  if (explain) output.line(`\n${explainPlan(plan, costs)}`);
  const launches = costs.map(({ location, ...cost }) => ({ ...cost, at: location.position }));
  const notes = costNotes(costs);
  const told = { file, function: name, ok: true, code: null, message: "planned" };
  return { ...told, launches, notes };
}

/** `@main`, or the only function. */
function entryOf(module: GraphModule): GraphFunction {
  const functions = [...module.functions.values()];
  const main = module.functions.get("main") ?? (functions.length === 1 ? functions[0] : undefined);
  if (main !== undefined) return main;
  throw new TilewrightError({
    code: "TW9504",
    message: "the program has neither @main nor a single function",
    location: unknownLocation,
    expected: "@main, or one function",
    found: functions.map((each) => `@${each.name}`).join(", "),
  });
}

/** The results of a program, on the evaluator or on a device, which agree with those of the file if there is one. */
async function runEntry(
  module: GraphModule,
  { name, body }: GraphFunction,
  { given, expected, settings, output, device }: Run,
): Promise<readonly Datum[]> {
  const inputs = namedTensors(
    given,
    "in",
    body.parameters.map(({ type }) => type),
  );
  const { seed, limits } = settings;
  const print = (text: string): void => {
    output.text(`${text}\n`);
  };
  const evaluated = (): readonly Datum[] =>
    evaluate(module, name, inputs, { seed, print, ...limits });
  const results =
    device === undefined
      ? await withoutDevice(module, name, inputs, settings, evaluated)
      : await runOnDevice(device, module, name, { inputs, settings }).catch((error: unknown) => {
          // Nobody has asked for the device that refuses.
          if (settings.device !== undefined || !isForEvaluator(error)) throw error;
          output.report(`@${name} runs on the evaluator: ${error.summary} (${error.code})`);
          return evaluated();
        });
  if (expected !== undefined)
    requireAgreement(results, evaluate(module, name, inputs, { seed, widened: true }), {
      name,
      // Sums of ranks are made in f32.
      units: settings.ranks === undefined ? 2 : 8,
      file: settings.compare ?? "",
      theirs: namedTensors(
        expected,
        "out",
        body.results.map(({ type }) => type),
      ),
    });
  return results;
}

/** On ranks where it is for some, each with the CPU as its device unless another one is named, else on the evaluator. */
function withoutDevice(
  module: GraphModule,
  name: string,
  inputs: readonly Tensor[],
  { device = "cpu", ranks, matmulPrecision }: RunProgramsSettings,
  evaluated: () => readonly Datum[],
): readonly Datum[] | Promise<readonly Datum[]> {
  if (ranks === undefined || device === "evaluator") return evaluated();
  return runOnRanks(module, name, inputs, { ranks, device, matmulPrecision });
}

async function runOnDevice(
  device: Device,
  module: GraphModule,
  name: string,
  {
    inputs,
    settings,
  }: { readonly inputs: readonly Tensor[]; readonly settings: RunProgramsSettings },
): Promise<readonly Datum[]> {
  const { matmulPrecision, limits } = settings;
  const { target } = device;
  const plan = compilePlan(module, name, [], { matmulPrecision, target });
  const program = await Program.load(device, plan);
  try {
    return await program.run(inputs, limits);
  } finally {
    program.dispose();
  }
}

function requireAgreement(
  results: readonly Datum[],
  reference: readonly Datum[],
  {
    name,
    units,
    file,
    theirs,
  }: {
    readonly name: string;
    readonly units: number;
    readonly file: string;
    readonly theirs: readonly Tensor[];
  },
): void {
  for (const [i, each] of theirs.entries()) {
    const difference = disagreement(results[i] as Datum, each, reference[i] as Datum, units);
    if (difference !== undefined)
      throw new TilewrightError({
        code: "TW5101",
        message: `result ${i} of @${name} disagrees with out${i} of ${file}`,
        location: unknownLocation,
        expected: `the elements of out${i}, within what rounding explains`,
        found: difference,
      });
  }
}

function resultText(index: number, result: Datum): string {
  const array = result.kind === "tensor" ? arrayOfTensor(result) : undefined;
  return `result ${index} = ${array === undefined ? datumText(result) : formatArray(array)}`;
}

function failed(file: string, name: string, error: unknown): Outcome {
  const code = error instanceof TilewrightError ? error.code : null;
  return { file, function: name, ok: false, code, message: failureText(error) };
}

function report({ file, function: name, ok, message }: Outcome, output: Output): void {
  const title = name === "" ? file : `${file} @${name}`;
  output.line(`${output.bold(title)}: ${ok ? "passed" : "failed"}`);
  if (!ok && !output.json) output.report(message);
}
