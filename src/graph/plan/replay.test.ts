/** Programs that run again and again: what is bound is kept. */
import { expect, test, vi } from "vitest";
import { toNumbers } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { tensor } from "../evaluate/index.ts";
import { parseGraph } from "../text/index.ts";
import { compilePlan } from "./compile.ts";
import { Replay } from "./replay.ts";
import { planText } from "./text.ts";

const text = `func.func @main(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.subtract %w, %g : tensor<4xf32>
  %s = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %n, %s : tensor<4xf32>, tensor<f32> }`;

function moduleOf() {
  const [module] = parseGraph(text, "step.mlir");
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

test("a loop that hands its result back in binds once", async () => {
  const device = await open("simulator");
  const plan = compilePlan(moduleOf(), "main", [0]);
  expect(planText(plan)).toContain("result0 lies in arg0");
  const replay = await Replay.load(device, plan);
  const gradient = tensor("f32", [4], Float32Array.of(1, 1, 1, 1));
  let [weights] = await replay.run([tensor("f32", [4], Float32Array.of(5, 6, 7, 8)), gradient]);
  const bind = vi.spyOn(device, "bind");
  for (let turn = 0; turn < 3; turn++) {
    if (weights === undefined) throw new Error("the program has results");
    const [next, sum] = await replay.run([weights, gradient]);
    // The same memory as before, with the next values in it.
    expect(next).toBe(weights);
    sum?.dispose();
    weights = next;
  }
  expect(bind).not.toHaveBeenCalled();
  if (weights !== undefined)
    expect([...toNumbers(await device.download(weights))]).toEqual([1, 2, 3, 4]);
  replay.dispose();
  weights?.dispose();
});
