/** Passes keep the meaning of kernels: random ones give the same arrays before and after. */
import { expect, test } from "vitest";
import { allocateElements, isFloat } from "../src/formats/dtype.ts";
import type { DType, Elements } from "../src/formats/dtype.ts";
import { readElement, writeElement } from "../src/formats/values.ts";
import type { Kernel } from "../src/ir/node.ts";
import { printKernel } from "../src/ir/printer.ts";
import { canonicalize } from "../src/passes/canonicalize/index.ts";
import { commonSubexpressions } from "../src/passes/common-subexpressions.ts";
import { deadCode } from "../src/passes/dead-code.ts";
import { foldConstants } from "../src/passes/fold-constants.ts";
import { hoistInvariants } from "../src/passes/hoist-invariants.ts";
import { runPasses } from "../src/passes/pass-order.ts";
import { simulate } from "../src/sim/index.ts";
import { Random } from "../src/support/random.ts";
import { columns } from "./support/random-accesses.ts";
import { randomKernel } from "./support/random-kernel.ts";
import { takesAll } from "./support/sample.ts";
import { holdAgainstFacts } from "./support/held-facts.ts";

/** Not a multiple of a block's rows, so the last block has a tail. */
const rows = 10;

const passes: Readonly<Record<string, (kernel: Kernel) => Kernel>> = {
  canonicalize,
  foldConstants,
  commonSubexpressions,
  hoistInvariants,
  deadCode,
  "the pipeline": runPasses,
};

function randomElements(dtype: DType, random: Random): Elements {
  const lanes = allocateElements(dtype, rows * columns);
  for (let index = 0; index < lanes.length; index++)
    writeElement(dtype, lanes, index, random.pick([0, -0, 1, -1, 3, random.normal() * 10]));
  return lanes;
}

/** Runs the kernel on arrays that follow from the seed; gives its outputs as text, and its findings. */
async function run(kernel: Kernel, seed: number): Promise<Readonly<Record<string, string>>> {
  const random = new Random(seed);
  const arrays = new Map<string, { dtype: DType; data: Elements; initialised: boolean }>();
  for (const { name, role, value } of kernel.parameters)
    if (value.type.kind === "ref") {
      const { dtype } = value.type;
      arrays.set(name, {
        dtype,
        data: randomElements(dtype, random),
        initialised: role === "input",
      });
    }
  const scalars = new Map<string, number>([
    ["count", random.below(5) - 1],
    ["factor", random.normal()],
  ]);
  const dimensions = new Map([["n", rows]]);
  const { findings } = await simulate(
    kernel,
    { arrays, scalars, dimensions },
    { observe: holdAgainstFacts(kernel, dimensions) },
  );
  const outputs = kernel.parameters.filter(({ role }) => role === "output");
  return Object.fromEntries([
    ["findings", findings.map(({ message }) => message).join("\n")],
    ...outputs.map(({ name }) => [name, lanesText(arrays.get(name) ?? expect.fail())]),
  ]) as Record<string, string>;
}

/** Every lane as a number; the payloads of NaNs are not compared. */
function lanesText({ dtype, data }: { dtype: DType; data: Elements }): string {
  const texts = [];
  for (let index = 0; index < data.length; index++) {
    const value = readElement(dtype, data, index);
    texts.push(isFloat(dtype) && Object.is(value, -0) ? "-0" : String(value));
  }
  return texts.join(" ");
}

test("random kernels give the same arrays before and after each pass", async () => {
  for (let seed = 0; seed < (takesAll ? 60 : 30); seed++) {
    const kernel = randomKernel(seed);
    const before = await run(kernel, seed);
    for (const [name, pass] of Object.entries(passes)) {
      const changed = pass(kernel);
      if (changed === kernel) continue;
      const after = await run(changed, seed);
      expect(after, `randomKernel(${seed}) after ${name}:\n${printKernel(changed)}`).toEqual(
        before,
      );
    }
  }
});
