/** Programs that JAX printed, with the inputs it had and the outputs it computed on a CPU. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listFiles, readText, repositoryRoot } from "../../../test/source-files.ts";
import { readNpz } from "../../files/index.ts";
import { parseGraph } from "../text/index.ts";
import { disagreement, evaluate, namedTensors } from "./index.ts";

describe("programs of JAX give JAX's results", () => {
  test.each(listFiles("test/fixtures/programs", /\.mlir$/))("%s", async (file) => {
    const [module] = parseGraph(readText(file), file);
    const main = module?.functions.get("main");
    if (module === undefined || main === undefined) throw new Error(`${file} has no @main`);
    const path = join(repositoryRoot, file.replace(/\.mlir$/, ".npz"));
    const arrays = await readNpz(new Uint8Array(readFileSync(path)));
    const { parameters, results: returned } = main.body;
    const inputs = namedTensors(
      arrays,
      "in",
      parameters.map(({ type }) => type),
    );
    const expected = namedTensors(
      arrays,
      "out",
      returned.map(({ type }) => type),
    );
    const results = evaluate(module, "main", inputs);
    const reference = evaluate(module, "main", inputs, { widened: true });
    expect(expected.length).toBeGreaterThan(0);
    for (const [i, each] of expected.entries())
      expect(disagreement(results[i] ?? each, each, reference[i] ?? each)).toBeUndefined();
  });
});
