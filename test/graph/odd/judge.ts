/**
 * Runs a program whose results are known in every way there is: the evaluator, the program printed and read back, the passes, a batch,
 * and devices.
 */
import { evaluate, tensor } from "../../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../../src/graph/evaluate/index.ts";
import { inlinePass } from "../../../src/graph/passes/inline.ts";
import { runPasses } from "../../../src/graph/passes/pass-order.ts";
import { compilePlan } from "../../../src/graph/plan/compile.ts";
import { Program } from "../../../src/graph/plan/program.ts";
import { parseGraph, printGraph } from "../../../src/graph/text/index.ts";
import {
  allocateTensorData,
  moduleOf as moduleOfRegion,
  sizeOf,
} from "../../../src/graph/ops/index.ts";
import type { GraphModule } from "../../../src/graph/ops/index.ts";
import { vmap } from "../../../src/graph/transform/vmap.ts";
import { verifyGraph } from "../../../src/graph/verify/index.ts";
import type { Device } from "../../../src/device/device.ts";
import { difference } from "./harness.ts";
import type { KnownProgram } from "./harness.ts";

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  verifyGraph(module);
  return module;
}

async function onDevice(
  device: Device,
  module: GraphModule,
  inputs: readonly Tensor[],
): Promise<readonly Tensor[]> {
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    return await program.run(inputs);
  } finally {
    program.dispose();
  }
}

/** The program over two examples that are the same; of its parameters some, by the bits of the seed, have the batch. */
function batched(
  calling: GraphModule,
  inputs: readonly Tensor[],
  seed: number,
): readonly Tensor[] | undefined {
  const flags = inputs.map((_, i) => (seed >> i) % 2 === 1);
  const body = inlinePass.run(calling).functions.get("main")?.body;
  if (body === undefined || !flags.includes(true)) return undefined;
  const given = inputs.map(({ element, shape, data }, i) => {
    if (flags[i] !== true) return tensor(element, shape, data);
    const both = allocateTensorData(element, 2 * sizeOf(shape));
    both.set(data as never);
    both.set(data as never, data.length);
    return tensor(element, [2, ...shape], both);
  });
  const graph = moduleOfRegion(vmap(body, 2, flags));
  verifyGraph(graph);
  return (evaluate(graph, "main", given) as readonly Tensor[]).map(({ element, shape, data }) =>
    tensor(element, shape.slice(1), data.slice(data.length / 2)),
  );
}

type Results = readonly Tensor[];

/** How those who run a program differ from what it is known to give. */
export async function differences(
  devices: readonly Device[],
  { text, inputs, results }: KnownProgram,
  seed: number,
): Promise<readonly string[]> {
  const module = moduleOf(text);
  const run = (each: GraphModule): Results => evaluate(each, "main", inputs) as Results;
  const ways: readonly (readonly [string, () => Results | Promise<Results> | undefined])[] = [
    ["evaluator", () => run(module)],
    ["printed", () => run(moduleOf(printGraph(module)))],
    ["passes", () => run(runPasses(module))],
    ["batched", () => batched(module, inputs, seed)],
    ...devices.map((device) => [device.name, () => onDevice(device, module, inputs)] as const),
  ];
  const wrong: string[] = [];
  for (const [who, way] of ways) {
    try {
      const tensors = await way();
      if (tensors === undefined) continue;
      for (const [i, value] of results.entries()) {
        const what = difference(tensors[i] as Tensor, value);
        if (what !== undefined) wrong.push(`${who}: ${what}`);
      }
    } catch (error) {
      wrong.push(`${who}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return wrong;
}
