/**
 * A program for every rule of every pass, in which the rule applies, by pass and rule. `rewrites.test.ts` names the rules that have none.
 */
import { expansions } from "./expansions.ts";
import {
  program,
  of,
  five,
  wholes,
  bools,
  matrix,
  splat,
  binary,
  ofItself,
  twice,
  ofSplat,
  region,
  convolution,
  rows,
} from "./texts.ts";

/** A product of bf16 and weights in mxfp8, and what is done with it. */
function scaledProductOf(...behind: readonly string[]): string {
  const [x, codes, scales] = [
    "tensor<2x64xbf16>",
    "tensor<3x64xf8E4M3FN>",
    "tensor<3x2xf8E8M0FNU>",
  ];
  const weights = "tensor<3x64xbf16>";
  return program(
    `%x: ${x}, %c: ${codes}, %s: ${scales}, %g: tensor<f32>`,
    behind.at(-1)?.endsWith("bf16>") === true ? "tensor<2x3xbf16>" : "tensor<2x3xf32>",
    `%0 = stablehlo.convert %c : (${codes}) -> ${weights}`,
    `%1 = stablehlo.broadcast_in_dim %s, dims = [0, 1] : (${scales}) -> tensor<3x2x32xf8E8M0FNU>`,
    "%2 = stablehlo.reshape %1 : (tensor<3x2x32xf8E8M0FNU>) -> tensor<3x64xf8E8M0FNU>",
    `%3 = stablehlo.convert %2 : (tensor<3x64xf8E8M0FNU>) -> ${weights}`,
    `%4 = stablehlo.multiply %0, %3 : ${weights}`,
    `%d = stablehlo.dot_general %x, %4, contracting_dims = [1] x [1] : (${x}, ${weights}) -> tensor<2x3xf32>`,
    ...behind,
  );
}

/** Programs by the names of rules; a pass that has no names is one rule of its own. */
interface Cases {
  readonly [pass: string]: { readonly [rule: string]: string };
}

const simplify: { readonly [rule: string]: string } = {
  "stablehlo.add of zero": binary("add", five, "-0.0"),
  "stablehlo.subtract of zero": binary("subtract", five, "0.0"),
  "stablehlo.multiply by one": binary("multiply", five, "1.0"),
  "stablehlo.multiply by zero": binary("multiply", wholes, "0"),
  "stablehlo.divide by one": binary("divide", five, "1.0"),
  "stablehlo.maximum of itself": ofItself("maximum", five),
  "stablehlo.minimum of itself": ofItself("minimum", five),
  "stablehlo.and of itself": ofItself("and", wholes),
  "stablehlo.and of true": binary("and", bools, "true"),
  "stablehlo.or of itself": ofItself("or", wholes),
  "stablehlo.or of zero": binary("or", wholes, "0"),
  "stablehlo.xor of zero": binary("xor", wholes, "0"),
  "stablehlo.negate of itself": twice("negate", five),
  "stablehlo.not of itself": twice("not", wholes),
  "stablehlo.select of equal operands": program(
    `%x: ${five}, %p: ${bools}`,
    five,
    `%r = stablehlo.select %p, %x, %x : ${bools}, ${five}`,
    `return %r : ${five}`,
  ),
  "stablehlo.select by a constant": program(
    `%x: ${five}, %y: ${five}`,
    five,
    splat("false", bools),
    `%r = stablehlo.select %c, %x, %y : ${bools}, ${five}`,
    `return %r : ${five}`,
  ),
  "stablehlo.convert to its own type": of(five, five, `%r = stablehlo.convert %x : ${five}`),
  "stablehlo.reshape to its own type": of(
    matrix,
    matrix,
    `%r = stablehlo.reshape %x : (${matrix}) -> ${matrix}`,
  ),
  "stablehlo.reshape of equal elements": ofSplat(
    "tensor<12xf32>",
    `stablehlo.reshape %c : (${matrix}) -> tensor<12xf32>`,
  ),
  "stablehlo.reshape of a reshape": of(
    matrix,
    "tensor<2x6xf32>",
    `%0 = stablehlo.reshape %x : (${matrix}) -> tensor<12xf32>`,
    "%r = stablehlo.reshape %0 : (tensor<12xf32>) -> tensor<2x6xf32>",
  ),
  "stablehlo.transpose to its own order": of(
    matrix,
    matrix,
    `%r = stablehlo.transpose %x, dims = [0, 1] : (${matrix}) -> ${matrix}`,
  ),
  "stablehlo.transpose of a transpose": of(
    "tensor<2x3x4xf32>",
    "tensor<4x2x3xf32>",
    "%0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<2x3x4xf32>) -> tensor<3x2x4xf32>",
    "%r = stablehlo.transpose %0, dims = [2, 1, 0] : (tensor<3x2x4xf32>) -> tensor<4x2x3xf32>",
  ),
  "stablehlo.transpose of equal elements": ofSplat(
    "tensor<4x3xf32>",
    `stablehlo.transpose %c, dims = [1, 0] : (${matrix}) -> tensor<4x3xf32>`,
  ),
  "stablehlo.broadcast_in_dim to its own type": of(
    matrix,
    matrix,
    `%r = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (${matrix}) -> ${matrix}`,
  ),
  "stablehlo.broadcast_in_dim of equal elements": ofSplat(
    "tensor<2x3x4xf32>",
    `stablehlo.broadcast_in_dim %c, dims = [1, 2] : (${matrix}) -> tensor<2x3x4xf32>`,
  ),
  "stablehlo.broadcast_in_dim of a broadcast": of(
    "tensor<3xf32>",
    "tensor<4x3x3x2xf32>",
    "%0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<3x3xf32>",
    "%r = stablehlo.broadcast_in_dim %0, dims = [1, 2] : (tensor<3x3xf32>) -> tensor<4x3x3x2xf32>",
  ),
  "stablehlo.broadcast_in_dim of a reshape": of(
    "tensor<3xf32>",
    "tensor<3x3xf32>",
    "%0 = stablehlo.reshape %x : (tensor<3xf32>) -> tensor<1x3xf32>",
    "%r = stablehlo.broadcast_in_dim %0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<3x3xf32>",
  ),
  "stablehlo.reverse of no axis": of(
    matrix,
    matrix,
    `%r = "stablehlo.reverse"(%x) <{dimensions = array<i64>}> : (${matrix}) -> ${matrix}`,
  ),
  "stablehlo.reverse of a reverse": of(
    matrix,
    matrix,
    `%0 = stablehlo.reverse %x, dims = [1] : ${matrix}`,
    `%r = stablehlo.reverse %0, dims = [1] : ${matrix}`,
  ),
  "stablehlo.reverse of equal elements": ofSplat(
    matrix,
    `stablehlo.reverse %c, dims = [1] : ${matrix}`,
  ),
  "stablehlo.slice to its own type": of(
    matrix,
    matrix,
    `%r = stablehlo.slice %x [0:3, 0:4] : (${matrix}) -> ${matrix}`,
  ),
  "stablehlo.slice of equal elements": ofSplat(
    "tensor<2x2xf32>",
    `stablehlo.slice %c [1:3, 0:4:2] : (${matrix}) -> tensor<2x2xf32>`,
  ),
  "stablehlo.pad of nothing": of(
    matrix,
    matrix,
    splat("7.0", "tensor<f32>"),
    `%r = stablehlo.pad %x, %c, low = [0, 0], high = [0, 0], interior = [0, 0] : (${matrix}, tensor<f32>) -> ${matrix}`,
  ),
  "stablehlo.concatenate of one operand": of(
    matrix,
    matrix,
    `%r = stablehlo.concatenate %x, dim = 1 : (${matrix}) -> ${matrix}`,
  ),
  "stablehlo.dynamic_slice to its own type": program(
    `%x: ${five}, %i: tensor<i32>`,
    five,
    `%r = stablehlo.dynamic_slice %x, %i, sizes = [5] : (${five}, tensor<i32>) -> ${five}`,
    `return %r : ${five}`,
  ),
  "stablehlo.get_tuple_element of a tuple": program(
    `%x: ${five}, %y: ${matrix}`,
    matrix,
    `%0 = stablehlo.tuple %x, %y : tuple<${five}, ${matrix}>`,
    `%r = stablehlo.get_tuple_element %0[1] : (tuple<${five}, ${matrix}>) -> ${matrix}`,
    `return %r : ${matrix}`,
  ),
};

const loop = (trips: number): string =>
  program(
    `%x: ${five}, %y: ${five}`,
    five,
    "%z = stablehlo.constant dense<0> : tensor<i32>",
    `%n = stablehlo.constant dense<${trips}> : tensor<i32>`,
    `%0:2 = stablehlo.while(%i = %z, %a = %x) : tensor<i32>, ${five}`,
    "cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1> }",
    "do { %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32>",
    `%e = stablehlo.exponential %y : ${five} %b = stablehlo.multiply %a, %e : ${five}`,
    `%f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32> %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> ${five}`,
    `%d = stablehlo.add %b, %g : ${five} stablehlo.return %j, %d : tensor<i32>, ${five} }`,
    `return %0#1 : ${five}`,
  );

const table = (rows: readonly (readonly number[])[]): string =>
  `dense<[${rows.map((row) => `[${row.join(", ")}]`).join(", ")}]> : tensor<${rows.length}x1xi32>`;

/** Rows of a matrix by constants; one window of several rows where `size` says so. */
function gather(indices: readonly (readonly number[])[], size = 1): string {
  const count = indices.length;
  const [offsets, collapsed, shape] =
    size === 1 ? ["[1]", "[0]", `${count}x4`] : ["[1, 2]", "[]", `${count}x${size}x4`];
  const result = `tensor<${shape}xf32>`;
  return program(
    "%x: tensor<6x4xf32>",
    result,
    `%i = stablehlo.constant ${table(indices)}`,
    `%r = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = ${offsets}, collapsed_slice_dims = ${collapsed}, start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: ${size}, 4>}> : (tensor<6x4xf32>, tensor<${count}x1xi32>) -> ${result}`,
    `return %r : ${result}`,
  );
}

function scatter(indices: readonly (readonly number[])[], size = 1): string {
  const count = indices.length;
  const [axes, inserted, shape] =
    size === 1 ? ["[1]", "[0]", `${count}x4`] : ["[1, 2]", "[]", `${count}x${size}x4`];
  const updates = `tensor<${shape}xf32>`;
  return program(
    `%x: tensor<6x4xf32>, %u: ${updates}`,
    "tensor<6x4xf32>",
    `%i = stablehlo.constant ${table(indices)}`,
    `%r = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = ${axes}, inserted_window_dims = ${inserted}, scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ${region("add")} : (tensor<6x4xf32>, tensor<${count}x1xi32>, ${updates}) -> tensor<6x4xf32>`,
    "return %r : tensor<6x4xf32>",
  );
}

/** Running products as JAX unrolls them: of pairs of neighbours first, whose results stand at the odd places. */
function unrolledScan(count: number): string {
  const lines = ["%z = stablehlo.constant dense<0.0> : tensor<f32>"];
  const typeOf = (extent: number): string => `tensor<${extent}xf32>`;
  const write = (line: string): string => {
    lines.push(`%t${lines.length} = ${line}`);
    return `%t${lines.length - 1}`;
  };
  const cut = (value: string, from: number, start: number, limit: number, step: number): string =>
    write(
      `stablehlo.slice ${value} [${start}:${limit}:${step}] : (${typeOf(from)}) -> ${typeOf(Math.ceil((limit - start) / step))}`,
    );
  const product = (left: string, right: string, extent: number): string =>
    write(`stablehlo.multiply ${left}, ${right} : ${typeOf(extent)}`);
  const spread = (value: string, from: number, to: number, low: number): string =>
    write(
      `stablehlo.pad ${value}, %z, low = [${low}], high = [${to - low - (2 * from - 1)}], interior = [1] : (${typeOf(from)}, tensor<f32>) -> ${typeOf(to)}`,
    );
  const level = (value: string, n: number): string => {
    if (n < 2) return value;
    const [odds, rest] = [Math.floor(n / 2), Math.ceil(n / 2) - 1];
    const pairs = product(cut(value, n, 0, n - 1, 2), cut(value, n, 1, n, 2), odds);
    const odd = level(pairs, odds);
    const firsts = n % 2 === 0 ? cut(odd, odds, 0, odds - 1, 1) : odd;
    const even = product(firsts, cut(value, n, 2, n, 2), rest);
    const joined = write(
      `stablehlo.concatenate ${cut(value, n, 0, 1, 1)}, ${even}, dim = 0 : (tensor<1xf32>, ${typeOf(rest)}) -> ${typeOf(rest + 1)}`,
    );
    return write(
      `stablehlo.add ${spread(joined, rest + 1, n, 0)}, ${spread(odd, odds, n, 1)} : ${typeOf(n)}`,
    );
  };
  const result = level("%x", count);
  const type = typeOf(count);
  return program(`%x: ${type}`, type, ...lines, `return ${result} : ${type}`);
}

const edges = "tensor<40x4xf32>";
const gatheredEdges = `%g = "stablehlo.gather"(%x, %t) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<6x4xf32>, tensor<40x1xi32>) -> ${edges}`;

const productOf = (turn: boolean): string =>
  program(
    "%x: tensor<2x12x3xf32>, %y: tensor<4x2x12xf32>",
    turn ? "tensor<2x4x3xf32>" : "tensor<2x3x4xf32>",
    "%p = stablehlo.dot_general %x, %y, batching_dims = [0] x [1], contracting_dims = [1] x [2] : (tensor<2x12x3xf32>, tensor<4x2x12xf32>) -> tensor<2x3x4xf32>",
    ...(turn
      ? [
          "%r = stablehlo.transpose %p, dims = [0, 2, 1] : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>",
          "return %r : tensor<2x4x3xf32>",
        ]
      : ["return %p : tensor<2x3x4xf32>"]),
  );

export const rewriteCases: Cases = {
  simplify,
  expand: expansions,
  derivatives: {
    derivatives: of(
      five,
      five,
      `%0 = "tilewright.stop_gradient"(%x) : (${five}) -> ${five}`,
      `%r = stablehlo.multiply %0, %x : ${five}`,
    ),
  },
  inline: {
    inline: [
      "module {",
      `func.func private @f(%a: ${five}, %b: ${five}) -> ${five} { %0 = stablehlo.subtract %b, %a : ${five} return %0 : ${five} }`,
      of(
        five,
        five,
        `%0 = stablehlo.exponential %x : ${five}`,
        `%r = func.call @f(%x, %0) : (${five}, ${five}) -> ${five}`,
      ),
      "}",
    ].join("\n"),
  },
  unroll: { unroll: loop(5) },
  hoist: { hoist: loop(20) },
  "loop carries": {
    "loop carries": program(
      `%x: ${five}, %y: ${five}`,
      five,
      "%z = stablehlo.constant dense<0> : tensor<i32>",
      "%n = stablehlo.constant dense<20> : tensor<i32>",
      `%0:3 = stablehlo.while(%i = %z, %a = %x, %w = %y) : tensor<i32>, ${five}, ${five}`,
      "cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %c : tensor<i1> }",
      `do { %one = stablehlo.constant dense<1> : tensor<i32> %j = stablehlo.add %i, %one : tensor<i32> %b = stablehlo.multiply %a, %w : ${five} %d = stablehlo.add %b, %w : ${five} stablehlo.return %j, %d, %w : tensor<i32>, ${five}, ${five} }`,
      `return %0#1 : ${five}`,
    ),
  },
  fold: {
    "of whole numbers": of(
      wholes,
      wholes,
      "%0 = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>",
      `%1 = stablehlo.multiply %0, %0 : ${wholes}`,
      `%r = stablehlo.add %1, %x : ${wholes}`,
    ),
    "of floats": of(
      five,
      five,
      splat("2.0", five),
      `%1 = stablehlo.exponential %c : ${five}`,
      `%r = stablehlo.add %1, %x : ${five}`,
    ),
  },
  cse: {
    cse: of(
      five,
      five,
      `%0 = stablehlo.exponential %x : ${five}`,
      `%1 = stablehlo.exponential %x : ${five}`,
      `%r = stablehlo.multiply %0, %1 : ${five}`,
    ),
  },
  dce: {
    dce: of(
      five,
      five,
      `%0 = stablehlo.exponential %x : ${five}`,
      `%r = stablehlo.negate %x : ${five}`,
    ),
  },
  "row-convolutions": {
    rows: convolution(
      "f32",
      ["2x8x9x12", "3x3x16x12"],
      "2x8x9x16",
      "[b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f]",
      "pad = [[1, 1], [1, 1]]",
    ),
  },
  patches: {
    patches: convolution(
      "f32",
      ["2x41x41x3", "3x3x3x64"],
      "2x20x20x64",
      "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
      "stride = [2, 2]",
    ),
    depthwise: convolution(
      "f32",
      ["2x6x7x5", "3x2x1x5"],
      "2x4x6x5",
      "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
      "",
      { feature: 5 },
    ),
    "grouped-weights": convolution(
      "f32",
      ["3x12x13x6", "3x10x11x12"],
      "3x3x2x12",
      "[f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f]",
      "",
      { batch: 3 },
    ),
  },
  "constant-picks": {
    "select of a constant": program(
      `%x: ${wholes}`,
      wholes,
      "%y = stablehlo.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>",
      "%z = stablehlo.constant dense<[6, 7, 8, 9, 10]> : tensor<5xi32>",
      `%p = stablehlo.compare LT, %z, %y : (${wholes}, ${wholes}) -> ${bools}`,
      `%s = stablehlo.select %p, %x, %z : ${bools}, ${wholes}`,
      `%r = stablehlo.add %s, %x : ${wholes}`,
      `return %r : ${wholes}`,
    ),
    "gather of one constant window": gather([[2]], 2),
    "gather by a constant table": gather([[5], [3], [1]]),
    "scatter of one constant window": scatter([[2]], 2),
    "scatter by a constant table": scatter([[4], [1], [3]]),
  },
  "without-holes": {
    "without-holes": convolution(
      "f64",
      ["1x8x8x24", "4x4x24x24"],
      "1x12x12x24",
      "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]",
      "pad = [[0, 0], [0, 0]], lhs_dilate = [2, 2]",
    ),
  },
  "scattered-products": {
    "product of scattered rows": program(
      `%m: ${edges}, %b: tensor<4x3xf32>, %t: tensor<40x1xi32>`,
      "tensor<6x3xf32>",
      "%z = stablehlo.constant dense<0.0> : tensor<6x3xf32>",
      `%p = stablehlo.dot_general %m, %b, contracting_dims = [1] x [0] : (${edges}, tensor<4x3xf32>) -> tensor<40x3xf32>`,
      `%r = "stablehlo.scatter"(%z, %t, %p) <{${rows}}> ${region("add")} : (tensor<6x3xf32>, tensor<40x1xi32>, tensor<40x3xf32>) -> tensor<6x3xf32>`,
      "return %r : tensor<6x3xf32>",
    ),
    "product over gathered rows": program(
      "%x: tensor<6x4xf32>, %m: tensor<40x3xf32>, %t: tensor<40x1xi32>",
      "tensor<4x3xf32>",
      gatheredEdges,
      `%r = stablehlo.dot_general %g, %m, contracting_dims = [0] x [0] : (${edges}, tensor<40x3xf32>) -> tensor<4x3xf32>`,
      "return %r : tensor<4x3xf32>",
    ),
  },
  "gathered-products": {
    "product of gathered rows": program(
      "%x: tensor<6x4xf32>, %b: tensor<4x3xf32>, %t: tensor<40x1xi32>",
      "tensor<40x3xf32>",
      gatheredEdges,
      `%r = stablehlo.dot_general %g, %b, contracting_dims = [1] x [0] : (${edges}, tensor<4x3xf32>) -> tensor<40x3xf32>`,
      "return %r : tensor<40x3xf32>",
    ),
  },
  "associative-scans": { "associative-scans": unrolledScan(6) },
  "scaled-products": {
    "scaled-product": scaledProductOf("return %d : tensor<2x3xf32>"),
    "global-scale": scaledProductOf(
      `%f = stablehlo.broadcast_in_dim %g, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
      %r = stablehlo.multiply %f, %d : tensor<2x3xf32>`,
      "return %r : tensor<2x3xf32>",
    ),
    "scaled-result": scaledProductOf(
      "%r = stablehlo.convert %d : (tensor<2x3xf32>) -> tensor<2x3xbf16>",
      "return %r : tensor<2x3xbf16>",
    ),
  },
  "turn-products": { "turn-products": productOf(true) },
  "matmul-precision": { "matmul-precision": productOf(false) },
  "normal-products": { "normal-products": productOf(false) },
};

const pair = "tensor<4xcomplex<f32>>";

/** Programs of complex numbers that those of `every-op.ts` do not give. */
export const complexPrograms: readonly { readonly kind: string; readonly text: string }[] = [
  {
    kind: "stablehlo.abs",
    text: of(pair, "tensor<4xf32>", `%r = stablehlo.abs %x : (${pair}) -> tensor<4xf32>`),
  },
  {
    kind: "stablehlo.compare",
    text: program(
      `%x: ${pair}, %y: ${pair}`,
      "tensor<4xi1>",
      `%r = stablehlo.compare EQ, %x, %y : (${pair}, ${pair}) -> tensor<4xi1>`,
      "return %r : tensor<4xi1>",
    ),
  },
  {
    kind: "stablehlo.select",
    text: program(
      `%p: tensor<4xi1>, %x: ${pair}, %y: ${pair}`,
      pair,
      `%r = stablehlo.select %p, %x, %y : tensor<4xi1>, ${pair}`,
      `return %r : ${pair}`,
    ),
  },
  {
    kind: "stablehlo.constant",
    text: binary("multiply", pair, "[(1.0, 2.0), (3.0, -4.0), (0.0, 5.0), (-6.0, 7.0)]"),
  },
  {
    kind: "stablehlo.iota",
    text: of(
      pair,
      pair,
      `%0 = stablehlo.iota dim = 0 : ${pair}`,
      `%r = stablehlo.multiply %0, %x : ${pair}`,
    ),
  },
  {
    kind: "stablehlo.convert",
    text: of(
      "tensor<4xf32>",
      pair,
      `%0 = stablehlo.convert %x : (tensor<4xf32>) -> ${pair}`,
      `%r = stablehlo.multiply %0, %0 : ${pair}`,
    ),
  },
  {
    kind: "stablehlo.complex",
    text: program(
      "%x: tensor<4xf32>, %y: tensor<4xf32>",
      pair,
      `%0 = stablehlo.complex %x, %y : ${pair}`,
      `%r = stablehlo.multiply %0, %0 : ${pair}`,
      `return %r : ${pair}`,
    ),
  },
  {
    kind: "stablehlo.sort",
    text: program(
      `%k: tensor<4xi32>, %x: ${pair}`,
      `tensor<4xi32>, ${pair}`,
      `%0:2 = "stablehlo.sort"(%k, %x) <{dimension = 0 : i64, is_stable = true}> ({ ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<complex<f32>>, %d: tensor<complex<f32>>): %s = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1> stablehlo.return %s : tensor<i1> }) : (tensor<4xi32>, ${pair}) -> (tensor<4xi32>, ${pair})`,
      `return %0#0, %0#1 : tensor<4xi32>, ${pair}`,
    ),
  },
];

const reduced = (element: string, ...body: readonly string[]): string =>
  program(
    `%x: tensor<4x3x5x${element}>, %z: tensor<${element}>`,
    `tensor<3x${element}>`,
    `%r = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 0, 2>}> ({ ^bb0(%a: tensor<${element}>, %b: tensor<${element}>): ${body.join(" ")} stablehlo.return %s : tensor<${element}> }) : (tensor<4x3x5x${element}>, tensor<${element}>) -> tensor<3x${element}>`,
    `return %r : tensor<3x${element}>`,
  );

/** Programs in which rules have gone wrong, or may in a way of their own. */
export const furtherCases: readonly {
  readonly pass: string;
  readonly what: string;
  readonly text: string;
}[] = [
  {
    pass: "simplify",
    what: "one divided by x, and zero less x, stay",
    text: of(
      five,
      five,
      splat("1.0", five),
      `%z = stablehlo.constant dense<0.0> : ${five}`,
      `%q = stablehlo.divide %c, %x : ${five}`,
      `%s = stablehlo.subtract %z, %x : ${five}`,
      `%r = stablehlo.add %q, %s : ${five}`,
    ),
  },
  {
    pass: "expand",
    what: "initial values of xor take part once, whatever runs there are",
    text: reduced("ui32", "%s = stablehlo.xor %a, %b : tensor<ui32>"),
  },
  {
    pass: "expand",
    what: "a region that keeps no order takes elements in theirs, and initial values once",
    text: reduced(
      "f32",
      "%n = stablehlo.negate %a : tensor<f32> %m = stablehlo.multiply %n, %n : tensor<f32> %s = stablehlo.add %m, %b : tensor<f32>",
    ),
  },
];
