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

test("a chain that is too deep for one kernel is several", () => {
  const lines = Array.from(
    { length: 3000 },
    (_, i) => `%${i + 1} = stablehlo.sine %${i} : tensor<4xf32>`,
  );
  const [module] = parseGraph(`func.func @main(%0: tensor<4xf32>) -> tensor<4xf32> {
    ${lines.join("\n")}
    return %3000 : tensor<4xf32> }`);
  if (module === undefined) throw new Error("no program");
  expect(compilePlan(module, "main").steps.length).toBe(12);
});

test("what is used behind a cut of a long chain is not computed again there", () => {
  const lines = Array.from(
    { length: 200 },
    (_, i) => `%a${i} = stablehlo.sine %x${i} : tensor<4xf32>
      %b${i} = stablehlo.cosine %a${i} : tensor<4xf32>
      %x${i + 1} = stablehlo.add %x${i}, %b${i} : tensor<4xf32>`,
  );
  const [module] = parseGraph(`func.func @main(%x0: tensor<4xf32>) -> tensor<4xf32> {
    ${lines.join("\n")}
    return %x200 : tensor<4xf32> }`);
  if (module === undefined) throw new Error("no program");
  const { steps } = compilePlan(module, "main");
  const sines = steps.map((step) => {
    const ops = step.kind === "launch" ? step.kernel.kernel.body.ops : [];
    return ops.filter((op) => op.kind === "unary" && op.attributes.fn === "sin").length;
  });
  expect(sines.length).toBeGreaterThan(1);
  expect(sines.reduce((sum, count) => sum + count, 0)).toBe(200);
});

test("a program that goes back along a long chain keeps some of it, and computes the rest again", () => {
  const length = 250;
  const forth = Array.from(
    { length },
    (_, i) => `%x${i + 1} = stablehlo.sine %x${i} : tensor<4xf32>`,
  );
  const back = Array.from(
    { length },
    (_, i) => `%y${i + 1} = stablehlo.add %y${i}, %x${length - i} : tensor<4xf32>`,
  );
  const [module] =
    parseGraph(`func.func @main(%x0: tensor<4xf32>, %y0: tensor<4xf32>) -> tensor<4xf32> {
    ${[...forth, ...back].join("\n")}
    return %y${length} : tensor<4xf32> }`);
  if (module === undefined) throw new Error("no program");
  // One of 40 is kept; all of them would be 206 launches of one op each.
  expect(compilePlan(module, "main").steps.length).toBeLessThan(10);
});

test("results that are too many for one kernel are those of several", () => {
  const numbers = Array.from({ length: 150 }, (_, i) => i + 1);
  const lines = numbers.map((i) => `%${i} = stablehlo.sine %${i - 1} : tensor<4xf32>`);
  const types = numbers.map(() => "tensor<4xf32>").join(", ");
  const [module] = parseGraph(`func.func @main(%0: tensor<4xf32>) -> (${types}) {
    ${lines.join("\n")}
    return ${numbers.map((i) => `%${i}`).join(", ")} : ${types} }`);
  if (module === undefined) throw new Error("no program");
  const { steps } = compilePlan(module, "main");
  expect(steps.map((step) => (step.kind === "launch" ? step.outputs.length : 0))).toEqual([
    64, 64, 22,
  ]);
});

test("a view that many kernels use is computed in each of them", () => {
  const sums = Array.from(
    { length: 20 },
    (_, i) =>
      `%z${i} = stablehlo.constant dense<${i}.0> : tensor<f32>
       %r${i} = stablehlo.reduce(%t init: %z${i}) applies stablehlo.add across dimensions = [${i % 2}] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
       %e${i} = stablehlo.custom_call @Sharding(%r${i}) : (tensor<4xf32>) -> tensor<4xf32>`,
  );
  const names = sums.map((_, i) => `%e${i}`).join(", ");
  const types = sums.map(() => "tensor<4xf32>").join(", ");
  const [module] = parseGraph(`func.func @main(%x: tensor<4x4xf32>) -> (${types}) {
    %t = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
    ${sums.join("\n")}
    return ${names} : ${types}
  }`);
  if (module === undefined) throw new Error("no program");
  const kernels = [...allSteps(compilePlan(module, "main").steps)].flatMap((step) =>
    step.kind === "launch" ? [step.kernel.kernel.name] : [],
  );
  expect(kernels.filter((name) => name.includes("transpose"))).toEqual([]);
});

test("a constant that is asked for in a branch has memory", () => {
  const [module] = parseGraph(`func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
    %k = stablehlo.constant dense<1> : tensor<i32>
    %r = "stablehlo.if"(%p) ({
      %c = "stablehlo.case"(%k) ({ stablehlo.return %x : tensor<f32> }, {
        %n = stablehlo.negate %x : tensor<f32>
        stablehlo.return %n : tensor<f32> }) : (tensor<i32>) -> tensor<f32>
      stablehlo.return %c : tensor<f32> }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
    return %r : tensor<f32> }`);
  if (module === undefined) throw new Error("no program");
  const [first] = compilePlan(module, "main").steps;
  expect(first?.kind).toBe("launch");
});
