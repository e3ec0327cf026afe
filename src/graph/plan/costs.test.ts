/** What launches need and are estimated to take, of programs small enough to be counted by hand. */
import { describe, expect, test } from "vitest";
import { f32, fromNumbers, open } from "tilewright";
import {
  compilePlan,
  explainPlan,
  parseGraph,
  planCosts,
  planNotes,
  planText,
  Program,
  tensorOfArray,
} from "tilewright/graph";
import type { CompileOptions, StepCost } from "tilewright/graph";

function planOf(text: string, options: CompileOptions = {}) {
  const [module] = parseGraph(text, "program.mlir");
  return compilePlan(module ?? expect.fail("the text has a program"), "main", undefined, options);
}

const scaled = (n: number): string => `func.func @main(%x: tensor<${n}xf32>) -> tensor<${n}xf32> {
  %0 = stablehlo.add %x, %x : tensor<${n}xf32> loc("layer3/add")
  return %0 : tensor<${n}xf32>
}`;

const product = (m: number, k: number, n: number, type: string): string => `
  func.func @main(%a: tensor<${m}x${k}x${type}>, %b: tensor<${k}x${n}x${type}>) -> tensor<${m}x${n}x${type}> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<${m}x${k}x${type}>, tensor<${k}x${n}x${type}>) -> tensor<${m}x${n}x${type}>
    return %0 : tensor<${m}x${n}x${type}>
  }`;

describe("rooflines", () => {
  test("a map needs its operand and its result once", () => {
    const [cost] = planCosts(planOf(scaled(1 << 24)));
    expect(cost?.bytes).toBe(2 * 4 * 2 ** 24);
    expect(cost?.roofline).toBeCloseTo(2.5 + (8 * 2 ** 24) / 4.2e6, 1);
    expect(cost?.estimate).toBeCloseTo(cost?.roofline ?? NaN, 0);
    expect(cost?.bound).toBe("memory");
  });

  test("products count at the rate of what they ask for", () => {
    const needed = (type: string, options: CompileOptions = {}) => {
      const costs = planCosts(planOf(product(4096, 4096, 4096, type), options));
      const [cost] = costs.filter(({ flops }) => flops > 1e9);
      return cost ?? expect.fail("there is a product");
    };
    const flops = 2 * 4096 ** 3;
    expect(needed("bf16").flops).toBe(flops);
    expect(needed("bf16").roofline).toBeCloseTo(2.5 + flops / 692e6, 0);
    const f32 = needed("f32");
    expect(f32.products).toBe("tf32 × 3");
    expect(f32.roofline).toBeCloseTo(2.5 + (3 * flops) / 415e6, -1);
    const tf32 = needed("f32", { matmulPrecision: "tf32" });
    expect(tf32.products).toBe("tf32");
    expect(f32.roofline / tf32.roofline).toBeCloseTo(3, 1);
  });

  test("of a table only the rows that are picked are needed", () => {
    const [cost] = planCosts(
      planOf(`func.func @main(%x: tensor<100000x64xf32>, %i: tensor<10x1xi32>) -> tensor<10x64xf32> {
        %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
          collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
          slice_sizes = array<i64: 1, 64>}> : (tensor<100000x64xf32>, tensor<10x1xi32>) -> tensor<10x64xf32>
        return %0 : tensor<10x64xf32>
      }`),
    );
    expect(cost?.bytes).toBeLessThan(3 * 10 * 64 * 4 + 100);
  });
});

describe("estimates", () => {
  test("a large product takes about what its flops do, a small one on few blocks longer", () => {
    const ratio = (m: number, k: number, n: number) => {
      const [cost] = planCosts(planOf(product(m, k, n, "bf16")));
      return (cost?.estimate ?? NaN) / (cost?.roofline ?? NaN);
    };
    expect(ratio(8192, 8192, 8192)).toBeGreaterThan(0.8);
    expect(ratio(8192, 8192, 8192)).toBeLessThan(1.6);
  });

  test("loops with a known number of turns count each", () => {
    const costs = planCosts(
      planOf(`func.func @main(%x: tensor<1024xf32>) -> tensor<1024xf32> {
        %c0 = stablehlo.constant dense<0> : tensor<i32>
        %c1 = stablehlo.constant dense<1> : tensor<i32>
        %c9 = stablehlo.constant dense<90> : tensor<i32>
        %0:2 = stablehlo.while(%i = %c0, %y = %x) : tensor<i32>, tensor<1024xf32>
          cond {
            %1 = stablehlo.compare LT, %i, %c9 : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %1 : tensor<i1>
          } do {
            %2 = stablehlo.add %i, %c1 : tensor<i32>
            %3 = stablehlo.cosine %y : tensor<1024xf32>
            stablehlo.return %2, %3 : tensor<i32>, tensor<1024xf32>
          }
        return %0#1 : tensor<1024xf32>
      }`),
    );
    expect(costs.filter(({ kernel }) => kernel === "cosine").map(({ runs }) => runs)).toEqual([90]);
  });

  test("a target may be named, and is the plan's unless it is", () => {
    const plan = planOf(scaled(1 << 24), { target: "sm_80" });
    expect(plan.target.name).toBe("sm_80");
    const [a100] = planCosts(plan);
    const [h200] = planCosts(plan, "sm_90a");
    expect(a100?.roofline).toBeGreaterThan(2 * (h200?.roofline ?? NaN));
    expect(() => planCosts(plan, "sm_42" as "sm_80")).toThrow("TW4016");
  });
});

/** The cost of a launch as if its kernel waited for memory all the time. */
function slower(cost: StepCost): StepCost {
  return { ...cost, estimate: 12.5 * cost.roofline, bound: "latency" };
}

describe("notes", () => {
  test("a launch over three times its roofline is told of, with line and layer", () => {
    const costs = planCosts(planOf(scaled(1 << 24))).map(slower);
    const [note, ...others] = planNotes([...costs, ...costs]);
    expect(others).toEqual([]);
    expect(note?.code).toBe("TW7515");
    expect(note?.message).toMatch(
      /^add is estimated at .* µs, 12\.5 times its roofline: layer3\/add$/,
    );
    expect(note?.because).toContain("one load after the other");
    expect(note?.position).toMatchObject({ file: "program.mlir", line: 2 });
  });

  test("launches that take no longer than launching are not", () => {
    expect(planNotes(planCosts(planOf(scaled(4))))).toEqual([]);
    expect(planNotes(planCosts(planOf(scaled(1 << 24))))).toEqual([]);
  });
});

describe("text", () => {
  test("costs stand beside what was measured", async () => {
    const plan = planOf(scaled(512));
    const costs = planCosts(plan).map(slower);
    const device = await open("simulator");
    const program = await Program.load(device, plan);
    await program.run([tensorOfArray(fromNumbers(f32, [512], new Float64Array(512)))]);
    const profile = await program.profile();
    expect(costs.map(({ kernel, name }) => [kernel, name])).toEqual(
      profile.map(({ kernel, name }) => [kernel, name]),
    );
    program.dispose();
    device.dispose();
    const times = costs.map(() => ({ milliseconds: 0.0123 }));
    const [, , launch] = planText(plan, { costs, times }).split("\n");
    expect(launch).toMatch(/layer3\/add, at least 2\.5 µs, estimated 31\.\d, measured 12\.3$/);
    const explained = explainPlan(plan, costs, times);
    expect(explained).toContain("measured 12.3 µs");
    expect(explained).toMatch(/latency +█+▒+ +add {2}program\.mlir:2:\d+ {2}layer3\/add/);
    expect(explained).toContain("a result of the program");
  });

  test("the plan says how products of f32 are made", () => {
    const first = "plan main, target sm_90a, matmul precision f32";
    expect(planText(planOf(scaled(4)))).toContain(first);
    const tf32 = planOf(scaled(4), { matmulPrecision: "tf32" });
    expect(planText(tf32)).toContain("matmul precision tf32");
  });
});
