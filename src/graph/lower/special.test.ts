/** Special functions on devices near what the series are not made for, against the evaluator. */
import { expect, test } from "vitest";
import { open } from "../../runtime/open.ts";
import { evaluate, tensor } from "../evaluate/index.ts";
import type { Tensor } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { Program } from "../plan/program.ts";
import { parseGraph } from "../text/index.ts";

const edges = [1, 2, 3, 24, 45, 51, 53].flatMap((bits) => [1 - 2 ** -bits, 2 ** -bits - 1]);

test.each([
  ["digamma", [0, -0, -2, -1e-300, -1e-40, -1e-9, -0.5, -3 - 2 ** -40, -3 + 2 ** -40, 1e-9]],
  ["lgamma", [0, -2, ...edges, ...edges.map((each) => 1 + each), ...edges.map((each) => each - 2)]],
  ["erf_inv", [0, 1, -1, ...edges]],
])("%s at its edges and near them", async (name, numbers) => {
  const type = `tensor<${numbers.length}xf64>`;
  const [module] = parseGraph(`func.func @main(%x: ${type}) -> ${type} {
    %r = chlo.${name} %x : ${type} -> ${type}
    return %r : ${type} }`);
  if (module === undefined) throw new Error("no program");
  const inputs = [tensor("f64", [numbers.length], Float64Array.from(numbers))];
  const device = await open("simulator");
  const program = await Program.load(device, compilePlan(module, "main"));
  const [found] = await program.run(inputs);
  const [evaluated] = evaluate(module, "main", inputs) as readonly Tensor[];
  const wanted = Array.from((evaluated?.data ?? []) as Float64Array);
  const relative = wanted.map((exact, i) => {
    const value = Number(found?.data[i]);
    return Object.is(exact, value) ? 0 : Math.abs(value - exact) / Math.abs(exact);
  });
  expect(relative.filter((each) => !(each < 1e-12))).toEqual([]);
  if (name === "digamma") expect(wanted.slice(0, 3)).toEqual([-Infinity, -Infinity, NaN]);
  program.dispose();
  device.dispose();
});

test("polygamma of an order whose factorial is infinite", async () => {
  const type = "tensor<2xf64>";
  const [module] = parseGraph(`func.func @main(%n: ${type}, %x: ${type}) -> ${type} {
    %r = chlo.polygamma %n, %x : ${type}, ${type} -> ${type}
    return %r : ${type} }`);
  if (module === undefined) throw new Error("no program");
  const inputs = [
    tensor("f64", [2], Float64Array.of(1.2e22, 3)),
    tensor("f64", [2], Float64Array.of(0.5, 0.5)),
  ];
  const device = await open("simulator");
  const program = await Program.load(device, compilePlan(module, "main"));
  const [found] = await program.run(inputs);
  const [evaluated] = evaluate(module, "main", inputs) as readonly Tensor[];
  expect(found?.data[0]).toBe(-Infinity);
  expect(evaluated?.data[0]).toBe(-Infinity);
  program.dispose();
  device.dispose();
});
