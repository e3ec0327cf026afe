/** Calls of `tilewright/files`, `tilewright/graph`, `tilewright/bench` and `tilewright/tune`. */
import * as bench from "tilewright/bench";
import * as files from "tilewright/files";
import * as graph from "tilewright/graph";
import * as tuning from "tilewright/tune";
import * as library from "tilewright";
import { method } from "./bad-call.ts";
import type { BadCall, Untyped } from "./bad-call.ts";
import { options, parameter } from "./junk.ts";
import type { Parameter } from "./junk.ts";
import { deviceNamed, numbers, scaled } from "./surroundings.ts";

function from(module: object, name: string, ...parameters: readonly Parameter[]): BadCall {
  const call = (module as { readonly [name: string]: Untyped | undefined })[name];
  if (call === undefined) throw new Error(`there is no export ${name}`);
  return { name, parameters, call };
}

const array = parameter(() => numbers);
const arrays = parameter(() => ({ x: numbers }), "object", "bare");

export const fileCalls: readonly BadCall[] = [
  from(files, "writeNpy", array),
  from(files, "writeNpz", arrays),
  from(files, "writeSafetensors", arrays, options()),
  ...["openNpy", "readNpy"].map((name) =>
    from(
      files,
      name,
      parameter(() => files.writeNpy(numbers)),
      options(),
    ),
  ),
  from(
    files,
    "openNpz",
    parameter(() => files.writeNpz({ x: numbers })),
  ),
  from(
    files,
    "readNpz",
    parameter(() => files.writeNpz({ x: numbers })),
    options(),
  ),
  ...["openSafetensors", "readSafetensors"].map((name) =>
    from(
      files,
      name,
      parameter(() => files.writeSafetensors({ x: numbers })),
    ),
  ),
  from(
    files,
    "scaledArrayFrom",
    parameter(() => files.scaledArrayEntries("w", scaled)),
    parameter(() => "w"),
  ),
  from(
    files,
    "scaledArrayEntries",
    parameter(() => "w", "text", "empty"),
    parameter(() => scaled),
    options(() => ({ schema: "tilewright" })),
  ),
  {
    name: "bench",
    parameters: [
      parameter(() => "device"),
      parameter(() => entry),
      options(() => ({ rounds: 10, launches: 1, warmUp: 0, sets: 1 })),
    ],
    call: async (device, entries, settings) => {
      const open = device === "device" ? await deviceNamed("simulator") : device;
      await (bench.bench as unknown as Untyped)(open, entries, settings);
    },
  },
  from(
    tuning,
    "powerOfTwo",
    parameter(() => 1000, "zero"),
  ),
  from(
    tuning,
    "tunable",
    parameter(() => scaledSpec),
  ),
  {
    name: "tune",
    parameters: [
      parameter(() => "device"),
      parameter(() => tuning.tunable(scaledSpec)),
      parameter(() => ({ cases: [{}] })),
    ],
    call: async (device, operation, settings) => {
      const open = device === "device" ? await deviceNamed("simulator") : device;
      await (tuning.tune as unknown as Untyped)(open, operation, settings);
    },
  },
];

const scaledSpec = {
  name: "scaled",
  choices: { factor: [2, 3] },
  make: ({ factor }: { readonly factor: number }) =>
    library.kernel(
      {
        name: "scaled",
        inputs: { x: library.tensor(library.f32, [4]) },
        outputs: { out: library.tensor(library.f32, [4]) },
      },
      ({ x, out }) => out.store(x.load().mul(factor)),
    ),
};

const entry = { nothing: () => () => undefined };

const text = `module {
  func.func public @main(%arg0: tensor<8xf32>) -> (tensor<8xf32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}`;

const module = (): unknown => graph.parseGraph(text)[0];
const tensor = (): unknown => graph.tensorOfArray({ ...numbers, shape: [8] });

/** A plan of the small program. */
function plan(): graph.Plan {
  return graph.compilePlan(module() as graph.GraphModule, "main");
}

/** A method of a program that is loaded for the call, or its loading. */
function ofProgram(name: "load" | "run" | "bind", ...parameters: readonly Parameter[]): BadCall {
  return {
    name: `Program.${name}`,
    parameters,
    call: async (...values) => {
      const device = await deviceNamed("simulator");
      const plan = graph.compilePlan(module() as graph.GraphModule, "main");
      const program = await graph.Program.load(device, plan);
      const arrays = [0, 1].map(() => device.allocate(numbers.dtype, [8]));
      try {
        const taken = values.map((each) =>
          each === "device" ? device : each === "arrays" ? [arrays.pop()] : each,
        );
        const result: unknown = await method(
          name === "load" ? graph.Program : program,
          name,
        )(...taken);
        if (name !== "run") method(result as object, "dispose")();
      } finally {
        program.dispose();
        for (const each of arrays) each.dispose();
      }
    },
  };
}

export const graphCalls: readonly BadCall[] = [
  ofProgram(
    "load",
    parameter(() => "device"),
    parameter(() => graph.compilePlan(module() as graph.GraphModule, "main")),
  ),
  ofProgram(
    "run",
    parameter(() => [tensor()]),
    options(() => ({ timeLimit: 10_000 })),
  ),
  ofProgram(
    "bind",
    parameter(() => "arrays"),
    parameter(() => "arrays"),
  ),
  from(
    graph,
    "parseGraph",
    parameter(() => text, "empty"),
  ),
  from(graph, "printGraph", parameter(module)),
  from(graph, "verifyGraph", parameter(module)),
  from(graph, "tensorOfArray", array),
  from(graph, "arrayOfTensor", parameter(tensor)),
  from(
    graph,
    "evaluate",
    parameter(module),
    parameter(() => "main"),
    parameter(() => [tensor()], "list"),
    options(),
  ),
  from(graph, "disagreement", parameter(tensor), parameter(tensor), parameter(tensor)),
  from(
    graph,
    "namedTensors",
    parameter(() => ({ in0: numbers }), "object", "bare"),
    parameter(() => "in"),
    parameter(() => [], "list"),
  ),
  from(
    graph,
    "compilePlan",
    parameter(module),
    parameter(() => "main"),
  ),
  from(
    graph,
    "planText",
    parameter(() => graph.compilePlan(module() as graph.GraphModule, "main")),
  ),
  from(graph, "planCosts", parameter(plan)),
  from(
    graph,
    "planNotes",
    parameter(() => graph.planCosts(plan()), "list"),
  ),
  from(
    graph,
    "explainPlan",
    parameter(plan),
    parameter(() => graph.planCosts(plan()), "list"),
  ),
];
