/** A run of a StableHLO program: parsed, verified, and evaluated on generated inputs. */
import {
  arrayOfTensor,
  evaluate,
  parseGraph,
  tensorOfArray,
  verifyGraph,
} from "../../../../src/graph/index.ts";
import type { Datum, GraphModule } from "../../../../src/graph/index.ts";
import { isTensor, typeText } from "../../../../src/graph/ops/types.ts";
import type { GraphType } from "../../../../src/graph/ops/types.ts";
import { dtypes } from "../../../../src/formats/dtype.ts";
import { Random } from "../../../../src/support/random.ts";
import type { FromWorker, Program, RunReport, Settings } from "../protocol.ts";
import { generatedArray } from "./inputs.ts";
import { Recording } from "./recording.ts";
import type { RecordedArray } from "./recording.ts";
import type { FinishedRun } from "./run.ts";
import { SourceLines } from "./source-lines.ts";
import { summarizeArray } from "./values.ts";

export interface FinishedGraph extends FinishedRun {
  readonly graph: GraphModule | undefined;
}

export function runGraph(
  { name, source }: Program,
  settings: Settings,
  post: (message: FromWorker) => void,
): FinishedGraph {
  const begin = performance.now();
  const lines = new SourceLines(name);
  let graph: GraphModule | undefined;
  let arrays: readonly RecordedArray[] = [];
  let thrown: unknown;
  try {
    [graph] = parseGraph(source, name);
    if (graph === undefined) throw new Error("the text has no module");
    verifyGraph(graph);
    post({ kind: "progress", message: "evaluating" });
    arrays = evaluateMain(graph, settings, (text) => {
      post({ kind: "printed", text });
    });
  } catch (error) {
    thrown = error;
  }
  const milliseconds = performance.now() - begin;
  const report: RunReport = {
    findings: thrown === undefined ? [] : [lines.finding(thrown)],
    deadlock: undefined,
    launches:
      arrays.length === 0
        ? []
        : [
            {
              kernel: "main",
              device: "evaluator",
              dimensions: [],
              scalars: [],
              arrays: arrays.map(summarizeArray),
              milliseconds,
            },
          ],
    kernels: [],
    reference: undefined,
    returned: undefined,
    milliseconds,
  };
  const recording = new Recording();
  return { report, kernels: [], arrays: [arrays], recording, settings, lines, graph };
}

function evaluateMain(
  module: GraphModule,
  { generator, seed }: Settings,
  print: (text: string) => void,
): readonly RecordedArray[] {
  const main = module.functions.get("main");
  if (main === undefined) throw new Error("the module has no function @main");
  const random = new Random(seed);
  const inputs = main.body.parameters.map(({ type }) => {
    const { dtype, shape } = arrayType(type);
    return generatedArray(dtype, shape, generator, random);
  });
  const results = evaluate(
    module,
    "main",
    inputs.map((each) => tensorOfArray(each)),
    { seed, print },
  );
  return [
    ...inputs.map((value, index) => ({ name: `%arg${index}`, role: "input", value })),
    ...results.flatMap((datum, index) => resultArray(datum, index)),
  ];
}

function arrayType(type: GraphType) {
  const found = isTensor(type) ? dtypeOf(type.element) : undefined;
  if (!isTensor(type) || found === undefined)
    throw new Error(`there is no generator for inputs of type ${typeText(type)}`);
  return { dtype: found, shape: type.shape };
}

function dtypeOf(element: unknown) {
  return Object.values(dtypes).find((dtype) => dtype === element || dtype.name === element);
}

function resultArray(datum: Datum, index: number): readonly RecordedArray[] {
  const value = datum.kind === "tensor" ? arrayOfTensor(datum) : undefined;
  return value === undefined ? [] : [{ name: `result ${index}`, role: "output", value }];
}
