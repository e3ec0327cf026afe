/**
 * Reductions over any axes, of any length and element type, on devices, beside loops in plain JavaScript: sums of whole numbers and extremes are
 * exact in any order, and a region whose operands may not change places tells whether elements stay in theirs.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { numbersOf } from "../../evaluate/scalars.ts";
import { allocateTensorData, sizeOf } from "../../ops/index.ts";
import type { ElementType } from "../../ops/index.ts";
import { isFloatElement } from "../../ops/elements.ts";
import { encodeElement } from "../../ops/small-floats.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { planText } from "../../plan/text.ts";
import { parseGraph } from "../../text/index.ts";

const seed = 20;
const devices = new Map<string, Device>();
beforeAll(async () => {
  for (const kind of ["simulator", "emulator"] as const)
    devices.set(kind, await open(kind, { onNotes: () => undefined }));
});
afterAll(() => {
  for (const device of devices.values()) device.dispose();
});

interface Case {
  readonly shape: readonly number[];
  readonly axes: readonly number[];
  readonly element: ElementType;
  readonly kind: "add" | "maximum" | "minimum" | "and" | "or" | "xor" | "multiply";
  readonly init?: string;
}

const inits = {
  add: "0",
  maximum: "-9",
  minimum: "9",
  and: "true",
  or: "false",
  xor: "0",
  multiply: "1",
};
const folds: { readonly [K in Case["kind"]]: (left: number, right: number) => number } = {
  add: (left, right) => left + right,
  multiply: (left, right) => left * right,
  maximum: (left, right) => (Number.isNaN(left) ? left : Math.max(left, right)),
  minimum: (left, right) => (Number.isNaN(left) ? left : Math.min(left, right)),
  and: (left, right) => left & right,
  or: (left, right) => left | right,
  xor: (left, right) => left ^ right,
};

function textOf({ shape, axes, element, kind, init = inits[kind] }: Case): string {
  const isFloat = element.startsWith("f") || element.startsWith("bf");
  const start = isFloat && !init.includes(".") ? `${init}.0` : init;
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const [from, to] = [shape, kept].map((own) => `tensor<${[...own, element].join("x")}>`);
  return `func.func @main(%x: ${from}) -> ${to} {
    %i = stablehlo.constant dense<${start}> : tensor<${element}>
    %0 = stablehlo.reduce(%x init: %i) applies stablehlo.${kind} across dimensions = [${axes.join(", ")}] : (${from}, tensor<${element}>) -> ${to}
    return %0 : ${to} }`;
}

/** Small whole numbers: sums of them are exact in every format that holds them. */
function inputOf({ shape, element, kind }: Case, random: Random): Tensor {
  const data = allocateTensorData(element, sizeOf(shape));
  const limit = kind === "add" && element.startsWith("f8") ? 0.02 : 1;
  for (let i = 0; i < data.length; i++) {
    const number =
      element === "i1" || element.startsWith("ui")
        ? Math.floor(2 * random.uniform())
        : random.uniform() < limit
          ? Math.floor(5 * random.uniform()) - 2
          : 0;
    const isCoded = isFloatElement(element) && element !== "f64" && element !== "f32";
    const lane = isCoded ? encodeElement(element, number) : number;
    data[i] = (typeof data[0] === "bigint" ? BigInt(number) : lane) as never;
  }
  return tensor(element, shape, data);
}

function reduced(each: Case, x: Tensor): readonly number[] {
  const { shape, axes, kind, init = inits[kind] } = each;
  const start = init === "true" ? 1 : init === "false" ? 0 : Number(init);
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const found = Array.from({ length: sizeOf(kept) }, () => start);
  numbersIn(x).forEach((value, position) => {
    let [rest, place, stride] = [position, 0, 1];
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      const extent = shape[axis] ?? 1;
      const index = rest % extent;
      rest = Math.floor(rest / extent);
      if (axes.includes(axis)) continue;
      place += index * stride;
      stride *= extent;
    }
    found[place] = folds[kind](found[place] ?? 0, value);
  });
  // Whole numbers are summed exactly, and rounded once.
  const isCoded = each.element === "bf16";
  return isCoded
    ? numbersIn(
        tensor(
          "bf16",
          kept,
          Uint16Array.from(found, (v) => encodeElement("bf16", v)),
        ),
      )
    : found;
}

function numbersIn(x: Tensor): readonly number[] {
  return Array.from<number | bigint, number>(numbersOf(x), Number);
}

async function run(kind: string, text: string, inputs: readonly Tensor[]) {
  const [module] = parseGraph(text);
  const device = devices.get(kind);
  if (module === undefined || device === undefined) throw new Error("text and device are there");
  const plan = compilePlan(module, "main");
  const program = await Program.load(device, plan);
  try {
    return { found: await program.run(inputs), plan: planText(plan) };
  } finally {
    program.dispose();
  }
}

const sum = { element: "f32", kind: "add" } as const;
const cases: readonly (Case & { readonly on: string; readonly launches: string })[] = [
  { ...sum, on: "simulator", shape: [20_011], axes: [0], launches: "parts_rows,whole_rows" },
  {
    ...sum,
    on: "emulator",
    shape: [17_000, 3],
    axes: [0],
    launches: "parts_columns,whole_columns",
  },
  {
    ...sum,
    on: "simulator",
    shape: [2, 2_000, 40],
    axes: [1],
    launches: "parts_columns,whole_columns",
  },
  { ...sum, on: "simulator", shape: [3, 1, 700, 1, 4], axes: [1, 2], launches: "columns" },
  { ...sum, on: "emulator", shape: [300, 5], axes: [1], init: "3", launches: "rows" },
  { ...sum, on: "simulator", shape: [3, 40, 6, 4], axes: [1, 3], launches: "columns,rows" },
  {
    ...sum,
    on: "simulator",
    shape: [5, 3, 5, 2, 5],
    axes: [0, 2, 4],
    init: "7",
    launches: "reduce,reduce,rows",
  },
  { ...sum, on: "simulator", shape: [0, 4], axes: [0], init: "2", launches: "reduce" },
  { ...sum, on: "simulator", shape: [3, 3], axes: [], launches: "reduce" },
  {
    on: "simulator",
    element: "bf16",
    kind: "add",
    shape: [9_000, 70],
    axes: [0],
    launches: "parts_columns,whole_columns",
  },
  {
    on: "emulator",
    element: "f16",
    kind: "minimum",
    shape: [20_000],
    axes: [0],
    launches: "parts_rows,whole_rows",
  },
  {
    on: "simulator",
    element: "f64",
    kind: "maximum",
    shape: [6, 40, 33],
    axes: [1],
    launches: "columns",
  },
  {
    on: "simulator",
    element: "i64",
    kind: "add",
    shape: [4, 33_000],
    axes: [1],
    launches: "parts_rows,whole_rows",
  },
  { on: "emulator", element: "i1", kind: "or", shape: [70, 90], axes: [1], launches: "rows" },
  {
    on: "simulator",
    element: "i1",
    kind: "and",
    shape: [20_000, 2],
    axes: [0],
    launches: "parts_columns,whole_columns",
  },
  {
    on: "simulator",
    element: "ui8",
    kind: "xor",
    shape: [5, 40, 3, 40],
    axes: [1, 3],
    launches: "columns_with,rows_with",
  },
  {
    on: "simulator",
    element: "i32",
    kind: "and",
    init: "-1",
    shape: [40, 7],
    axes: [0],
    launches: "reduce",
  },
  {
    on: "simulator",
    element: "f8E4M3FN",
    kind: "add",
    shape: [4, 700],
    axes: [1],
    launches: "rows",
  },
  {
    on: "simulator",
    element: "i4",
    kind: "maximum",
    init: "-8",
    shape: [900, 9],
    axes: [0],
    launches: "columns",
  },
];

describe(`on devices, seed ${seed}`, () => {
  test.each(cases)("$element $kind $shape over $axes", async (each) => {
    const x = inputOf(each, new Random(seed));
    const { found, plan } = await run(each.on, textOf(each), [x]);
    expect(numbersIn(found[0] as Tensor)).toEqual(reduced(each, x));
    const launches = [...plan.matchAll(/launch (\w+)\(/g)].map(([, name = ""]) =>
      name.replace("reduce_", ""),
    );
    expect(launches.join()).toBe(each.launches);
  });
});

/** The first element that is not zero, and the number of elements: no operands may change places. */
const firstText = (shape: readonly number[], axes: readonly number[]): string => {
  const kept = shape.filter((_, axis) => !axes.includes(axis));
  const [from, to] = [shape, kept].map((own) => `tensor<${[...own, "i32"].join("x")}>`);
  return `func.func @main(%x: ${from}) -> (${to}, ${to}) {
    %z = stablehlo.constant dense<0> : tensor<i32>
    %ones = stablehlo.constant dense<1> : ${from}
    %0:2 = "stablehlo.reduce"(%x, %ones, %z, %z) <{dimensions = array<i64: ${axes.join(", ")}>}> ({
    ^bb0(%a: tensor<i32>, %n: tensor<i32>, %b: tensor<i32>, %m: tensor<i32>):
      %there = stablehlo.compare NE, %a, %z : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %f = stablehlo.select %there, %a, %b : tensor<i1>, tensor<i32>
      %s = stablehlo.add %n, %m : tensor<i32>
      stablehlo.return %f, %s : tensor<i32>, tensor<i32>
    }) : (${from}, ${from}, tensor<i32>, tensor<i32>) -> (${to}, ${to})
    return %0#0, %0#1 : ${to}, ${to} }`;
};

test.each([
  ["simulator", [2, 20_000], [1]],
  ["emulator", [40, 70], [0]],
  ["simulator", [6, 40, 5, 6], [1, 3]],
  ["simulator", [40, 3, 50], [0, 2]],
] as const)("elements keep their order on the %s, %o over %o", async (kind, shape, axes) => {
  const count = sizeOf(shape);
  const data = Int32Array.from({ length: count }, (_, i) => (i % 13 === 12 ? i : 0));
  const { found } = await run(kind, firstText(shape, axes), [tensor("i32", shape, data)]);
  const own: Case = { shape, axes, element: "i32", kind: "add" };
  const places = tensor("i32", shape, data);
  const first = numbersIn(places);
  // The least of numbers that grow with their places is the first.
  const least = reduced(
    { ...own, kind: "minimum", init: "1000000000" },
    tensor(
      "i32",
      shape,
      Int32Array.from(first, (value) => (value === 0 ? 1_000_000_000 : value)),
    ),
  );
  expect(numbersIn(found[0] as Tensor)).toEqual(
    least.map((value) => (value === 1_000_000_000 ? 0 : value)),
  );
  const ones = tensor("i32", shape, new Int32Array(count).fill(1));
  expect(numbersIn(found[1] as Tensor)).toEqual(reduced(own, ones));
});
