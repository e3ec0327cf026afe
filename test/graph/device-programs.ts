/** Programs of files on devices, held against the widened evaluator and JAX's results by the rule of programs. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Device } from "../../src/device/device.ts";
import { readNpz } from "../../src/files/index.ts";
import { disagreement, evaluate, namedTensors } from "../../src/graph/evaluate/index.ts";
import type { Datum } from "../../src/graph/evaluate/index.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { readText, repositoryRoot } from "../source-files.ts";

/** What a device's results say against a file's; undefined where they agree. */
export async function programDisagreement(
  device: Device,
  file: string,
): Promise<string | undefined> {
  const [module] = parseGraph(readText(file), file);
  const main = module?.functions.get("main");
  if (module === undefined || main === undefined) throw new Error(`${file} has no @main`);
  const bytes = readFileSync(join(repositoryRoot, file.replace(/\.mlir$/, ".npz")));
  const arrays = await readNpz(new Uint8Array(bytes));
  const { parameters, results } = main.body;
  const typesOf = (values: typeof parameters) => values.map(({ type }) => type);
  const inputs = namedTensors(arrays, "in", typesOf(parameters));
  const expected = namedTensors(arrays, "out", typesOf(results));
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = await program.run(inputs);
    const reference = evaluate(module, "main", inputs, { widened: true });
    for (const [i, each] of expected.entries()) {
      const difference = disagreement(found[i] as Datum, each, reference[i] as Datum);
      if (difference !== undefined) return `result ${i}: ${difference}`;
    }
    return undefined;
  } finally {
    program.dispose();
  }
}
