/** Chains in which each value is asked for at two sets of points. */
import { expect, test } from "vitest";
import { allSteps } from "../plan/plan.ts";
import { compilePlan } from "../plan/compile.ts";
import { parseGraph } from "../text/index.ts";

/** x is written into itself `length` times, each time from another place of it. */
function chain(length: number): string {
  const lines = Array.from(
    { length },
    (_, i) => `
    %s${i} = stablehlo.slice %x${i} [0:4] : (tensor<8xf32>) -> tensor<4xf32>
    %n${i} = stablehlo.negate %s${i} : tensor<4xf32>
    %x${i + 1} = stablehlo.dynamic_update_slice %x${i}, %n${i}, %at : (tensor<8xf32>, tensor<4xf32>, tensor<i32>) -> tensor<8xf32>`,
  );
  return `module {
  func.func @main(%x0: tensor<8xf32>, %at: tensor<i32>) -> tensor<8xf32> {${lines.join("")}
    return %x${length} : tensor<8xf32>
  }
}`;
}

function launches(length: number): number {
  const [module] = parseGraph(chain(length));
  if (module === undefined) throw new Error("no program");
  return [...allSteps(compilePlan(module, "main").steps)].length;
}

test("a short chain of updates is one kernel", () => {
  expect(launches(3)).toBe(1);
});

test("a long chain of updates is several kernels, each of few sets of points", () => {
  const found = launches(60);
  expect(found).toBeGreaterThan(8);
  expect(found).toBeLessThan(61);
});
