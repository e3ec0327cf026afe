/**
 * `tilewright run FILE.mlir…`: programs of StableHLO. Of each program of each file runs `@main`, or its only
 * function; its checks must hold, and with --compare its results must agree with those of a file.
 *
 *   --json   [{ "file": "f.mlir", "function": "main", "ok": false, "code": "TW9502", "message": "…" }, …]
 */
import { readFileSync } from "node:fs";
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
import type { Datum } from "../../graph/evaluate/index.ts";
import type { GraphFunction, GraphModule } from "../../graph/ops/index.ts";
import { parseGraph } from "../../graph/text/index.ts";
import { verifyGraph } from "../../graph/verify/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { unknownLocation } from "../../support/location.ts";
import { failureText } from "../failure.ts";
import type { Output } from "../output.ts";

export interface RunProgramsSettings {
  readonly files: readonly string[];
  readonly device: string;
  /** npz files: arrays in0, in1 … for the parameters, out0, out1 … for the results. */
  readonly inputs: string | undefined;
  readonly compare: string | undefined;
  readonly seed: number;
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
}

export async function runProgramsCommand(
  settings: RunProgramsSettings,
  output: Output,
): Promise<number> {
  const { files, device, inputs, compare } = settings;
  if (device !== "evaluator")
    throw new TilewrightError({
      code: "TW5013",
      message: `programs cannot run on the ${device} yet`,
      location: unknownLocation,
      expected: "--device evaluator",
      found: `--device ${device}`,
    });
  const given = inputs === undefined ? {} : await readArrays(inputs);
  const expected = compare === undefined ? undefined : await readArrays(compare);
  const outcomes = files.flatMap((file) => runFile(file, { given, expected, settings, output }));
  for (const outcome of outcomes) report(outcome, output);
  const failed = outcomes.filter(({ ok }) => !ok).length;
  if (outcomes.length > 1)
    output.line(`${outcomes.length - failed} of ${outcomes.length} programs passed`);
  output.document(outcomes);
  return failed === 0 ? 0 : 1;
}

function read(path: string): Uint8Array {
  try {
    return new Uint8Array(readFileSync(path));
  } catch {
    throw new TilewrightError({
      code: "TW5003",
      message: `there is no file ${path}`,
      location: unknownLocation,
    });
  }
}

function readArrays(path: string): Promise<Arrays> {
  return readNpz(read(path));
}

interface Run {
  readonly given: Arrays;
  readonly expected: Arrays | undefined;
  readonly settings: RunProgramsSettings;
  readonly output: Output;
}

function runFile(file: string, run: Run): readonly Outcome[] {
  let modules: readonly GraphModule[];
  try {
    modules = parseGraph(new TextDecoder().decode(read(file)), file);
  } catch (error) {
    return [failed(file, "", error)];
  }
  return modules.map((module) => runProgram(file, module, run));
}

function runProgram(file: string, module: GraphModule, run: Run): Outcome {
  let name = "";
  try {
    const entry = entryOf(module);
    verifyGraph(module);
    ({ name } = entry);
    const results = evaluateEntry(module, entry, run);
    for (const [i, result] of results.entries()) run.output.line(resultText(i, result));
    return { file, function: name, ok: true, code: null, message: "passed" };
  } catch (error) {
    return failed(file, name, error);
  }
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
    found: functions.map((each) => `@${each.name}`).join(", "),
  });
}

function evaluateEntry(
  module: GraphModule,
  { name, body }: GraphFunction,
  { given, expected, settings, output }: Run,
): readonly Datum[] {
  const inputs = namedTensors(
    given,
    "in",
    body.parameters.map(({ type }) => type),
  );
  const { seed } = settings;
  const results = evaluate(module, name, inputs, {
    seed,
    print: (text) => {
      output.text(`${text}\n`);
    },
  });
  if (expected === undefined) return results;
  const theirs = namedTensors(
    expected,
    "out",
    body.results.map(({ type }) => type),
  );
  const reference = evaluate(module, name, inputs, { seed, widened: true });
  for (const [i, each] of theirs.entries()) {
    const difference = disagreement(results[i] as Datum, each, reference[i] as Datum);
    if (difference !== undefined)
      throw new TilewrightError({
        code: "TW5101",
        message: `result ${i} of @${name} disagrees with out${i} of ${settings.compare}`,
        location: unknownLocation,
        found: difference,
      });
  }
  return results;
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
