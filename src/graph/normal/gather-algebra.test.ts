/** Products beside gathers and scatters: what is exact over integers is equal to the bit, out of bounds too; and what must stay as it is. */
import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { evaluate, isTensorDatum, tensor } from "../evaluate/index.ts";
import { dcePass } from "../passes/dce.ts";
import type { GraphModule } from "../ops/node.ts";
import { isTensor, sizeOf } from "../ops/types.ts";
import { parseGraph, printGraph } from "../text/index.ts";
import { verifyGraph } from "../verify/index.ts";
import { gatheredProductsPass, scatteredProductsPass } from "./pass.ts";

const edges = 40;
const nodes = 6;
const rowsBy = `dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>`;
const rowsTo = `scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>`;

function gathered(name: string, of: string, by: string, e: string, rows = nodes): string {
  return `${name} = "stablehlo.gather"(${of}, ${by}) <{${rowsBy}, slice_sizes = array<i64: 1, 4>}> : (tensor<${rows}x4x${e}>, tensor<${edges}x1xi32>) -> tensor<${edges}x4x${e}>`;
}

function added(name: string, to: string, by: string, of: string, e: string, width = 3): string {
  const [whole, part] = [`tensor<${nodes}x${width}x${e}>`, `tensor<${edges}x${width}x${e}>`];
  return `${name} = "stablehlo.scatter"(${to}, ${by}, ${of}) <{${rowsTo}}> ({
    ^bb0(%l: tensor<${e}>, %r: tensor<${e}>):
      %sum = stablehlo.add %l, %r : tensor<${e}>
      stablehlo.return %sum : tensor<${e}>
    }) : (${whole}, tensor<${edges}x1xi32>, ${part}) -> ${whole}`;
}

/** Rows within bounds, others zero, as JAX asks for them. */
function filled(name: string, of: string, by: string, e: string, limit = nodes - 1): string {
  return `%low = stablehlo.constant dense<0> : tensor<${edges}x1xi32>
    %high = stablehlo.constant dense<${limit}> : tensor<${edges}x1xi32>
    %ge = stablehlo.compare GE, ${by}, %low : (tensor<${edges}x1xi32>, tensor<${edges}x1xi32>) -> tensor<${edges}x1xi1>
    %le = stablehlo.compare LE, ${by}, %high : (tensor<${edges}x1xi32>, tensor<${edges}x1xi32>) -> tensor<${edges}x1xi1>
    %both = stablehlo.and %ge, %le : tensor<${edges}x1xi1>
    %flat = stablehlo.reshape %both : (tensor<${edges}x1xi1>) -> tensor<${edges}xi1>
    %mask = stablehlo.broadcast_in_dim %flat, dims = [0] : (tensor<${edges}xi1>) -> tensor<${edges}x4xi1>
    %none = stablehlo.constant dense<0${e === "i32" ? "" : ".0"}> : tensor<${edges}x4x${e}>
    ${gathered("%near", of, by, e)}
    ${name} = stablehlo.select %mask, %near, %none : tensor<${edges}x4xi1>, tensor<${edges}x4x${e}>`;
}

function dot(name: string, lhs: string, rhs: string, axes: readonly number[], types: string) {
  return `${name} = stablehlo.dot_general ${lhs}, ${rhs}, contracting_dims = [${axes[0]}] x [${axes[1]}] : ${types}`;
}

interface Case {
  readonly name: string;
  readonly e: string;
  readonly body: string;
  readonly result: string;
  readonly rows: readonly number[];
}

function textOf({ e, body, result }: Case): string {
  const zero = e === "i32" ? "0" : "0.0";
  return `func.func @main(%x: tensor<${nodes}x4x${e}>, %b: tensor<4x3x${e}>, %m: tensor<${edges}x3x${e}>, %w: tensor<${edges}x4x${e}>, %s: tensor<${edges}x1xi32>, %t: tensor<${edges}x1xi32>) -> ${result} {
    %zero = stablehlo.constant dense<${zero}> : tensor<${nodes}x3x${e}>
    ${body}
    return %out : ${result} }`;
}

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text, "algebra.mlir");
  if (module === undefined) throw new Error("the text has a program");
  return module;
}

function rewritten(module: GraphModule): GraphModule {
  const after = [scatteredProductsPass, gatheredProductsPass, dcePass].reduce(
    (each, pass) => pass.run(each),
    module,
  );
  verifyGraph(after);
  return after;
}

/** The rows that products of a program multiply, by their left operands' types. */
function multipliedRows(text: string): readonly number[] {
  const lines = printGraph(rewritten(moduleOf(text))).split("\n");
  return lines.flatMap((line) => {
    const found = /dot_general.*: \(tensor<(\d+)x/.exec(line);
    return found === null ? [] : [Number(found[1])];
  });
}

const seed = 17;

function inputsOf(module: GraphModule, e: string, random: Random) {
  return (module.functions.get("main")?.body.parameters ?? []).map(({ type }) => {
    if (!isTensor(type)) throw new Error("parameters are tensors");
    const isIndex = type.element === "i32" && type.shape[1] === 1;
    const at = (): number => {
      if (isIndex) return random.below(nodes + 4) - 2;
      // Products of large integers wrap; those of small floats are exact in any order.
      return e === "i32" ? random.bits() | 0 : random.below(9) - 4;
    };
    const values = Array.from({ length: sizeOf(type.shape) }, at);
    return type.element === "i32"
      ? tensor("i32", type.shape, Int32Array.from(values))
      : tensor("f32", type.shape, Float32Array.from(values));
  });
}

const byEdges = (e: string): string =>
  `(tensor<${edges}x4x${e}>, tensor<4x3x${e}>) -> tensor<${edges}x3x${e}>`;
const overEdges = (e: string): string =>
  `(tensor<${edges}x4x${e}>, tensor<${edges}x3x${e}>) -> tensor<4x3x${e}>`;

const cases = ["i32", "f32"].flatMap((e): readonly Case[] => [
  {
    name: "messages are summed, then multiplied",
    e,
    body: `${gathered("%g", "%x", "%s", e)}
    ${dot("%p", "%g", "%b", [1, 0], byEdges(e))}
    ${added("%out", "%zero", "%t", "%p", e)}`,
    result: `tensor<${nodes}x3x${e}>`,
    rows: [nodes],
  },
  {
    name: "gathered rows are multiplied before",
    e,
    body: `${gathered("%g", "%x", "%s", e)}
    ${dot("%out", "%g", "%b", [1, 0], byEdges(e))}`,
    result: `tensor<${edges}x3x${e}>`,
    rows: [nodes],
  },
  {
    name: "sums over gathered rows",
    e,
    body: `${gathered("%g", "%x", "%s", e)}
    ${dot("%out", "%g", "%m", [0, 0], overEdges(e))}`,
    result: `tensor<4x3x${e}>`,
    rows: [nodes],
  },
  {
    name: "sums over rows that are filled out of bounds",
    e,
    body: `${filled("%g", "%x", "%s", e)}
    ${dot("%out", "%m", "%g", [0, 0], `(tensor<${edges}x3x${e}>, tensor<${edges}x4x${e}>) -> tensor<3x4x${e}>`)}`,
    result: `tensor<3x4x${e}>`,
    rows: [nodes],
  },
  {
    name: "rows filled by other bounds stay",
    e,
    body: `${filled("%g", "%x", "%s", e, nodes - 2)}
    ${dot("%out", "%g", "%m", [0, 0], overEdges(e))}`,
    result: `tensor<4x3x${e}>`,
    rows: [edges],
  },
  {
    name: "what is added to stays",
    e,
    body: `%one = stablehlo.constant dense<1${e === "i32" ? "" : ".0"}> : tensor<${nodes}x3x${e}>
    ${dot("%p", "%w", "%b", [1, 0], byEdges(e))}
    ${added("%out", "%one", "%t", "%p", e)}`,
    result: `tensor<${nodes}x3x${e}>`,
    rows: [edges],
  },
]);

describe("products beside gathers and scatters", () => {
  test.each(cases)("$e: $name", (each) => {
    const text = textOf(each);
    expect(multipliedRows(text)).toEqual(each.rows);
    const module = moduleOf(text);
    const random = new Random(seed);
    for (let round = 0; round < 5; round += 1) {
      const inputs = inputsOf(module, each.e, random);
      const [wanted] = evaluate(module, "main", inputs).filter(isTensorDatum);
      const [found] = evaluate(rewritten(module), "main", inputs).filter(isTensorDatum);
      expect(found?.data, `seed ${seed}, round ${round}`).toEqual(wanted?.data);
    }
  });
  test("a product that is used twice is made once", () => {
    const text = textOf({
      name: "",
      e: "f32",
      body: `${dot("%p", "%w", "%b", [1, 0], byEdges("f32"))}
      ${added("%sums", "%zero", "%t", "%p", "f32")}
      %out = stablehlo.dot_general %sums, %p, contracting_dims = [1] x [1] : (tensor<${nodes}x3xf32>, tensor<${edges}x3xf32>) -> tensor<${nodes}x${edges}xf32>`,
      result: `tensor<${nodes}x${edges}xf32>`,
      rows: [],
    });
    expect(multipliedRows(text)).toEqual([edges, nodes]);
  });
});
