/** Views of values: random chains of ops that move elements, each view against the elements that the evaluator gives. */
import { describe, expect, test } from "vitest";
import { takesAll } from "../../../../test/support/sample.ts";
import { Random } from "../../../support/random.ts";
import { evaluate, tensor } from "../../evaluate/index.ts";
import type { AnyGraphOp, GraphModule, GraphValue } from "../../ops/node.ts";
import { parseGraph } from "../../text/index.ts";
import { jointModes } from "./joint-modes.ts";
import { placesIn, viewsOf } from "./strided.ts";
import type { Mode, Strided } from "./strided.ts";

function parsed(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("no program");
  return module;
}

function count(shape: readonly number[]): number {
  return shape.reduce((all, extent) => all * extent, 1);
}

/** The places of a view's elements in its base, in their order. */
function places({ offset, axes }: Strided): readonly number[] {
  return axes
    .flat()
    .reduce<readonly number[]>(
      (all, { extent, stride }) =>
        all.flatMap((place) => Array.from({ length: extent }, (_, i) => place + i * stride)),
      [offset],
    );
}

/** The ways to write a number as a product of so many. */
function factors(extent: number, random: Random): readonly number[] {
  const found: number[] = [];
  let left = extent;
  while (left > 1 && random.below(4) > 0) {
    const divisors = Array.from({ length: left }, (_, i) => i + 1).filter(
      (each) => left % each === 0,
    );
    const each = random.pick(divisors);
    found.push(each);
    left /= each;
  }
  return [...found, left];
}

interface Chain {
  readonly text: string;
  readonly shape: readonly number[];
}

function draw(
  random: Random,
  kinds: readonly ("transpose" | "reshape" | "slice" | "broadcast_in_dim")[],
): Chain {
  const first = Array.from({ length: 1 + random.below(3) }, () => random.pick([1, 2, 3, 4, 6]));
  let shape: readonly number[] = first;
  const lines: string[] = [];
  const steps = 1 + random.below(4);
  const type = (each: readonly number[]): string => `tensor<${[...each, "f32"].join("x")}>`;
  for (let step = 0; step < steps; step++) {
    const [from, to] = [step === 0 ? "%x" : `%v${step - 1}`, `%v${step}`];
    const before = shape;
    let what = "";
    const kind = random.pick(kinds);
    if (kind === "transpose") {
      const order = shape
        .map((_, axis) => ({ axis, key: random.uniform() }))
        .sort((one, other) => one.key - other.key)
        .map(({ axis }) => axis);
      shape = order.map((axis) => before[axis] ?? 1);
      what = `, dims = [${order.join(", ")}]`;
    } else if (kind === "reshape") {
      shape = factors(count(shape), random);
    } else if (kind === "slice") {
      const ranges = shape.map((extent) => {
        const start = random.below(extent);
        return [start, start + 1 + random.below(extent - start), 1 + random.below(2)] as const;
      });
      shape = ranges.map(([start, limit, stride]) => Math.ceil((limit - start) / stride));
      what = ` [${ranges.map((range) => range.join(":")).join(", ")}]`;
    } else {
      const extent = 1 + random.below(3);
      const at = random.below(shape.length + 1);
      const dims = shape.map((_, axis) => (axis < at ? axis : axis + 1));
      shape = shape.toSpliced(at, 0, extent);
      what = `, dims = [${dims.join(", ")}]`;
    }
    lines.push(`${to} = stablehlo.${kind} ${from}${what} : (${type(before)}) -> ${type(shape)}`);
  }
  return {
    shape: first,
    text: `func.func @main(%x: ${type(first)}) -> ${type(shape)} {\n${lines.join("\n")}\nreturn %v${steps - 1} : ${type(shape)} }`,
  };
}

function chainOf({ text }: Chain): {
  readonly last: GraphValue;
  readonly first: GraphValue;
  readonly definition: (value: GraphValue) => AnyGraphOp | undefined;
} {
  const body = parsed(text).functions.get("main")?.body;
  const [last] = body?.results ?? [];
  const [first] = body?.parameters ?? [];
  if (body === undefined || last === undefined || first === undefined) throw new Error("no chain");
  const definitions = new Map(body.ops.flatMap((op) => op.results.map((value) => [value, op])));
  return { last, first, definition: (value) => definitions.get(value) };
}

const programs = takesAll ? 20_000 : 200;

test(`${programs} chains have the elements that the evaluator gives`, () => {
  let furthest = 0;
  for (let seed = 1; seed <= programs; seed++) {
    const random = new Random(seed);
    const chain = draw(random, ["transpose", "reshape", "slice", "broadcast_in_dim"]);
    const { last, first, definition } = chainOf(chain);
    const view = viewsOf(last, definition).find(({ base }) => base === first);
    if (view === undefined) continue;
    furthest += 1;
    const numbers = Float32Array.from({ length: count(chain.shape) }, (_, i) => i);
    const [found] = evaluate(parsed(chain.text), "main", [tensor("f32", chain.shape, numbers)]);
    expect(places(view), `seed ${seed}: ${chain.text}`).toEqual([
      ...(found as { readonly data: Float32Array }).data,
    ]);
  }
  // Most chains are views of what they begin with.
  expect(furthest).toBeGreaterThan(programs / 2);
});

test(`${programs} chains that move all elements can be written through`, () => {
  let written = 0;
  for (let seed = 1; seed <= programs; seed++) {
    const chain = draw(new Random(seed), ["transpose", "reshape"]);
    const { last, first, definition } = chainOf(chain);
    const view = viewsOf(last, definition).find(({ base }) => base === first);
    const back = view && placesIn(view, last);
    if (view === undefined || back === undefined) continue;
    written += 1;
    // Where the chain finds an element, the other way puts it.
    const to = places(back);
    expect(
      places(view).map((place) => to[place]),
      `seed ${seed}: ${chain.text}`,
    ).toEqual(to.map((_, i) => i));
  }
  expect(written).toBeGreaterThan(programs / 2);
});

describe("what is no view", () => {
  const cases = [
    [
      "a reshape that cuts a transposed axis",
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>\n%1 = stablehlo.reshape %0 : (tensor<6x4xf32>) -> tensor<4x6xf32>",
      "4x6",
    ],
    [
      "a slice through a merged axis",
      "%0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>\n%2 = stablehlo.reshape %0 : (tensor<6x4xf32>) -> tensor<24xf32>\n%1 = stablehlo.slice %2 [1:9] : (tensor<24xf32>) -> tensor<8xf32>",
      "8",
    ],
    ["a reverse", "%1 = stablehlo.reverse %x, dims = [0] : tensor<4x6xf32>", "4x6"],
  ] as const;
  test.each(cases)("%s", (_, lines, shape) => {
    const text = `func.func @main(%x: tensor<4x6xf32>) -> tensor<${shape}xf32> {\n${lines}\nreturn %1 : tensor<${shape}xf32> }`;
    const { last, first, definition } = chainOf({ text, shape: [4, 6] });
    expect(viewsOf(last, definition).some(({ base }) => base === first)).toBe(false);
  });
});

test("arrays with one batch have its modes in common", () => {
  const modes = (...list: readonly (readonly [number, number])[]): readonly Mode[] =>
    list.map(([extent, stride]) => ({ extent, stride }));
  expect(jointModes([modes([12, 64], [128, 768]), modes([1536, 1])])).toEqual([
    { extent: 12, strides: [64, 128] },
    { extent: 128, strides: [768, 1] },
  ]);
  expect(jointModes([modes([12, 128], [128, 1]), modes([1536, 1])])).toEqual([
    { extent: 1536, strides: [1, 1] },
  ]);
  expect(jointModes([modes([8, 64], [4, 0]), modes([32, 16])])).toEqual([
    { extent: 8, strides: [64, 64] },
    { extent: 4, strides: [0, 16] },
  ]);
  // Cuts that do not divide each other.
  expect(jointModes([modes([4, 9], [6, 1]), modes([6, 50], [4, 7])])).toBeUndefined();
  expect(jointModes([[], []])).toEqual([]);
});
