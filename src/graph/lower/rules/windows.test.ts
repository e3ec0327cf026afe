/**
 * Windows of any size, stride, padding and dilation: random reductions of windows and select_and_scatter on devices, beside loops in plain
 * JavaScript. Small whole numbers, so that sums are exact, and many of them equal, so that it is told which of equal ones is selected.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { numbersOf } from "../../evaluate/scalars.ts";
import { sizeOf } from "../../ops/index.ts";
import { encodeElement } from "../../ops/small-floats.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { parseGraph } from "../../text/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

type Element = "f32" | "bf16" | "i32" | "i64";

interface Axis {
  readonly extent: number;
  readonly size: number;
  readonly stride: number;
  readonly base: number;
  readonly dilation: number;
  readonly low: number;
  readonly high: number;
}

function whole(random: Random, least: number, most: number): number {
  return least + Math.floor(random.uniform() * (most - least + 1));
}

function windowsAlong({ extent, size, stride, base, dilation, low, high }: Axis): number {
  const span = extent === 0 ? 0 : (extent - 1) * base + 1;
  const length = low + span + high;
  const reach = (size - 1) * dilation + 1;
  return length < reach ? 0 : Math.floor((length - reach) / stride) + 1;
}

function axisOf(random: Random, isDilated: boolean, isInner: boolean): Axis {
  const extent = isInner ? whole(random, 1, 40) : whole(random, 1, 9);
  const size = isInner && random.uniform() < 0.6 ? 1 : whole(random, 1, 4);
  const isSide = random.uniform() < 0.3;
  return {
    extent,
    size,
    stride: isSide ? size : whole(random, 1, 3),
    base: isDilated ? whole(random, 1, 3) : 1,
    dilation: isDilated ? whole(random, 1, 3) : 1,
    low: size === 1 ? 0 : whole(random, 0, size - 1),
    high: size === 1 ? 0 : whole(random, 0, size - 1),
  };
}

/** Windows of many elements, some over all of them, some that grow from either end. */
function largeAxis(random: Random, isDilated: boolean): Axis {
  const extent = whole(random, 20, 60);
  const form = whole(random, 0, 5);
  const plain = { extent, size: 1, stride: 1, base: 1, dilation: 1, low: 0, high: 0 };
  if (form === 0) return { ...plain, size: extent, low: extent - 1 };
  if (form === 1) return { ...plain, size: extent, high: extent - 1 };
  if (form === 2) return { ...plain, extent: 48, size: 12, stride: 12 };
  if (form === 3) return { ...plain, size: extent };
  const size = whole(random, 9, 40);
  const stride = whole(random, 1, 4);
  const low = whole(random, 0, size - 1);
  const [base, dilation] = isDilated ? [whole(random, 1, 2), whole(random, 1, 2)] : [1, 1];
  return { extent, size, stride, base, dilation, low, high: size - 1 };
}

function largeAxes(random: Random): readonly Axis[] {
  for (;;) {
    const small = whole(random, 1, 4);
    const plain = { extent: small, size: 1, stride: 1, base: 1, dilation: 1, low: 0, high: 0 };
    const isDilated = random.uniform() < 0.3;
    const own = largeAxis(random, isDilated);
    const second = random.uniform() < 0.2 ? largeAxis(random, isDilated) : plain;
    const axes = random.uniform() < 0.5 ? [own, second] : [second, own];
    if (axes.every((axis) => windowsAlong(axis) > 0)) return axes;
  }
}

function axesOf(random: Random, isDilated: boolean): readonly Axis[] {
  const rank = whole(random, 1, 4);
  for (;;) {
    const axes = Array.from({ length: rank }, (_, i) => axisOf(random, isDilated, i === rank - 1));
    if (axes.every((axis) => windowsAlong(axis) > 0)) return axes;
  }
}

/** All places of a shape, as indices. */
function placesOf(shape: readonly number[]): readonly (readonly number[])[] {
  return shape.reduce<readonly (readonly number[])[]>(
    (places, extent) =>
      places.flatMap((place) => Array.from({ length: extent }, (_, i) => [...place, i])),
    [[]],
  );
}

function positionOf(place: readonly number[], shape: readonly number[]): number {
  return place.reduce((position, index, axis) => position * (shape[axis] ?? 1) + index, 0);
}

/** The position of the element that a tap covers; undefined in padding and holes. */
function covered(
  window: readonly number[],
  tap: readonly number[],
  axes: readonly Axis[],
): number | undefined {
  const place = axes.map(({ stride, dilation, low, base }, i) => {
    const at = (window[i] ?? 0) * stride + (tap[i] ?? 0) * dilation - low;
    return at % base === 0 ? at / base : -1;
  });
  const isThere = place.every((index, i) => index >= 0 && index < (axes[i]?.extent ?? 0));
  return isThere
    ? positionOf(
        place,
        axes.map(({ extent }) => extent),
      )
    : undefined;
}

function tensorOf(element: Element, shape: readonly number[], numbers: readonly number[]): Tensor {
  if (element === "f32") return tensor(element, shape, Float32Array.from(numbers));
  if (element === "i32") return tensor(element, shape, Int32Array.from(numbers));
  if (element === "i64") return tensor(element, shape, BigInt64Array.from(numbers, BigInt));
  return tensor(
    element,
    shape,
    Uint16Array.from(numbers, (each) => encodeElement(element, each)),
  );
}

const list = (axes: readonly Axis[], field: Exclude<keyof Axis, "extent">): string =>
  `array<i64: ${axes.map((axis) => axis[field]).join(", ")}>`;
const padding = (axes: readonly Axis[]): string =>
  `dense<[${axes.map(({ low, high }) => `[${low}, ${high}]`).join(", ")}]> : tensor<${axes.length}x2xi64>`;
const zeroOf = (element: Element): string => (element.includes("f") ? "0.0" : "0");

async function run(
  text: string,
  inputs: readonly Tensor[],
): Promise<readonly (readonly number[])[]> {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const found = await program.run(inputs);
    return found.map((each) => Array.from<number | bigint, number>(numbersOf(each), Number));
  } finally {
    program.dispose();
  }
}

/** All of them by RANDOM_CASES=200. */
const count = Number(process.env["RANDOM_CASES"] ?? 3);
const elements: readonly Element[] = ["f32", "bf16", "i32", "i64"];

test.each(Array.from({ length: count }, (_, i) => 100 + i))(
  "select_and_scatter, seed %i",
  async (seed) => {
    const random = new Random(seed);
    const axes = axesOf(random, false);
    const element = elements[seed % elements.length] ?? "f32";
    const shape = axes.map(({ extent }) => extent);
    const sources = axes.map(windowsAlong);
    const [x, s] = [shape, sources].map((own) =>
      Array.from({ length: sizeOf(own) }, () => whole(random, -3, 3)),
    );
    if (x === undefined || s === undefined) throw new Error("there are numbers");
    const direction = random.uniform() < 0.5 ? "GE" : "GT";
    const [from, of] = [shape, sources].map((own) => `tensor<${[...own, element].join("x")}>`);
    const scalar = `tensor<${element}>`;
    const text = `func.func @main(%x: ${from}, %s: ${of}) -> ${from} {
    %z = stablehlo.constant dense<${zeroOf(element)}> : ${scalar}
    %0 = "stablehlo.select_and_scatter"(%x, %s, %z) <{window_dimensions = ${list(axes, "size")}, window_strides = ${list(axes, "stride")}, padding = ${padding(axes)}}> ({
    ^bb0(%a: ${scalar}, %b: ${scalar}):
      %c = stablehlo.compare ${direction}, %a, %b : (${scalar}, ${scalar}) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: ${scalar}, %b: ${scalar}):
      %c = stablehlo.add %a, %b : ${scalar}
      stablehlo.return %c : ${scalar}
    }) : (${from}, ${of}, ${scalar}) -> ${from}
    return %0 : ${from} }`;
    const wanted = Array.from(x, () => 0);
    const taps = placesOf(axes.map(({ size }) => size));
    for (const [i, window] of placesOf(sources).entries()) {
      let best: number | undefined;
      for (const tap of taps) {
        const at = covered(window, tap, axes);
        if (at === undefined) continue;
        const [kept, other] = [x[best ?? at] ?? 0, x[at] ?? 0];
        const isKept = direction === "GE" ? kept >= other : kept > other;
        if (best === undefined || !isKept) best = at;
      }
      if (best !== undefined) wanted[best] = (wanted[best] ?? 0) + (s[i] ?? 0);
    }
    const [found] = await run(text, [tensorOf(element, shape, x), tensorOf(element, sources, s)]);
    expect(found?.map((each) => each + 0)).toEqual(wanted.map((each) => each + 0));
  },
);

const small = Array.from({ length: count }, (_, i) => 500 + i);
const large = Array.from({ length: count }, (_, i) => 2000 + i);

test.each([...small, ...large])("reduce_window, seed %i", async (seed) => {
  const random = new Random(seed);
  const axes = seed < 2000 ? axesOf(random, random.uniform() < 0.5) : largeAxes(random);
  const element = elements[seed % elements.length] ?? "f32";
  const kind = (["add", "maximum", "minimum"] as const)[whole(random, 0, 2)] ?? "add";
  const init = kind === "add" ? 0 : kind === "maximum" ? -5 : 5;
  const shape = axes.map(({ extent }) => extent);
  const results = axes.map(windowsAlong);
  const x = Array.from({ length: sizeOf(shape) }, () => whole(random, -4, 4));
  const [from, to] = [shape, results].map((own) => `tensor<${[...own, element].join("x")}>`);
  const scalar = `tensor<${element}>`;
  const text = `func.func @main(%x: ${from}) -> ${to} {
    %z = stablehlo.constant dense<${init}${element.includes("f") ? ".0" : ""}> : ${scalar}
    %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = ${list(axes, "size")}, window_strides = ${list(axes, "stride")}, base_dilations = ${list(axes, "base")}, window_dilations = ${list(axes, "dilation")}, padding = ${padding(axes)}}> ({
    ^bb0(%a: ${scalar}, %b: ${scalar}):
      %c = stablehlo.${kind} %a, %b : ${scalar}
      stablehlo.return %c : ${scalar}
    }) : (${from}, ${scalar}) -> ${to}
    return %0 : ${to} }`;
  const taps = placesOf(axes.map(({ size }) => size));
  const folds = { add: (a: number, b: number) => a + b, maximum: Math.max, minimum: Math.min };
  const wanted = placesOf(results).map((window) =>
    taps.reduce((sum, tap) => {
      const at = covered(window, tap, axes);
      return folds[kind](sum, at === undefined ? init : (x[at] ?? 0));
    }, init),
  );
  const [found] = await run(text, [tensorOf(element, shape, x)]);
  expect(found?.map((each) => each + 0)).toEqual(wanted.map((each) => each + 0));
});

/** The first element that is not zero, and how many elements there are, padding included: no operands may change places. */
test.each(large)("large windows keep the order of their elements, seed %i", async (seed) => {
  const random = new Random(seed);
  const axes = largeAxes(random);
  const shape = axes.map(({ extent }) => extent);
  const results = axes.map(windowsAlong);
  const x = Array.from({ length: sizeOf(shape) }, () =>
    random.uniform() < 0.1 ? whole(random, 1, 99) : 0,
  );
  const [from, to] = [shape, results].map((own) => `tensor<${[...own, "i32"].join("x")}>`);
  // 0 changes nothing, 1 of the count does: windows that grow cannot be scanned then.
  const init = seed % 2;
  const text = `func.func @main(%x: ${from}) -> (${to}, ${to}) {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<${init}> : tensor<i32>
    %ones = stablehlo.constant dense<1> : ${from}
    %0:2 = "stablehlo.reduce_window"(%x, %ones, %z, %n) <{window_dimensions = ${list(axes, "size")}, window_strides = ${list(axes, "stride")}, base_dilations = ${list(axes, "base")}, window_dilations = ${list(axes, "dilation")}, padding = ${padding(axes)}}> ({
    ^bb0(%a: tensor<i32>, %c: tensor<i32>, %b: tensor<i32>, %d: tensor<i32>):
      %there = stablehlo.compare NE, %a, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %f = stablehlo.select %there, %a, %b : tensor<i1>, tensor<i32>
      %s = stablehlo.add %c, %d : tensor<i32>
      stablehlo.return %f, %s : tensor<i32>, tensor<i32>
    }) : (${from}, ${from}, tensor<i32>, tensor<i32>) -> (${to}, ${to})
    return %0#0, %0#1 : ${to}, ${to} }`;
  const taps = placesOf(axes.map(({ size }) => size));
  const wanted = placesOf(results).map((window) => {
    const own = taps.map((tap) => covered(window, tap, axes));
    const first = own.find((at) => at !== undefined && x[at] !== 0);
    const counts = own.map((at) => (at === undefined ? init : 1));
    return [first === undefined ? 0 : x[first], counts.reduce((sum, each) => sum + each, init)];
  });
  const [first, counts] = await run(text, [tensorOf("i32", shape, x)]);
  expect(first).toEqual(wanted.map(([each]) => each));
  expect(counts).toEqual(wanted.map(([, each]) => each));
});

/** Scalars, of which one value can be what windows are over, what is scattered, and what it is combined with. */
test.each([
  ["%z, %z, %z", "%a", 4],
  ["%z, %s, %z", "%a", 5],
  ["%s, %z, %z", "%a", 4],
  ["%s, %z, %s", "%a", 5],
  ["%z, %s, %s", "%z", 6],
])("select_and_scatter of %s, comparing %s", async (operands, compared, wanted) => {
  const text = `func.func @main(%x: tensor<i32>) -> tensor<i32> {
    %z = stablehlo.constant dense<2> : tensor<i32>
    %s = stablehlo.constant dense<3> : tensor<i32>
    %0 = "stablehlo.select_and_scatter"(${operands}) <{window_dimensions = array<i64>, window_strides = array<i64>, padding = dense<> : tensor<0x2xi64>}> ({
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.compare GE, ${compared}, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }, {
    ^bb0(%a: tensor<i32>, %b: tensor<i32>):
      %c = stablehlo.add %a, %b : tensor<i32>
      stablehlo.return %c : tensor<i32>
    }) : (tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<i32>
    return %0 : tensor<i32> }`;
  const [found] = await run(text, [tensorOf("i32", [], [0])]);
  expect(found).toEqual([wanted]);
});
