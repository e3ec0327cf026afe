/**
 * Random programs whose results are known: ops with unusual attributes and types, at the edges of their numbers, each computed a second
 * time from the specification (`odd/`). The evaluator, the printed program, the passes, a batch and a device have to give the same bits. A few run here;
 * `PROGRAMS=20000 SEED=1 npx vitest run test/graph/known-programs.test.ts` runs many, and `DEVICE=emulator` or `gpu` elsewhere.
 */
import { evaluate, tensor } from "../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import { runPasses } from "../../src/graph/passes/pass-order.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { parseGraph, printGraph } from "../../src/graph/text/index.ts";
import {
  allocateTensorData,
  moduleOf as moduleOfRegion,
  sizeOf,
} from "../../src/graph/ops/index.ts";
import type { GraphModule } from "../../src/graph/ops/index.ts";
import { vmap } from "../../src/graph/transform/vmap.ts";
import { verifyGraph } from "../../src/graph/verify/index.ts";
import type { Device } from "../../src/device/device.ts";
import { difference, knownProgram } from "./odd/harness.ts";
import type { KnownProgram } from "./odd/harness.ts";
import { testPrograms } from "./seeds.ts";

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
  module: GraphModule,
  inputs: readonly Tensor[],
  seed: number,
): readonly Tensor[] | undefined {
  const flags = inputs.map((_, i) => (seed >> i) % 2 === 1);
  const body = module.functions.get("main")?.body;
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

/** How those who run a program differ from what it is known to give. */
async function differences(
  device: Device,
  { text, inputs, results }: KnownProgram,
  seed: number,
): Promise<readonly string[]> {
  const module = moduleOf(text);
  const run = (each: GraphModule) => evaluate(each, "main", inputs) as readonly Tensor[];
  const found: { readonly [who: string]: readonly Tensor[] } = {
    evaluator: run(module),
    printed: run(moduleOf(printGraph(module))),
    passes: run(runPasses(module)),
    batched: batched(module, inputs, seed) ?? run(module),
    [device.name]: await onDevice(device, module, inputs),
  };
  return Object.entries(found).flatMap(([who, tensors]) =>
    results.flatMap((value, i) => {
      const what = difference(tensors[i] as Tensor, value);
      return what === undefined ? [] : [`${who}: ${what}`];
    }),
  );
}

testPrograms(150, async (device, seed) => {
  const program = knownProgram(seed);
  const found = program && (await differences(device, program, seed));
  return found?.map((what) => `${what}\n${program?.text}`);
});
