/**
 * Derivatives against central differences in f64: for a random direction t and random weights c, c · (f(x + ht)
 * - f(x - ht)) / 2h, forward mode and reverse mode agree; so do the derivatives of the derivatives.
 */
import { expect } from "vitest";
import { Random } from "../../src/support/random.ts";
import { evaluate, isTensorDatum, tensor } from "../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import {
  isComplexElement,
  isFloatElement,
  isTensor,
  moduleOf,
  sizeOf,
} from "../../src/graph/ops/index.ts";
import type { GraphRegion, GraphValue } from "../../src/graph/ops/index.ts";
import { inlinePass } from "../../src/graph/passes/inline.ts";
import { jvp, vjp } from "../../src/graph/transform/jvp.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { verifyGraph } from "../../src/graph/verify/index.ts";

export const seed = 20260814;
const step = 1e-5;

export function bodyOf(text: string): GraphRegion {
  const [module] = parseGraph(text, "test.mlir");
  if (module === undefined) throw new Error("the text has a program");
  const main = inlinePass.run(module).functions.get("main");
  if (main === undefined) throw new Error("the program has @main");
  return main.body;
}

export function run(graph: GraphRegion, inputs: readonly Tensor[]): readonly Tensor[] {
  const module = moduleOf(graph);
  verifyGraph(module);
  return evaluate(module, "main", inputs).filter(isTensorDatum);
}

function isReal({ type }: GraphValue): boolean {
  return isTensor(type) && (isFloatElement(type.element) || isComplexElement(type.element));
}

function realTensors(
  values: readonly GraphValue[],
  random: Random,
  low: number,
  high: number,
): readonly Tensor[] {
  return values.map(({ type }) => {
    if (!isTensor(type)) throw new Error("tests are of tensors");
    const count = sizeOf(type.shape);
    const data = type.element === "f64" ? count : type.element === "complex<f64>" ? 2 * count : 0;
    if (data > 0)
      return tensor(
        type.element,
        type.shape,
        Float64Array.from({ length: data }, () => low + (high - low) * random.uniform()),
      );
    return tensor(
      type.element,
      type.shape,
      Int32Array.from({ length: count }, () => Math.floor(3 * random.uniform())),
    );
  });
}

function numbers({ data }: Tensor): readonly number[] {
  return Array.from(data as Float64Array);
}

/** The sum of products; of complex numbers, whose parts lie side by side, the real part of it. */
function dot(left: readonly Tensor[], right: readonly Tensor[]): number {
  return left.reduce((total, each, i) => {
    const other = right[i];
    if (other === undefined) return total;
    const values = numbers(other);
    const isComplex = each.element === "complex<f64>";
    return (
      total +
      numbers(each).reduce(
        (sum, value, j) => sum + (isComplex && j % 2 === 1 ? -value : value) * (values[j] ?? 0),
        0,
      )
    );
  }, 0);
}

function moved(
  points: readonly Tensor[],
  active: readonly boolean[],
  directions: readonly Tensor[],
  h: number,
): readonly Tensor[] {
  let next = 0;
  return points.map((point, i) => {
    if (active[i] !== true) return point;
    const direction = directions[next++];
    return tensor(
      point.element,
      point.shape,
      Float64Array.from(
        numbers(point),
        (value, j) => value + h * (numbers(direction ?? point)[j] ?? 0),
      ),
    );
  });
}

function expectClose(found: number, reference: number, tolerance: number, what: string): void {
  const scale = Math.max(1, Math.abs(reference));
  expect(
    Math.abs(found - reference) / scale,
    `${what}: ${found} against ${reference}, seed ${seed}`,
  ).toBeLessThan(tolerance);
}

/** Checks the first derivative both ways; `depth` 2 checks the derivative of the gradient as well. */
export function checkDerivatives(
  graph: GraphRegion,
  low: number,
  high: number,
  depth: 1 | 2,
): void {
  const random = new Random(seed);
  const active = graph.parameters.map(isReal);
  const points = realTensors(graph.parameters, random, low, high);
  const realInputs = graph.parameters.filter(isReal);
  const places = graph.results.flatMap((value, i) => (isReal(value) ? [i] : []));
  const outputs = places.map((i) => graph.results[i] as GraphValue);
  const directions = realTensors(realInputs, random, -1, 1);
  const weights = realTensors(outputs, random, -1, 1);
  const at = (h: number): readonly Tensor[] => {
    const results = run(graph, moved(points, active, directions, h));
    return places.map((i) => results[i] as Tensor);
  };
  const reference = (dot(weights, at(step)) - dot(weights, at(-step))) / (2 * step);
  const forward = run(jvp(graph), [...points, ...directions]).slice(graph.results.length);
  expectClose(dot(weights, forward), reference, 1e-6, "forward");
  const gradient = vjp(graph);
  const back = run(gradient, [...points, ...weights]).slice(graph.results.length);
  expect(back.map(({ shape }) => shape)).toEqual(directions.map(({ shape }) => shape));
  expectClose(dot(directions, back), reference, 1e-6, "reverse");
  if (depth === 1) return;
  const onlyGradient: GraphRegion = {
    ...gradient,
    results: gradient.results.slice(graph.results.length),
  };
  const second = jvp(onlyGradient);
  const zeros = weights.map(({ element, shape, data }) =>
    tensor(element, shape, new Float64Array(data.length)),
  );
  const tangent = run(second, [...points, ...weights, ...directions, ...zeros]).slice(
    onlyGradient.results.length,
  );
  const probes = realTensors(realInputs, random, -1, 1);
  const gradientAt = (h: number): readonly Tensor[] =>
    run(onlyGradient, [...moved(points, active, directions, h), ...weights]);
  const secondReference =
    (dot(probes, gradientAt(step)) - dot(probes, gradientAt(-step))) / (2 * step);
  expectClose(dot(probes, tangent), secondReference, 1e-5, "second");
  const reverseTwice = vjp(onlyGradient);
  const twice = run(reverseTwice, [...points, ...weights, ...probes]).slice(
    onlyGradient.results.length,
  );
  expectClose(dot(directions, twice), secondReference, 1e-5, "reverse over reverse");
}

/** Checks the derivatives of a program in text. */
export function checkText(text: string, low = 0.2, high = 0.9, depth: 1 | 2 = 2): void {
  checkDerivatives(bodyOf(text), low, high, depth);
}
