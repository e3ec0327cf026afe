/** Mistakes in program text that once ended without a code, without a line, or not at all. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { evaluate } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { verifyGraph } from "../verify/index.ts";
import { parseGraph, printGraph } from "./index.ts";

const program = (parameters: string, ...lines: readonly string[]): string =>
  [`func.func @main(${parameters}) {`, ...lines, "return", "}"].join("\n");

/** Reads, verifies and compiles a program, and says what refuses it, and at which line. */
function refusal(text: string, last: (text: string) => unknown = compiled): string {
  try {
    last(text);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    const place = [error.position, error.generated].find((each) => each?.file === "m.mlir");
    return `${error.code} at ${place?.line}`;
  }
  return "accepted";
}

function compiled(text: string): void {
  for (const module of parseGraph(text, "m.mlir")) {
    verifyGraph(module);
    compilePlan(module, "main");
  }
}

function evaluated(text: string): void {
  for (const module of parseGraph(text, "m.mlir")) evaluate(module, "main", []);
}

const x = "%x: tensor<4xf32>, %z: tensor<f32>";
const reduceBy = (name: string): string =>
  program(
    x,
    `%0 = stablehlo.reduce(%x init: %z) applies ${name} across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>`,
  );
const window = (text: string): string =>
  program(
    "%a: tensor<1x4x4x1xf32>, %w: tensor<2x2x1x1xf32>",
    `%0 = stablehlo.convolution(%a, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {${text}} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x4x1xf32>, tensor<2x2x1x1xf32>) -> tensor<1x3x3x1xf32>`,
  );
const typed = (type: string): string => program("", `%0 = "other.op"() : () -> ${type}`);
const twice = (count: number): string =>
  [
    program("", "call @f0() : () -> ()"),
    ...Array.from(
      { length: count },
      (_, i) =>
        `func.func private @f${i}() { call @f${i + 1}() : () -> () call @f${i + 1}() : () -> () return }`,
    ),
    `func.func private @f${count}() { return }`,
  ].join("\n");

const deep = (open: string, close: string, inner: string): string =>
  open.repeat(50_000) + inner + close.repeat(50_000);

const refused: readonly (readonly [string, string, string])[] = [
  ["an op with an attribute, applied", reduceBy("stablehlo.concatenate"), "TW9004 at 2"],
  ["an op of one operand, applied", reduceBy("stablehlo.negate"), "TW9004 at 2"],
  ["padding of one number", window("pad = [[0, 0], [0]]"), "TW9001 at 2"],
  ["a label that every object has", window("toString = [1, 1]"), "TW9001 at 2"],
  ["an op that every object has", program("", "%0 = constructor : tensor<f32>"), "TW9009 at 2"],
  [
    "a reduction of a shape that is not known",
    program(
      "%x: tensor<4x4xf32>, %n: tensor<2xi32>, %z: tensor<f32>",
      "%d = stablehlo.dynamic_reshape %x, %n : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>",
      "%0 = stablehlo.reduce(%d init: %z) applies stablehlo.add across dimensions = [1] : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>",
    ),
    "TW9602 at 2",
  ],
  ["a negative extent", typed("tensor<-1xf32>"), "TW9001 at 2"],
  ["no element type", typed("tensor<4xf33>"), "TW9012 at 2"],
  [
    "more elements than can be counted",
    typed("tensor<99999999999x99999999999xf32>"),
    "TW9011 at 2",
  ],
  ["deep types", typed(deep("tuple<", ">", "f32")), "TW9010 at 2"],
  ["deep lists", program("", `"a.b"() {x = ${deep("[", "]", "")}} : () -> ()`), "TW9010 at 2"],
  [
    "deep places",
    program("", `"a.b"() : () -> () loc(${deep("callsite(", ' at "f")', '"x"')})`),
    "TW9010 at 2",
  ],
  [
    "a name that stands for itself",
    `#a = [#a]\n${program("", '"a.b"() {x = #a} : () -> ()')}`,
    "TW9010 at 1",
  ],
  [
    "names that double",
    `#a0 = [1]\n${Array.from({ length: 40 }, (_, i) => `#a${i + 1} = [#a${i}, #a${i}]`).join("\n")}\n${program("", '"a.b"() {x = #a40} : () -> ()')}`,
    "TW9010 at 2",
  ],
  ["calls that double", twice(40), "TW9109 at 25"],
  ["calls within calls", twice(300), "TW9109 at 260"],
  [
    "a list that one element stands for",
    program(
      x,
      '%0 = "stablehlo.reverse"(%x) {dimensions = dense<0> : tensor<999999999999xi64>} : (tensor<4xf32>) -> tensor<4xf32>',
    ),
    "TW9004 at 2",
  ],
  [
    "a constant without its elements",
    program("", '"a.b"() {x = dense<> : tensor<999999999999xi64>} : () -> ()'),
    "TW9006 at 2",
  ],
  [
    "sizes of more groups than there are matrices",
    program(
      "%x: tensor<2x3xf32>, %w: tensor<2x3x2xf32>, %g: tensor<1000000000000xi32>",
      '%0 = "chlo.ragged_dot"(%x, %w, %g) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<2x3xf32>, tensor<2x3x2xf32>, tensor<1000000000000xi32>) -> tensor<2x2xf32>',
    ),
    "TW9104 at 2",
  ],
  [
    "a formula that is none",
    program(
      x,
      '%0 = "stablehlo.unary_einsum"(%x) <{einsum_config = "a"}> : (tensor<4xf32>) -> tensor<3xf32>',
    ),
    "TW9104 at 2",
  ],
  [
    "an axis that 32 bits do not count",
    program(
      x,
      "%0 = stablehlo.iota dim = 0 : tensor<4294967292xi32>",
      "%1 = stablehlo.reverse %0, dims = [0] : tensor<4294967292xi32>",
      '"stablehlo.custom_call"(%1) <{call_target_name = "nothing", has_side_effect = true}> : (tensor<4294967292xi32>) -> ()',
    ),
    "TW9602 at 2",
  ],
  [
    "results of an op that has none",
    program(x, '%0 = "interpreter.print"(%x) : (tensor<4xf32>) -> tensor<4xf32>'),
    "TW9004 at 2",
  ],
];

describe("mistakes", () => {
  test.each(refused)("%s", (_, text, expected) => {
    expect(refusal(text)).toBe(expected);
  });

  test("a value that nobody has room for is refused by the evaluator, with its line", () => {
    const text = program("", "%0 = stablehlo.iota dim = 0 : tensor<1000000000000xi32>");
    expect(refusal(text, evaluated)).toBe("TW9506 at 2");
  });

  test("an op whose types nobody can verify is not run", () => {
    const text = program(
      "",
      "%i = stablehlo.constant dense<0> : tensor<2xi32>",
      "%x = stablehlo.constant dense<0.0> : tensor<3x4xf32>",
      '%0 = "stablehlo.torch_index_select"(%x, %i) <{dim = 2143289344 : i64, batch_dims = 2143289344 : i64}> : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<?x4xf32>',
    );
    expect(refusal(text, evaluated)).toBe("TW9501 at 4");
  });

  test("processes that wait for nobody are told with a line", () => {
    const text = program(
      "",
      "%t = stablehlo.create_token : !stablehlo.token",
      '%0:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)',
    );
    expect(refusal(text, evaluated)).toBe("TW9503 at 3");
  });
});

describe("what was probably meant", () => {
  const meant: readonly (readonly [string, string])[] = [
    ["%0 = stablehlo.choleski %x : tensor<4xf32>", "did you mean stablehlo.cholesky?"],
    [
      '%0 = "stablehlo.choleski"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
      "did you mean stablehlo.cholesky?",
    ],
    ["%0 = stablehlo.reverse %x, dim = [0] : tensor<4xf32>", "did you mean dims?"],
    ["%0 = call @mian(%x) : (tensor<4xf32>) -> tensor<4xf32>", "did you mean @main?"],
    ["%0 = stablehlo.abs %x : tensor<4xf23>", "did you mean f32?"],
    ["%0 = stablehlo.abs %x : tensr<4xf32>", "did you mean tensor?"],
    [
      "%0 = stablehlo.compare EW, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
      "did you mean EQ?",
    ],
    [
      "%0 = stablehlo.custom_call @Shardin(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>",
      "did you mean Sharding?",
    ],
    [
      '%0 = "stablehlo.reverse"(%x) {dimensoins = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>',
      "dimensoins is none of the op's",
    ],
  ];

  test.each(meant)("%s", (line, expected) => {
    expect(() => compiled(program("%x: tensor<4xf32>", line))).toThrow(expected);
  });
});

describe("what is printed is read as the same program", () => {
  const lines: readonly string[] = [
    '"a.b"(%x) {op_name = 1 : i64, operandSegmentSizes = array<i32: 1>} : (tensor<4xf32>) -> ()',
    '%0 = "stablehlo.dot_general"(%x, %x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = []}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>',
    '%0 = "stablehlo.while"(%x) ({ ^a(%a: tensor<3xf32>): stablehlo.return %a : tensor<3xf32> }, { ^b(%b: tensor<4xf32>): stablehlo.return %b : tensor<4xf32> }) : (tensor<4xf32>) -> tensor<4xf32>',
    '%0 = "stablehlo.batch_norm_inference"(%x, %x, %x, %x, %x) <{epsilon = -0.0 : f32, feature_index = 0 : i64}> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>',
    "interpreter.print %x : tensor<4xf32>",
    "%0 = stablehlo.constant dense<1.0> : tensor< 2x2xf32 >",
    '%0 = "a.b"() : () -> (() -> ()) %1 = "chlo.is_inf"(%0) : (() -> ()) -> tensor<4xi1>',
    "%0 = stablehlo.constant dense<[-1.0e-999999999, 1.0e999999999]> : tensor<2xf32>",
    '%0 = "stablehlo.reverse"(%x) {dimensions = array<i64: -0>} : (tensor<4xf32>) -> tensor<4xf32>',
  ];

  test.each(lines)("%s", (line) => {
    for (const generic of [false, true]) {
      const [module] = parseGraph(program("%x: tensor<4xf32>", line));
      if (module === undefined) throw new Error("no program");
      const printed = printGraph(module, { generic });
      const [again] = parseGraph(printed);
      if (again === undefined) throw new Error("no program");
      expect(printGraph(again, { generic })).toBe(printed);
      expect(printGraph(again)).toBe(printGraph(module));
    }
  });
});
