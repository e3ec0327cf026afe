/**
 * What operands, attributes and regions of an op have to fulfil beside each other. A program that does not is refused before it runs:
 * it would read elements that are not there, or take them for others.
 */
import { describe, expect, test } from "vitest";
import { compilePlan, evaluate } from "../checked.ts";
import { parseGraph } from "../text/index.ts";
import { verifyGraph } from "../verify/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";

const parameters = {
  x: "tensor<4x5xf32>",
  n: "tensor<4x5xi32>",
  v: "tensor<3xf32>",
  s: "tensor<f32>",
  h: "tensor<f16>",
  k: "tensor<i32>",
  w: "tensor<i64>",
  p: "tensor<2xi1>",
  q: "tensor<2xi32>",
  i: "tensor<2x1xi32>",
  b: "tensor<4x2xi32>",
  u: "tensor<2x5xf32>",
  t: "tensor<2x3x3xf32>",
  r: "tensor<3x3x3xf32>",
};

function programOf(line: string): string {
  const types = Object.entries(parameters).map(([name, type]) => `%${name}: ${type}`);
  return `func.func @main(${types.join(", ")}) {\n${line}\nreturn\n}`;
}

function moduleOf(line: string) {
  const [module] = parseGraph(programOf(line), "test.mlir");
  if (module === undefined) throw new Error("no program");
  return module;
}

function refusal(line: string): TilewrightError | undefined {
  try {
    verifyGraph(moduleOf(line));
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  return undefined;
}

const gatherNumbers = {
  offset_dims: "[1]",
  collapsed_slice_dims: "[0]",
  operand_batching_dims: "[]",
  start_indices_batching_dims: "[]",
  start_index_map: "[0]",
  index_vector_dim: "1",
};
const scatterNumbers = {
  update_window_dims: "[1]",
  inserted_window_dims: "[0]",
  input_batching_dims: "[]",
  scatter_indices_batching_dims: "[]",
  scatter_dims_to_operand_dims: "[0]",
  index_vector_dim: "1",
};

function numbersText(numbers: object): string {
  return Object.entries(numbers)
    .map(([name, value]) => `${name} = ${String(value)}`)
    .join(", ");
}

function gather(
  changed: Partial<typeof gatherNumbers>,
  {
    sizes = "1, 5",
    indices = "i",
    result = "2x5",
  }: { sizes?: string; indices?: "i" | "b" | "v"; result?: string } = {},
): string {
  const numbers = numbersText({ ...gatherNumbers, ...changed });
  return `%0 = "stablehlo.gather"(%x, %${indices}) <{dimension_numbers = #stablehlo.gather<${numbers}>, slice_sizes = array<i64: ${sizes}>}> : (${parameters.x}, ${parameters[indices]}) -> tensor<${result}xf32>`;
}

const region = (kind: string, type: string): string =>
  `({ ^bb0(%c: ${type}, %d: ${type}): %e = stablehlo.${kind} %c, %d : ${type} stablehlo.return %e : ${type} })`;

function scatter(
  changed: Partial<typeof scatterNumbers>,
  updates: "u" | "q" | "t" = "u",
  type = "tensor<f32>",
): string {
  const numbers = numbersText({ ...scatterNumbers, ...changed });
  return `%0 = "stablehlo.scatter"(%x, %i, %${updates}) <{scatter_dimension_numbers = #stablehlo.scatter<${numbers}>}> ${region("add", type)} : (${parameters.x}, ${parameters.i}, ${parameters[updates]}) -> ${type.replace("<", "<4x5x")}`;
}

const reduce = (init: keyof typeof parameters, type: string): string =>
  `%0 = "stablehlo.reduce"(%x, %${init}) <{dimensions = array<i64: 1>}> ${region("add", type)} : (${parameters.x}, ${parameters[init]}) -> ${type.replace("<", "<4x")}`;

function convolution(groups: number, batches: number, reversal = "false"): string {
  return `%0 = stablehlo.convolution(%t, %r) dim_numbers = [b, f, 0]x[i, o, 0]->[b, f, 0], window = {reverse = [${reversal}]} {feature_group_count = ${groups} : i64, batch_group_count = ${batches} : i64} : (${parameters.t}, ${parameters.r}) -> tensor<2x3x1xf32>`;
}

const norm = (scale: "v" | "s" | "q"): string =>
  `%0 = "stablehlo.batch_norm_inference"(%t, %${scale}, %v, %v, %v) <{epsilon = 1.0e-2 : f32, feature_index = 1 : i64}> : (${parameters.t}, ${parameters[scale]}, ${[parameters.v, parameters.v, parameters.v].join(", ")}) -> ${parameters.t}`;

const accepted: readonly (readonly [what: string, line: string])[] = [
  ["gather", gather({})],
  [
    "gather with a batch",
    gather(
      {
        offset_dims: "[]",
        collapsed_slice_dims: "[1]",
        operand_batching_dims: "[0]",
        start_indices_batching_dims: "[0]",
        start_index_map: "[1]",
        index_vector_dim: "2",
      },
      { sizes: "1, 1", indices: "b", result: "4x2" },
    ),
  ],
  ["scatter", scatter({})],
  ["scatter in a wider type", scatter({}, "u", "tensor<f64>")],
  ["reduce", reduce("s", "tensor<f32>")],
  ["convolution", convolution(1, 1)],
  ["batch_norm", norm("v")],
  [
    "compare",
    `%0 = stablehlo.compare LT, %k, %k, SIGNED : (${parameters.k}, ${parameters.k}) -> tensor<i1>`,
  ],
];

const refused: readonly (readonly [code: string, what: string, line: string])[] = [
  [
    "TW9104",
    "compare_type of another kind",
    `%0 = stablehlo.compare LT, %k, %k, UNSIGNED : (${parameters.k}, ${parameters.k}) -> tensor<i1>`,
  ],
  [
    "TW9104",
    "compare_type of floats",
    `%0 = stablehlo.compare LT, %k, %k, TOTALORDER : (${parameters.k}, ${parameters.k}) -> tensor<i1>`,
  ],
  [
    "TW9104",
    "no bits of exponent",
    `%0 = stablehlo.reduce_precision %x, format = e0m4 : ${parameters.x}`,
  ],
  [
    "TW9104",
    "negative bits",
    `%0 = "stablehlo.reduce_precision"(%x) <{exponent_bits = 5 : i32, mantissa_bits = -1 : i32}> : (${parameters.x}) -> ${parameters.x}`,
  ],
  ["TW9103", "gather: an axis that the operand has not", gather({ start_index_map: "[5]" })],
  ["TW9104", "gather: components without an axis", gather({ start_index_map: "[]" })],
  [
    "TW9104",
    "gather: vectors along no axis",
    gather({ index_vector_dim: "3" }, { result: "2x1x5" }),
  ],
  ["TW9104", "gather: collapsed slices of 2", gather({}, { sizes: "2, 5" })],
  [
    "TW9104",
    "gather: slices larger than the operand",
    gather({}, { sizes: "1, 6", result: "2x6" }),
  ],
  [
    "TW9103",
    "gather: batches of no axis of the indices",
    gather({
      collapsed_slice_dims: "[]",
      operand_batching_dims: "[0]",
      start_indices_batching_dims: "[5]",
      start_index_map: "[1]",
    }),
  ],
  [
    "TW9104",
    "gather: batches of other extents",
    gather({
      collapsed_slice_dims: "[]",
      operand_batching_dims: "[0]",
      start_indices_batching_dims: "[0]",
      start_index_map: "[1]",
    }),
  ],
  [
    "TW9104",
    "gather: batches along the vectors",
    gather({
      collapsed_slice_dims: "[]",
      operand_batching_dims: "[0]",
      start_indices_batching_dims: "[1]",
      start_index_map: "[1]",
    }),
  ],
  [
    "TW9103",
    "gather: a batching axis that is also indexed",
    gather(
      {
        collapsed_slice_dims: "[]",
        operand_batching_dims: "[0]",
        start_indices_batching_dims: "[0]",
        start_index_map: "[0]",
      },
      { indices: "b" },
    ),
  ],
  [
    "TW9103",
    "gather: offsets out of order",
    gather({ offset_dims: "[1, 0]", collapsed_slice_dims: "[]" }, { result: "5x1x2" }),
  ],
  ["TW9102", "gather: floats as indices", gather({}, { indices: "v" })],
  [
    "TW9103",
    "scatter: an axis that the operand has not",
    scatter({ scatter_dims_to_operand_dims: "[4]" }),
  ],
  ["TW9103", "scatter: a window axis that it has not", scatter({ inserted_window_dims: "[4]" })],
  [
    "TW9103",
    "scatter: a negative axis",
    scatter({ inserted_window_dims: "[]", input_batching_dims: "[-2]" }),
  ],
  ["TW9104", "scatter: updates of another rank", scatter({}, "t")],
  [
    "TW9104",
    "scatter: windows larger than the operand",
    scatter({ inserted_window_dims: "[1]", update_window_dims: "[1]" }),
  ],
  ["TW9105", "scatter: whole numbers of floats", scatter({}, "u", "tensor<i32>")],
  ["TW9105", "scatter: narrower sums", scatter({}, "u", "tensor<f16>")],
  ["TW9101", "reduce: an initial value of another type", reduce("h", "tensor<f32>")],
  ["TW9101", "reduce: a list as initial value", reduce("v", "tensor<f32>")],
  ["TW9105", "reduce: whole numbers of floats", reduce("s", "tensor<i32>")],
  [
    "TW9104",
    "dynamic_slice: starts of different types",
    `%0 = "stablehlo.dynamic_slice"(%x, %k, %w) <{slice_sizes = array<i64: 1, 1>}> : (${parameters.x}, ${parameters.k}, ${parameters.w}) -> tensor<1x1xf32>`,
  ],
  [
    "TW9104",
    "dynamic_slice: a list as start",
    `%0 = "stablehlo.dynamic_slice"(%x, %q, %q) <{slice_sizes = array<i64: 1, 1>}> : (${parameters.x}, ${parameters.q}, ${parameters.q}) -> tensor<1x1xf32>`,
  ],
  [
    "TW9102",
    "dynamic_slice: a float as start",
    `%0 = "stablehlo.dynamic_slice"(%x, %s, %s) <{slice_sizes = array<i64: 1, 1>}> : (${parameters.x}, ${parameters.s}, ${parameters.s}) -> tensor<1x1xf32>`,
  ],
  [
    "TW9104",
    "if: a list as predicate",
    `%0 = "stablehlo.if"(%p) ({ stablehlo.return %s : ${parameters.s} }, { stablehlo.return %s : ${parameters.s} }) : (${parameters.p}) -> ${parameters.s}`,
  ],
  [
    "TW9104",
    "case: a list as index",
    `%0 = "stablehlo.case"(%q) ({ stablehlo.return %s : ${parameters.s} }) : (${parameters.q}) -> ${parameters.s}`,
  ],
  [
    "TW9104",
    "map: operands of different shapes",
    `%0 = "stablehlo.map"(%v, %x) <{dimensions = array<i64: 0>}> ${region("add", "tensor<f32>")} : (${parameters.v}, ${parameters.x}) -> ${parameters.v}`,
  ],
  [
    "TW9104",
    "map: dimensions that are not all",
    `%0 = "stablehlo.map"(%x, %x) <{dimensions = array<i64: 1>}> ${region("add", "tensor<f32>")} : (${parameters.x}, ${parameters.x}) -> ${parameters.x}`,
  ],
  [
    "TW9101",
    "dot_general: whole numbers of floats",
    `%0 = stablehlo.dot_general %x, %x, contracting_dims = [0, 1] x [0, 1] : (${parameters.x}, ${parameters.x}) -> ${parameters.k}`,
  ],
  [
    "TW9101",
    "dot_general: floats and whole numbers as whole numbers",
    `%0 = stablehlo.dot_general %x, %n, contracting_dims = [0, 1] x [0, 1] : (${parameters.x}, ${parameters.n}) -> ${parameters.k}`,
  ],
  [
    "TW9101",
    "dot_general: floats of whole numbers alone",
    `%0 = stablehlo.dot_general %n, %n, contracting_dims = [0, 1] x [0, 1] : (${parameters.n}, ${parameters.n}) -> ${parameters.s}`,
  ],
  ["TW9104", "convolution: groups of features and of batches", convolution(3, 2)],
  ["TW9104", "convolution: no groups", convolution(0, 1)],
  ["TW9104", "convolution: more axes reversed than there are", convolution(1, 1, "true, false")],
  ["TW9101", "batch_norm: a scale of another shape", norm("s")],
  ["TW9101", "batch_norm: a scale of another type", norm("q")],
  [
    "TW9104",
    "triangular_solve: other batches",
    `%0 = "stablehlo.triangular_solve"(%r, %t) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (${parameters.r}, ${parameters.t}) -> ${parameters.t}`,
  ],
  [
    "TW9104",
    "einsum: another rank",
    `%0 = stablehlo.einsum %x, %x, config = "ab,abc->a" : (${parameters.x}, ${parameters.x}) -> tensor<4xf32>`,
  ],
  [
    "TW9104",
    "einsum: a letter of two extents",
    `%0 = stablehlo.einsum %x, %x, config = "ab,bc->ac" : (${parameters.x}, ${parameters.x}) -> tensor<4x5xf32>`,
  ],
  [
    "TW9104",
    "einsum: a letter that nobody has",
    `%0 = stablehlo.einsum %x, %x, config = "ab,ab->c" : (${parameters.x}, ${parameters.x}) -> tensor<1xf32>`,
  ],
  [
    "TW9104",
    "dynamic_reshape: another number of elements",
    `%0 = stablehlo.dynamic_reshape %x, %q : (${parameters.x}, ${parameters.q}) -> tensor<4x6xf32>`,
  ],
  [
    "TW9104",
    "torch_index_select: batches after its axis",
    `%0 = "stablehlo.torch_index_select"(%x, %b) <{dim = 0 : i64, batch_dims = 1 : i64}> : (${parameters.x}, ${parameters.b}) -> tensor<2x5xf32>`,
  ],
];

describe("what fits", () => {
  test.each(accepted)("%s", (_, line) => {
    expect(refusal(line)).toBeUndefined();
  });
});

describe("what does not fit", () => {
  test.each(refused)("%s %s", (code, _, line) => {
    const error = refusal(line);
    expect(error?.code).toBe(code);
    expect(error?.position?.line).toBe(2);
    expect(error?.expected).not.toBe(error?.found);
  });

  test("is refused by those who run programs, too", () => {
    const module = moduleOf(`%0 = stablehlo.negate %v : (${parameters.v}) -> tensor<9xf32>`);
    expect(() => compilePlan(module, "main")).toThrow("TW9106");
    expect(() => evaluate(module, "main", [])).toThrow("TW9106");
  });
});

test("numbers that make another shape than the program declares are refused when it runs", () => {
  const [module] = parseGraph(`func.func @main() -> tensor<2xf32> {
    %x = stablehlo.constant dense<1.0> : tensor<4xf32>
    %from = stablehlo.constant dense<0> : tensor<1xi32>
    %to = stablehlo.constant dense<3> : tensor<1xi32>
    %step = stablehlo.constant dense<1> : tensor<1xi32>
    %0 = stablehlo.real_dynamic_slice %x, %from, %to, %step : (tensor<4xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<2xf32>
    return %0 : tensor<2xf32>
  }`);
  if (module === undefined) throw new Error("no program");
  expect(() => evaluate(module, "main", [])).toThrow("TW9501");
});

test("a reduction whose region computes in a wider type begins with what it is given in that type", () => {
  const [module] = parseGraph(`func.func @main() -> tensor<2xi64> {
    %x = stablehlo.constant dense<[[100, 100], [-100, -100]]> : tensor<2x2xi8>
    %init = stablehlo.constant dense<100> : tensor<i8>
    %0 = "stablehlo.reduce"(%x, %init) <{dimensions = array<i64: 1>}> ${region("add", "tensor<i64>")} : (tensor<2x2xi8>, tensor<i8>) -> tensor<2xi64>
    return %0 : tensor<2xi64>
  }`);
  if (module === undefined) throw new Error("no program");
  const [sums] = evaluate(module, "main", []);
  expect(sums).toMatchObject({ element: "i64", data: BigInt64Array.of(300n, -100n) });
});
