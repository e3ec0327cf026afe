/** A run of a StableHLO program: parsed, verified, evaluated on generated inputs, and planned as kernels. */
import {
  arrayOfTensor,
  evaluate,
  parseGraph,
  tensorOfArray,
  verifyGraph,
} from "../../../../src/graph/index.ts";
import type { Datum, GraphModule } from "../../../../src/graph/index.ts";
import { compilePlan } from "../../../../src/graph/plan/compile.ts";
import { allSteps } from "../../../../src/graph/plan/plan.ts";
import type { Plan } from "../../../../src/graph/plan/plan.ts";
import { isTensor, typeText } from "../../../../src/graph/ops/types.ts";
import type { GraphType } from "../../../../src/graph/ops/types.ts";
import { dtypes } from "../../../../src/formats/dtype.ts";
import { Random } from "../../../../src/support/random.ts";
import type { Kernel } from "../../../../src/ir/node.ts";
import type { FromWorker, PlanReport, Program, RunReport, Settings } from "../protocol.ts";
import { planReport } from "./answers/plan.ts";
import { generatedArray } from "./inputs.ts";
import { Recording } from "./recording.ts";
import type { RecordedArray } from "./recording.ts";
import type { FinishedGraph } from "./finished.ts";
import { SourceLines } from "./source-lines.ts";
import { summarizeArray } from "./values.ts";

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
  let planned: Planned = notPlanned;
  try {
    [graph] = parseGraph(source, name);
    if (graph === undefined) throw new Error("the text has no module");
    verifyGraph(graph);
    post({ kind: "progress", message: "evaluating" });
    arrays = evaluateMain(graph, settings, (text) => {
      post({ kind: "printed", text });
    });
    planned = planOf(graph, lines);
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
    kernels: planned.kernels.map((kernel) => ({
      name: kernel.name,
      line: undefined,
      launch: undefined,
    })),
    reference: undefined,
    returned: undefined,
    milliseconds,
  };
  const recording = new Recording();
  const other = (): Promise<Recording> => Promise.resolve(recording);
  const { kernels, plan } = planned;
  return { report, kernels, arrays: [arrays], recording, settings, lines, other, graph, plan };
}

interface Planned {
  readonly plan: PlanReport;
  /** The kernels that the plan launches, each once. */
  readonly kernels: readonly Kernel[];
}

const notPlanned: Planned = {
  plan: {
    kind: "refused",
    finding: {
      code: "Error",
      title: "not planned",
      summary: "the program did not run",
      line: undefined,
      notes: [],
    },
  },
  kernels: [],
};

/** Devices do not run everything that the evaluator does; then the plan says why. */
function planOf(graph: GraphModule, lines: SourceLines): Planned {
  try {
    const plan = compilePlan(graph, "main");
    return { plan: planReport(plan), kernels: launchedKernels(plan) };
  } catch (error) {
    return { plan: { kind: "refused", finding: lines.finding(error) }, kernels: [] };
  }
}

function launchedKernels({ steps }: Plan): readonly Kernel[] {
  const launched = [...allSteps(steps)].flatMap((step) =>
    step.kind === "launch" ? [step.kernel.kernel] : [],
  );
  return [...new Set(launched)];
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
