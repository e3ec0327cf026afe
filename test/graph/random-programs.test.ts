/**
 * Random programs, with gradients and batches in any nesting, on a device against the evaluator. A few run here;
 * `PROGRAMS=2000 SEED=1 npx vitest run test/graph/random-programs.test.ts` runs many, and `DEVICE=emulator` or `gpu`
 * elsewhere.
 * Every one is held to the rule of programs with the evaluator in f32 as the other compiler.
 */
import { expect, test } from "vitest";
import { f32, fromNumbers } from "../../src/formats/index.ts";
import { disagreement, evaluate, tensorOfArray } from "../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import { compilePlan } from "../../src/graph/plan/compile.ts";
import { Program } from "../../src/graph/plan/program.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { open } from "../../src/runtime/open.ts";
import type { DeviceName } from "../../src/runtime/open-options.ts";
import { Random } from "../../src/support/random.ts";
import { randomProgram } from "./random-programs.ts";

const { PROGRAMS = "12", SEED = "1", DEVICE = "simulator" } = process.env;

/** How a device's results differ from the evaluator's. */
async function difference(
  device: Awaited<ReturnType<typeof open>>,
  seed: number,
): Promise<string | undefined> {
  const { text, shape } = randomProgram(seed);
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  const random = new Random(seed + 1);
  const count = shape.reduce((product, extent) => product * extent, 1);
  const numbers = Float32Array.from({ length: count }, () => 2 * random.uniform() - 1);
  const inputs = [tensorOfArray(fromNumbers(f32, shape, numbers))];
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = await program.run(inputs);
    const ours = evaluate(module, "main", inputs) as readonly Tensor[];
    const reference = evaluate(module, "main", inputs, { widened: true }) as readonly Tensor[];
    return found
      .map((each, i) => disagreement(each, ours[i] as Tensor, reference[i] as Tensor))
      .find((difference) => difference !== undefined);
  } finally {
    program.dispose();
  }
}

test(
  `${PROGRAMS} programs from seed ${SEED} on the ${DEVICE}`,
  { timeout: 3_600_000 },
  async () => {
    const device = await open(DEVICE as DeviceName, { onNotes: () => undefined });
    const wrong: string[] = [];
    try {
      for (let seed = Number(SEED); seed < Number(SEED) + Number(PROGRAMS); seed++) {
        const text = await difference(device, seed);
        if (text !== undefined) wrong.push(`seed ${seed}: ${text}`);
      }
    } finally {
      device.dispose();
    }
    expect(wrong).toEqual([]);
  },
);
