/** Programs that run again and again: what is bound is kept. */
import { expect, test, vi } from "vitest";
import { toNumbers } from "../../formats/hostarray.ts";
import type { KernelToCompile } from "../../device/backend.ts";
import { Device } from "../../device/device.ts";
import { open } from "../../runtime/open.ts";
import { SimulatorBackend } from "../../runtime/simulator-backend.ts";
import { tensor } from "../evaluate/index.ts";
import { parseGraph } from "../text/index.ts";
import { compilePlan } from "./compile.ts";
import { Program } from "./program.ts";
import { Replay } from "./replay.ts";
import { planText } from "./text.ts";

const text = `func.func @main(%w: tensor<4xf32>, %g: tensor<4xf32>) -> (tensor<4xf32>, tensor<f32>) {
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.subtract %w, %g : tensor<4xf32>
  %s = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return %n, %s : tensor<4xf32>, tensor<f32> }`;

function moduleOf(program = text) {
  const [module] = parseGraph(program, "step.mlir");
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

test("a host tensor is written once, as long as the same one comes to its place", async () => {
  const device = await open("simulator");
  const replay = await Replay.load(device, compilePlan(moduleOf(), "main"));
  const write = vi.spyOn(device, "write");
  const ones = tensor("f32", [4], Float32Array.of(1, 1, 1, 1));
  const fives = tensor("f32", [4], Float32Array.of(5, 5, 5, 5));
  const written: number[] = [];
  const sums: number[] = [];
  for (const weights of [fives, fives, ones, fives]) {
    const [next, sum] = await replay.run([weights, ones]);
    written.push(write.mock.calls.length);
    if (sum !== undefined) sums.push(...toNumbers(await device.download(sum)));
    next?.dispose();
    sum?.dispose();
  }
  expect(sums).toEqual([16, 16, 0, 16]);
  expect(written).toEqual([2, 2, 3, 4]);
  const [lying] = await replay.run([fives, ones]);
  if (lying === undefined) throw new Error("the program has results");
  // A small array of the device is copied to where the tensor was, which is written again behind it.
  for (const weights of [lying, fives]) {
    const results = await replay.run([weights, ones]);
    if (results[1] !== undefined) sums.push(...toNumbers(await device.download(results[1])));
    for (const each of results) each.dispose();
  }
  expect(sums.slice(4)).toEqual([12, 16]);
  lying.dispose();
  replay.dispose();
  device.dispose();
});

test("a plan whose results lie in donated arguments runs on host tensors, again and again", async () => {
  const device = await open("simulator");
  const program = await Program.load(device, compilePlan(moduleOf(), "main", [0]));
  const weights = tensor("f32", [4], Float32Array.of(5, 6, 7, 8));
  const gradient = tensor("f32", [4], Float32Array.of(1, 1, 1, 1));
  for (let turn = 0; turn < 2; turn++) {
    const [next] = await program.run([weights, gradient]);
    expect(next?.data).toEqual(Float32Array.of(4, 5, 6, 7));
  }
  program.dispose();
  device.dispose();
});

test("a result that has nothing to do with an argument leaves it to the one that follows from it", () => {
  const program = `func.func @main(%n: tensor<f32>, %x: tensor<4xf32>) -> (tensor<f32>, tensor<f32>) {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %one = stablehlo.constant dense<1.0> : tensor<f32>
    %s = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
    %m = stablehlo.add %n, %one : tensor<f32>
    return %s, %m : tensor<f32>, tensor<f32> }`;
  const plan = compilePlan(moduleOf(program), "main", [0]);
  expect([...plan.aliases]).toEqual([[1, 0]]);
});

test("a small argument that lies elsewhere each time is copied to where it was bound", async () => {
  const device = await open("simulator");
  const replay = await Replay.load(device, compilePlan(moduleOf(), "main"));
  const gradient = tensor("f32", [4], Float32Array.of(1, 1, 1, 1));
  let [weights] = await replay.run([tensor("f32", [4], Float32Array.of(9, 8, 7, 6)), gradient]);
  const bind = vi.spyOn(device, "bind");
  const counts: number[] = [];
  for (let turn = 0; turn < 4; turn++) {
    if (weights === undefined) throw new Error("the program has results");
    const [next, sum] = await replay.run([weights, gradient]);
    sum?.dispose();
    weights.dispose();
    weights = next;
    counts.push(bind.mock.calls.length);
  }
  // The argument is known to move when it has moved; from then on nothing is bound.
  expect(counts.slice(2)).toEqual([counts[1], counts[1]]);
  if (weights !== undefined)
    expect([...toNumbers(await device.download(weights))]).toEqual([4, 3, 2, 1]);
  weights?.dispose();
  replay.dispose();
});

test("kernels that a device has not compiled are compiled together before they are bound", async () => {
  const asked: (readonly string[])[] = [];
  const backend = Object.assign(new SimulatorBackend(), {
    compileInBackground: (kernels: readonly KernelToCompile[]) => {
      asked.push(kernels.map(({ located }) => /kernel @?(\w+)/.exec(located)?.[1] ?? located));
      return Promise.resolve();
    },
  });
  const device = new Device(backend);
  const plan = compilePlan(moduleOf(), "main");
  const names = plan.steps.flatMap((step) =>
    step.kind === "launch" ? [step.kernel.kernel.name] : [],
  );
  const first = await Program.load(device, plan);
  expect(asked).toEqual([names]);
  await first.run([
    tensor("f32", [4], Float32Array.of(1, 2, 3, 4)),
    tensor("f32", [4], Float32Array.of(0, 0, 0, 0)),
  ]);
  const second = await Program.load(device, plan);
  expect(asked[1]).toEqual([]);
  second.dispose();
  first.dispose();
  device.dispose();
});

test("a profile has a time for every launch, with its name", async () => {
  const device = await open("simulator");
  const plan = compilePlan(moduleOf(), "main");
  const program = await Program.load(device, plan);
  const four = tensor("f32", [4], Float32Array.of(1, 2, 3, 4));
  await program.run([four, four]);
  const times = await program.profile();
  expect(times.map(({ kernel, arrays, bytes }) => [kernel, arrays.length, bytes])).toEqual([
    ["subtract", 3, 48],
    ["reduce_rows", 2, 20],
  ]);
  for (const { milliseconds } of times) expect(milliseconds).toBeGreaterThanOrEqual(0);
  program.dispose();
  device.dispose();
});

test("a reshape of what lies in memory takes none of its own", () => {
  const program = `func.func @main(%x: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
    %p = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
    %r = stablehlo.reshape %p : (tensor<64x64xbf16>) -> tensor<4096xbf16>
    %s = "stablehlo.sort"(%r) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
      %l = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<bf16>, tensor<bf16>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    }) : (tensor<4096xbf16>) -> tensor<4096xbf16>
    %q = stablehlo.reshape %s : (tensor<4096xbf16>) -> tensor<64x64xbf16>
    return %q : tensor<64x64xbf16> }`;
  const plan = compilePlan(moduleOf(program), "main");
  expect(planText(plan)).not.toContain("reshape");
});

test("a device that decides by itself is given loops and branches, but not within limits", async () => {
  const program = `func.func @main(%n: tensor<i32>) -> tensor<i32> {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %end = stablehlo.constant dense<40> : tensor<i32>
    %r = stablehlo.while(%i = %n) : tensor<i32>
      cond { %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1> }
      do { %odd = stablehlo.and %i, %one : tensor<i32>
        %s = "stablehlo.case"(%odd) ({ %a = stablehlo.add %i, %one : tensor<i32>
          stablehlo.return %a : tensor<i32> }, { %b = stablehlo.add %i, %i : tensor<i32>
          stablehlo.return %b : tensor<i32> }) : (tensor<i32>) -> tensor<i32>
        stablehlo.return %s : tensor<i32> }
    return %r : tensor<i32> }`;
  const device = await open("simulator");
  vi.spyOn(device, "decides", "get").mockReturnValue(true);
  const given: string[] = [];
  vi.spyOn(device, "control").mockImplementation((control) => {
    const [first] = control.kind === "while" ? control.body : control.branches.flat();
    const sizes =
      control.kind === "while"
        ? [control.condition.length, control.body.length]
        : control.branches.map(({ length }) => length);
    given.push(`${control.kind} ${control.isBool} ${sizes.join(" ")}`);
    if (first === undefined) throw new Error("there is something to do");
    return first;
  });
  const loaded = await Program.load(device, compilePlan(moduleOf(program), "main"));
  const run = loaded.run([tensor("i32", [], Int32Array.of(3))], { stepLimit: 1000 });
  // 3, 6, 7, 14, 15, 30, 31, 62: the host decided, since it could be stopped.
  expect([...((await run)[0]?.data ?? [])]).toEqual([62]);
  expect(given).toEqual(["branch false 1 1", "while true 1 2"]);
  loaded.dispose();
  device.dispose();
});
