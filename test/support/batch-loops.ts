/** Batched graphs against loops over the batch. */
import { expect } from "vitest";
import { evaluate, isTensorDatum, tensor } from "../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../src/graph/evaluate/index.ts";
import { allocateTensorData, isTensor, moduleOf, sizeOf } from "../../src/graph/ops/index.ts";
import type { TensorData, GraphRegion } from "../../src/graph/ops/index.ts";
import { parseGraph } from "../../src/graph/text/index.ts";
import { vmap } from "../../src/graph/transform/vmap.ts";
import { verifyGraph } from "../../src/graph/verify/index.ts";
import { Random } from "../../src/support/random.ts";

const seed = 7;
const examples = 3;

export function bodyOf(text: string): GraphRegion {
  const main = parseGraph(text, "test.mlir")[0]?.functions.get("main");
  if (main === undefined) throw new Error("the program has @main");
  return main.body;
}

function run(graph: GraphRegion, inputs: readonly Tensor[]): readonly Tensor[] {
  const module = moduleOf(graph);
  verifyGraph(module);
  return evaluate(module, "main", inputs).filter(isTensorDatum);
}

function inputsOf(
  graph: GraphRegion,
  random: Random,
  batched: readonly boolean[],
  size: number,
): readonly Tensor[] {
  return graph.parameters.map(({ type }, i) => {
    if (!isTensor(type)) throw new Error("tests are of tensors");
    const shape = batched[i] === true ? [size, ...type.shape] : type.shape;
    const data = allocateTensorData(type.element, sizeOf(shape));
    const real = type.element === "f64";
    for (let j = 0; j < data.length; j++)
      data[j] = (real ? 0.2 + 0.7 * random.uniform() : Math.floor(3 * random.uniform())) as never;
    return tensor(type.element, shape, data);
  });
}

/** One example of a batch. */
function rowOf({ element, shape, data }: Tensor, row: number): Tensor {
  const count = sizeOf(shape.slice(1));
  return tensor(element, shape.slice(1), data.slice(row * count, (row + 1) * count) as TensorData);
}

function numbers({ data }: Tensor): readonly number[] {
  return Array.from(data as Iterable<number>);
}

/** A graph over a batch of random examples against itself over each of them. */
export function check(graph: GraphRegion, batched: readonly boolean[], size = examples): void {
  const inputs = inputsOf(graph, new Random(seed), batched, size);
  const all = run(vmap(graph, size, batched), inputs);
  for (const [i, { type }] of graph.results.entries())
    expect(all[i]?.shape).toEqual([size, ...(isTensor(type) ? type.shape : [])]);
  for (let row = 0; row < size; row++) {
    const own = run(
      graph,
      inputs.map((each, i) => (batched[i] === true ? rowOf(each, row) : each)),
    );
    for (const [i, expected] of own.entries()) {
      const found = rowOf(all[i] as Tensor, row);
      expect(found.shape).toEqual(expected.shape);
      numbers(found).forEach((value, j) => {
        expect(value, `result ${i} of example ${row}, seed ${seed}`).toBeCloseTo(
          numbers(expected)[j] ?? NaN,
          9,
        );
      });
    }
  }
}

/** All ways in which some of a graph's parameters have the batch, and one of no examples. */
export function everyWay(text: string): void {
  const graph = bodyOf(text);
  const count = graph.parameters.length;
  for (let mask = 1; mask < 2 ** count; mask++)
    check(
      graph,
      graph.parameters.map((_, i) => (mask >> i) % 2 === 1),
    );
  check(
    graph,
    graph.parameters.map(() => true),
    0,
  );
}
