/** Random kernels through the parser, the verifier and the passes. */
import { expect, test } from "vitest";
import type { Kernel } from "../src/ir/node.ts";
import { parseModule } from "../src/ir/parser/parser.ts";
import { printModule } from "../src/ir/printer.ts";
import { verifyKernel } from "../src/ir/verify/index.ts";
import { canonicalize } from "../src/passes/canonicalize/index.ts";
import { commonSubexpressions } from "../src/passes/common-subexpressions.ts";
import { deadCode } from "../src/passes/dead-code.ts";
import { foldConstants } from "../src/passes/fold-constants.ts";
import { hoistInvariants } from "../src/passes/hoist-invariants.ts";
import { runPasses } from "../src/passes/pass-order.ts";
import { randomKernel } from "./support/random-kernel.ts";
import { takesAll } from "./support/sample.ts";

function textOf(kernel: Kernel): string {
  return printModule({ kernels: [kernel] }, { locations: true });
}

/** Runs `check` for seeds from 0, half of them unless all are asked for; a failure names the seed. */
function forEachSeed(count: number, check: (seed: number) => void): void {
  for (let seed = 0; seed < (takesAll ? count : count / 2); seed++)
    try {
      check(seed);
    } catch (error) {
      throw new Error(`randomKernel(${seed})`, { cause: error });
    }
}

test("random kernels are valid, and parse back to the text they print", () => {
  forEachSeed(150, (seed) => {
    const kernel = randomKernel(seed);
    verifyKernel(kernel);
    const text = textOf(kernel);
    const parsed = parseModule(text);
    expect(printModule(parsed, { locations: true })).toBe(text);
  });
});

test("each pass leaves a valid kernel that it does not change again", () => {
  const passes = { canonicalize, foldConstants, commonSubexpressions, hoistInvariants, deadCode };
  forEachSeed(75, (seed) => {
    const kernel = randomKernel(seed);
    for (const [name, pass] of Object.entries(passes)) {
      const once = pass(kernel);
      verifyKernel(once);
      expect(pass(once) === once, `${name} of its own result`).toBe(true);
    }
  });
});

test("the pipeline leaves valid kernels at every step, and nothing to do for a second run", () => {
  forEachSeed(75, (seed) => {
    const once = runPasses(randomKernel(seed), { verify: true });
    expect(runPasses(once) === once).toBe(true);
  });
});
