/** Wrong rewrites of each kind are found: a program beside what a faulty rule would make of it. */
import { expect, test } from "vitest";
import { parseGraph } from "../../../src/graph/text/index.ts";
import type { GraphModule } from "../../../src/graph/ops/node.ts";
import type { GraphPass } from "../../../src/graph/passes/pass.ts";
import { verifyGraph } from "../../../src/graph/verify/index.ts";
import { checkPasses, checkRewrite } from "../../../src/graph/verify/rewrites.ts";
import { program } from "./texts.ts";

function moduleOf(text: string): GraphModule {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  verifyGraph(module);
  return module;
}

const four = "tensor<4xf32>";
const square = "tensor<4x4xf32>";
const cube = "tensor<3x3x3xf32>";

/** A program whose last line is `%r = …` of a type, over %x and %y. */
function over(operands: string, result: string, ...lines: readonly string[]): string {
  return program(`%x: ${operands}, %y: ${operands}`, result, ...lines, `return %r : ${result}`);
}

const scattered = (order: string): string =>
  program(
    `%x: ${four}, %i: tensor<6x1xi32>, %u: tensor<6xf32>`,
    four,
    `%v = stablehlo.reverse %u, dims = [${order}] : tensor<6xf32>`,
    `%r = "stablehlo.scatter"(%x, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): stablehlo.return %b : tensor<f32> }) : (${four}, tensor<6x1xi32>, tensor<6xf32>) -> ${four}`,
    `return %r : ${four}`,
  );

const windows = (pads: string): string =>
  over(
    four,
    four,
    "%z = stablehlo.constant dense<0.0> : tensor<f32>",
    `%r = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 4>, padding = dense<[[${pads}]]> : tensor<1x2xi64>}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> stablehlo.return %s : tensor<f32> }) : (${four}, tensor<f32>) -> ${four}`,
  );

const looped = (trips: number, body: string): string =>
  over(
    four,
    four,
    "%z = stablehlo.constant dense<0> : tensor<i32>",
    `%n = stablehlo.constant dense<${trips}> : tensor<i32>`,
    `%0:2 = stablehlo.while(%i = %z, %a = %x) : tensor<i32>, ${four}`,
    "cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1> }",
    `do { %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32> ${body} stablehlo.return %j, %b : tensor<i32>, ${four} }`,
    `%r = stablehlo.negate %0#1 : ${four}`,
  );

/** A program, and what a wrong rule of a kind has in its place. */
type Wrong = readonly [kind: string, before: string, after: string];

const edited = (kind: string, text: string, find: string, replace: string): Wrong => {
  if (!text.includes(find)) throw new Error(`${kind}: the text has no ${find}`);
  return [kind, text, text.replace(find, replace)];
};

const product = over(
  cube,
  cube,
  `%r = stablehlo.dot_general %x, %y, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (${cube}, ${cube}) -> ${cube}`,
);
const convolution = over(
  "tensor<1x5x5x1xf32>",
  "tensor<1x1x1x1xf32>",
  "%w = stablehlo.reshape %y : (tensor<1x5x5x1xf32>) -> tensor<5x5x1x1xf32>",
  "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {reverse = [false, false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x5x1xf32>, tensor<5x5x1x1xf32>) -> tensor<1x1x1x1xf32>",
);
const chosen = program(
  `%x: ${four}, %y: ${four}, %p: tensor<4xi1>`,
  four,
  `%r = stablehlo.select %p, %x, %y : tensor<4xi1>, ${four}`,
  `return %r : ${four}`,
);
const sorted = over(
  four,
  four,
  `%r = "stablehlo.sort"(%x) <{dimension = 0 : i64}> ({ ^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %s : tensor<i1> }) : (${four}) -> ${four}`,
);
const complex = over(
  "tensor<4xcomplex<f32>>",
  "tensor<4xcomplex<f32>>",
  "%r = stablehlo.multiply %x, %y : tensor<4xcomplex<f32>>",
);
const looks = `%e = stablehlo.exponential %y : ${four} %b = stablehlo.multiply %a, %e : ${four}`;

const wrongs: readonly Wrong[] = [
  edited(
    "an identity",
    over(four, four, `%r = stablehlo.subtract %x, %y : ${four}`),
    "%x, %y",
    "%y, %x",
  ),
  edited("a function", over(four, four, `%r = stablehlo.sine %x : ${four}`), "sine", "cosine"),
  edited(
    "an attribute of a function",
    over(four, four, `%r = stablehlo.reduce_precision %x, format = e8m10 : ${four}`),
    "e8m10",
    "e8m7",
  ),
  edited(
    "a minimum",
    over(four, four, `%r = stablehlo.minimum %x, %y : ${four}`),
    "minimum",
    "maximum",
  ),
  edited(
    "a constant",
    over(
      four,
      four,
      `%c = stablehlo.constant dense<2.0> : ${four}`,
      `%r = stablehlo.multiply %x, %c : ${four}`,
    ),
    "2.0",
    "3.0",
  ),
  edited(
    "a comparison",
    over(
      four,
      "tensor<4xi1>",
      `%r = stablehlo.compare LT, %x, %y : (${four}, ${four}) -> tensor<4xi1>`,
    ),
    "LT",
    "GE",
  ),
  edited("a choice", chosen, "%p, %x, %y", "%p, %y, %x"),
  edited(
    "a transpose",
    over(cube, cube, `%r = stablehlo.transpose %x, dims = [1, 2, 0] : (${cube}) -> ${cube}`),
    "[1, 2, 0]",
    "[2, 0, 1]",
  ),
  edited(
    "a broadcast",
    over(
      square,
      "tensor<4x4x4xf32>",
      `%r = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (${square}) -> tensor<4x4x4xf32>`,
    ),
    "[0, 2]",
    "[0, 1]",
  ),
  edited(
    "a slice",
    over(four, "tensor<2xf32>", `%r = stablehlo.slice %x [0:4:2] : (${four}) -> tensor<2xf32>`),
    "0:4:2",
    "1:4:2",
  ),
  edited(
    "a reverse",
    over(square, square, `%r = stablehlo.reverse %x, dims = [0] : ${square}`),
    "[0]",
    "[1]",
  ),
  edited(
    "a concatenation",
    over(
      four,
      "tensor<8xf32>",
      `%r = stablehlo.concatenate %x, %y, dim = 0 : (${four}, ${four}) -> tensor<8xf32>`,
    ),
    "%x, %y,",
    "%y, %x,",
  ),
  edited(
    "padding",
    over(
      four,
      "tensor<6xf32>",
      "%z = stablehlo.constant dense<0.0> : tensor<f32>",
      `%r = stablehlo.pad %x, %z, low = [2], high = [0], interior = [0] : (${four}, tensor<f32>) -> tensor<6xf32>`,
    ),
    "low = [2], high = [0]",
    "low = [1], high = [1]",
  ),
  edited("contracted axes", product, "[2] x [1]", "[1] x [1]"),
  edited("operands of a product", product, "%x, %y, batching", "%y, %x, batching"),
  edited("the window of a convolution", convolution, "[false, false]", "[true, false]"),
  edited(
    "the axes of a reduction",
    over(
      square,
      four,
      "%z = stablehlo.constant dense<0.0> : tensor<f32>",
      `%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (${square}, tensor<f32>) -> ${four}`,
    ),
    "[0] :",
    "[1] :",
  ),
  edited(
    "how a reduction combines",
    over(
      square,
      four,
      "%z = stablehlo.constant dense<0.0> : tensor<f32>",
      `%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (${square}, tensor<f32>) -> ${four}`,
    ),
    "stablehlo.add across",
    "stablehlo.maximum across",
  ),
  ["the end that windows grow from", windows("3, 0"), windows("0, 3")],
  ["the order of updates", scattered(""), scattered("0")],
  edited("the order of a sort", sorted, "LT", "GT"),
  ["the turns of a loop", looped(5, looks), looped(4, looks)],
  ["what is moved out of a loop", looped(5, looks), looped(5, looks.replace("%y :", "%x :"))],
  edited(
    "the parts of complex numbers",
    complex,
    "%r = stablehlo.multiply %x, %y",
    "%c = chlo.conj %y : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>> %r = stablehlo.multiply %x, %c",
  ),
  [
    "what an op is merged with",
    over(
      four,
      four,
      `%0 = stablehlo.sine %x : ${four}`,
      `%1 = stablehlo.sine %y : ${four}`,
      `%r = stablehlo.multiply %0, %1 : ${four}`,
    ),
    over(
      four,
      four,
      `%0 = stablehlo.sine %x : ${four}`,
      `%r = stablehlo.multiply %0, %0 : ${four}`,
    ),
  ],
];

test.each(wrongs)("%s", (_, before, after) => {
  expect(checkRewrite(moduleOf(before), moduleOf(before))).toBeUndefined();
  expect(checkRewrite(moduleOf(before), moduleOf(after))).toMatch(/^result 0, element \d+: /);
});

test("a result that is missing, or of another type", () => {
  const both = program(`%x: ${four}`, `${four}, ${four}`, `return %x, %x : ${four}, ${four}`);
  const one = program(`%x: ${four}`, four, `return %x : ${four}`);
  const wide = program(
    `%x: ${four}`,
    "tensor<2x2xf32>",
    `%r = stablehlo.reshape %x : (${four}) -> tensor<2x2xf32>`,
    "return %r : tensor<2x2xf32>",
  );
  expect(checkRewrite(moduleOf(both), moduleOf(one))).toBe("there are 1 results, not 2");
  expect(checkRewrite(moduleOf(one), moduleOf(wide))).toBe(
    "result 0 is tensor<2x2xi32>, not tensor<4xi32>",
  );
});

test("the pass that is wrong is named", () => {
  const [, before, after] = wrongs[0] as Wrong;
  const pass = (name: string, made: (module: GraphModule) => GraphModule): GraphPass => ({
    name,
    run: made,
  });
  const passes = [
    pass("same", (module) => module),
    pass("wrong", () => moduleOf(after)),
    pass("later", (module) => module),
  ];
  expect(checkPasses(moduleOf(before), passes)?.pass).toBe("wrong");
  const broken = pass("broken", () => {
    const module = moduleOf(looped(3, looks));
    const main = module.functions.get("main");
    if (main === undefined) throw new Error("no function");
    const body = { ...main.body, ops: main.body.ops.slice(1) };
    return { ...module, functions: new Map([["main", { ...main, body }]]) };
  });
  expect(checkPasses(moduleOf(before), [broken])).toEqual({
    pass: "broken",
    difference: "a graph uses a value before its definition",
  });
});

test("sums in another order, and another form of the same, are no difference", () => {
  const sums = [
    over(
      four,
      four,
      `%0 = stablehlo.add %x, %y : ${four}`,
      `%r = stablehlo.multiply %0, %x : ${four}`,
    ),
    over(
      four,
      four,
      `%0 = stablehlo.multiply %x, %x : ${four}`,
      `%1 = stablehlo.multiply %y, %x : ${four}`,
      `%r = stablehlo.add %1, %0 : ${four}`,
    ),
  ].map(moduleOf);
  const [left, right] = sums as [GraphModule, GraphModule];
  expect(checkRewrite(left, right)).toBeUndefined();
  const quotients = [
    over(
      four,
      four,
      `%c = stablehlo.constant dense<3.0> : ${four}`,
      `%r = stablehlo.divide %x, %c : ${four}`,
    ),
    over(
      four,
      four,
      `%c = stablehlo.constant dense<3.0> : ${four}`,
      `%o = stablehlo.constant dense<1.0> : ${four}`,
      `%i = stablehlo.divide %o, %c : ${four}`,
      `%r = stablehlo.multiply %x, %i : ${four}`,
    ),
  ].map(moduleOf);
  expect(checkRewrite(quotients[0] as GraphModule, quotients[1] as GraphModule)).toBeUndefined();
});
