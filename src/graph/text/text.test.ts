/** Forms of text: each is read, printed, and what is printed read and printed again. */
import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Literal } from "../ops/index.ts";
import { printGraph as printForUsers } from "../checked.ts";
import { parseGraph, printGraph } from "./index.ts";
import type { PrintOptions } from "./index.ts";

function reprint(text: string, options?: PrintOptions): string {
  const print = (source: string): string =>
    parseGraph(source, "test.mlir")
      .map((module) => printGraph(module, options))
      .join("// -----\n");
  const once = print(text);
  expect(print(once)).toBe(once);
  return once;
}

/** A function around some ops; its one parameter is `%x: tensor<4xf32>`. */
function within(...lines: readonly string[]): string {
  return ["func.func @main(%x: tensor<4xf32>) {", ...lines, "return", "}"].join("\n");
}

/** The line of the function that a program prints to, by its number from the first op. */
function printedOp(text: string, options?: PrintOptions): string {
  return reprint(text, options).split("\n")[2]?.trim() ?? "";
}

function failure(text: string): TilewrightError {
  try {
    parseGraph(text, "test.mlir");
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the text was read");
}

describe("short forms", () => {
  const lines = [
    "%0 = stablehlo.abs %arg0 : tensor<4xf32>",
    "%0 = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xi32>",
    '%0 = stablehlo.add %arg0, %arg0 {mhlo.note = "kept"} : tensor<4xf32>',
    "%0 = stablehlo.compare LT, %arg0, %arg0, TOTALORDER : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>",
    "%0 = stablehlo.iota dim = 0 : tensor<4xi32>",
    "%0 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>",
    "%0 = stablehlo.reverse %arg0, dims = [0] : tensor<4xf32>",
    "%0 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>",
    "%0 = stablehlo.slice %arg0 [0:4:2] : (tensor<4xf32>) -> tensor<2xf32>",
    "%0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<4xf32>",
    "%0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0], precision = [HIGHEST, DEFAULT] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>",
    "%0 = stablehlo.optimization_barrier %arg0 : tensor<4xf32>",
    '%0 = stablehlo.custom_call @"not an id"(%arg0) {backend_config = {a = 1 : i32}, has_side_effect = true, api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>'.replace(
      "{backend_config = {a = 1 : i32}, has_side_effect = true,",
      "{has_side_effect = true, backend_config = {a = 1 : i32},",
    ),
    '%0 = stablehlo.composite "my.op" %arg0 {decomposition = @f} : (tensor<4xf32>) -> tensor<4xf32>',
    "%0 = stablehlo.create_token : !stablehlo.token",
    "%0 = stablehlo.replica_id : tensor<ui32>",
    "%0 = stablehlo.tuple %arg0, %arg0 : tuple<tensor<4xf32>, tensor<4xf32>>",
    "%0 = stablehlo.fft %arg0, type = RFFT, length = [4] : (tensor<4xf32>) -> tensor<3xcomplex<f32>>",
    "%0 = chlo.erf %arg0 : tensor<4xf32> -> tensor<4xf32>",
    "%0 = chlo.next_after %arg0, %arg0 : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>",
    "%0:2 = chlo.top_k(%arg0, k = 2) : tensor<4xf32> -> (tensor<2xf32>, tensor<2xi32>)",
    '%0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<4xf32>',
    "check.expect_close %arg0, %arg0, max_ulp_difference = 3 : tensor<4xf32>, tensor<4xf32>",
    "check.expect_eq_const %arg0, dense<0.000000e+00> : tensor<4xf32>",
    '%0 = interpreter.probe %arg0, probe_id = "p" : tensor<4xf32>',
    "%0 = stablehlo.uniform_quantize %arg0 : (tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 2.000000e+00:15>>",
    '%0 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>',
    '%0 = "other.op"(%arg0) <{a = [1 : i64, @f, unit, #d.x<y, z>], b = {c = tensor<?xf32>}}> : (tensor<4xf32>) -> tensor<?xf32>',
  ];
  for (const line of lines)
    test(line.slice(0, 60), () => {
      expect(printedOp(within(line.replaceAll("%arg0", "%x")))).toBe(line);
    });
});

describe("dynamic and quantised programs", () => {
  test("a convolution whose padding is known when it runs", () => {
    const line =
      "%1 = stablehlo.dynamic_conv(%arg0, %arg1, %0) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2]} {feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<?x8x3xf32>, tensor<3x3x4xf32>, tensor<1x2xi32>) -> tensor<?x?x4xf32>";
    const printed = reprint(
      [
        "func.func @main(%arg0: tensor<?x8x3xf32>, %arg1: tensor<3x3x4xf32>) -> tensor<?x?x4xf32> {",
        "%0 = stablehlo.constant dense<1> : tensor<1x2xi32>",
        line,
        "return %1 : tensor<?x?x4xf32> }",
      ].join("\n"),
    );
    expect(printed).toContain(line);
  });

  test("a constant of a quantised type, with properties", () => {
    const type = "tensor<2x!quant.uniform<i8:f32, 2.000000e+00>>";
    const printed = reprint(
      `func.func @main() -> ${type} {
         %0 = stablehlo.constant() <{value = dense<[1, -2]> : tensor<2xi8>}> : () -> ${type}
         return %0 : ${type} }`,
    );
    expect(printed).toContain(
      `%0 = "stablehlo.constant"() <{value = dense<[1, -2]> : tensor<2xi8>}> : () -> ${type}`,
    );
  });
});

describe("regions", () => {
  test("reduce with a name, and with a region of several operands", () => {
    const text = within(
      "%z = stablehlo.constant dense<0.0> : tensor<f32>",
      "%i = stablehlo.constant dense<0> : tensor<i32>",
      "%k = stablehlo.iota dim = 0 : tensor<4xi32>",
      "%a = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>",
      "%b:2 = stablehlo.reduce(%x init: %z), (%k init: %i) across dimensions = [0] : (tensor<4xf32>, tensor<4xi32>, tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<i32>)",
      " reducer(%l: tensor<f32>, %r: tensor<f32>) (%m: tensor<i32>, %n: tensor<i32>) {",
      "  stablehlo.return %r, %m : tensor<f32>, tensor<i32>",
      "}",
    );
    const printed = reprint(text);
    expect(printed).toContain("applies stablehlo.add across dimensions = [0]");
    expect(printed).toContain(
      "reducer(%arg1: tensor<f32>, %arg3: tensor<f32>) (%arg2: tensor<i32>, %arg4: tensor<i32>) {",
    );
    expect(printed).toContain("stablehlo.return %arg3, %arg2 : tensor<f32>, tensor<i32>");
  });

  test("while captures what is around it", () => {
    const printed = reprint(
      within(
        "%c = stablehlo.constant dense<3> : tensor<i32>",
        "%0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<4xf32>",
        " cond { %p = stablehlo.compare GT, %i, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>",
        " stablehlo.return %p : tensor<i1> } do {",
        " %n = stablehlo.add %a, %x : tensor<4xf32>",
        " stablehlo.return %i, %n : tensor<i32>, tensor<4xf32> }",
      ),
    );
    expect(printed).toContain("%1:2 = stablehlo.while(%arg1 = %0, %arg2 = %arg0)");
    expect(printed).toContain("%3 = stablehlo.add %arg2, %arg0 : tensor<4xf32>");
  });

  test("generic regions with and without labels", () => {
    const printed = reprint(
      within(
        "%c = stablehlo.constant dense<true> : tensor<i1>",
        '%0 = "stablehlo.if"(%c) ({ "stablehlo.return"(%x) : (tensor<4xf32>) -> () }, {',
        "  %n = stablehlo.negate %x : tensor<4xf32>",
        "  stablehlo.return %n : tensor<4xf32> }) : (tensor<i1>) -> tensor<4xf32>",
        '%1 = "stablehlo.sort"(%x) ({',
        "^bb0(%a: tensor<f32>, %b: tensor<f32>):",
        "  %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>",
        "  stablehlo.return %p : tensor<i1> }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>",
      ),
    );
    expect(printed).toContain('"stablehlo.sort"(%arg0) <{dimension = 0 : i64}> ({');
    expect(printed).toContain("^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):");
  });
});

describe("constants", () => {
  const constants = [
    [
      "dense<[1.0, 2.5, 0x7F800000, -0.0]> : tensor<4xf32>",
      "dense<[1.000000e+00, 2.500000e+00, 0x7F800000, -0.000000e+00]> : tensor<4xf32>",
    ],
    [
      'dense<"0x0000803F00000040"> : tensor<2xf32>',
      "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>",
    ],
    [
      "dense<[[true, false], [false, true]]> : tensor<2x2xi1>",
      "dense<[[true, false], [false, true]]> : tensor<2x2xi1>",
    ],
    ["dense<> : tensor<0x3xi32>", "dense<> : tensor<0x3xi32>"],
    [
      "dense<(1.0, -2.0)> : tensor<2xcomplex<f32>>",
      "dense<(1.000000e+00,-2.000000e+00)> : tensor<2xcomplex<f32>>",
    ],
    ["dense<1.765630e+00> : tensor<bf16>", "dense<1.765630e+00> : tensor<bf16>"],
    ["dense<0.1> : tensor<f64>", "dense<1.000000e-01> : tensor<f64>"],
    ["dense<0.33333333333333331> : tensor<f64>", "dense<3.333333333333333e-01> : tensor<f64>"],
    ["dense<-9223372036854775808> : tensor<i64>", "dense<-9223372036854775808> : tensor<i64>"],
    ["dense<[-8, 7]> : tensor<2xi4>", "dense<[-8, 7]> : tensor<2xi4>"],
    ["dense<0x7F> : tensor<f8E4M3FN>", "dense<0x7F> : tensor<f8E4M3FN>"],
    ['dense<"0x0F07"> : tensor<2xi4>', "dense<[-1, 7]> : tensor<2xi4>"],
    ['dense<"0xF30F"> : tensor<2xui4>', "dense<[3, 15]> : tensor<2xui4>"],
    [
      'dense<"0xF312"> : tensor<2xf4E2M1FN>',
      "dense<[1.500000e+00, 1.000000e+00]> : tensor<2xf4E2M1FN>",
    ],
    ['dense<"0x0100"> : tensor<2xi1>', "dense<[true, false]> : tensor<2xi1>"],
    ['dense<"0xFF"> : tensor<9xi1>', "dense<true> : tensor<9xi1>"],
    ['dense<"0x05"> : tensor<3xi1>', "dense<[true, false, true]> : tensor<3xi1>"],
    [
      'dense<"0x0501"> : tensor<9xi1>',
      "dense<[true, false, true, false, false, false, false, false, true]> : tensor<9xi1>",
    ],
  ] as const;
  for (const [written, printed] of constants)
    test(written, () => {
      expect(printedOp(within(`%0 = stablehlo.constant ${written}`))).toBe(
        `%0 = stablehlo.constant ${printed}`,
      );
    });

  test.each(["1.5abc", "1e", "1_000", "0x", "0x7F-1", "1.2.3", "1.0 ;"])(
    "%s is no number",
    (written) => {
      expect(failure(within(`%0 = stablehlo.constant dense<${written}> : tensor<f32>`)).code).toBe(
        "TW9006",
      );
    },
  );

  test("a decimal is rounded once", () => {
    // Just above the midpoint of 1 and the next f32; as an f64 it is that midpoint, which goes to even.
    const above = "1.00000005960464477540";
    const line = printedOp(within(`%0 = stablehlo.constant dense<${above}> : tensor<f32>`));
    expect(line).toContain("1.0000001192092896e+00");
  });

  test("a long list is printed as bytes", () => {
    const numbers = Array.from({ length: 101 }, (_, i) => i).join(", ");
    const line = printedOp(within(`%0 = stablehlo.constant dense<[${numbers}]> : tensor<101xui8>`));
    expect(line).toContain('dense<"0x000102');
  });
});

describe("modules", () => {
  test("may begin with a byte order mark", () => {
    expect(reprint(`\uFEFF${within()}`)).toBe(reprint(within()));
  });

  test("keep attributes, entries of other dialects and aliases", () => {
    const printed = reprint(
      [
        "#map = #d.x<1>",
        "!t = tensor<2xf32>",
        "module @m attributes {a = #map, mhlo.num_replicas = 1 : i32} {",
        '  sdy.mesh @mesh = <["x"=2]>',
        '  func.func public @main(%a: !t {jax.buffer_donor = true}) -> (tensor<2xf32> {jax.result_info = ""}) {',
        "    %0 = call @f(%a) : (tensor<2xf32>) -> tensor<2xf32>",
        "    return %0 : tensor<2xf32>",
        "  }",
        "  func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> { func.return %a : tensor<2xf32> }",
        "}",
      ].join("\n"),
    );
    expect(printed).toBe(
      [
        "module @m attributes {a = #d.x<1>, mhlo.num_replicas = 1 : i32} {",
        '  sdy.mesh @mesh = <["x"=2]>',
        '  func.func public @main(%arg0: tensor<2xf32> {jax.buffer_donor = true}) -> (tensor<2xf32> {jax.result_info = ""}) {',
        "    %0 = func.call @f(%arg0) : (tensor<2xf32>) -> tensor<2xf32>",
        "    return %0 : tensor<2xf32>",
        "  }",
        "  func.func private @f(%arg0: tensor<2xf32>) -> tensor<2xf32> {",
        "    return %arg0 : tensor<2xf32>",
        "  }",
        "}",
        "",
      ].join("\n"),
    );
  });

  test("in generic form throughout", () => {
    const printed = reprint(
      [
        '"builtin.module"() <{sym_name = "m"}> ({',
        '  "func.func"() <{function_type = (tensor<f32>) -> tensor<f32>, sym_name = "main", sym_visibility = "public", res_attrs = [{a = 1 : i32}]}> ({',
        "  ^bb0(%arg0: tensor<f32>):",
        '    %0 = "stablehlo.negate"(%arg0) : (tensor<f32>) -> tensor<f32>',
        '    "func.return"(%0) : (tensor<f32>) -> ()',
        "  }) : () -> ()",
        "}) {mhlo.num_partitions = 1 : i32} : () -> ()",
      ].join("\n"),
    );
    expect(printed).toContain("module @m attributes {mhlo.num_partitions = 1 : i32} {");
    expect(printed).toContain(
      "func.func public @main(%arg0: tensor<f32>) -> (tensor<f32> {a = 1 : i32})",
    );
  });

  test("a file is cut into programs", () => {
    const one = within("%0 = stablehlo.negate %x : tensor<4xf32>");
    expect(
      parseGraph(`// RUN: x\n${one}\n\n// -----\n// only this\n// // -----\n${one}`),
    ).toHaveLength(2);
  });

  test("locations give names and places", () => {
    const text = [
      "module {",
      '  func.func @main(%x: tensor<f32> loc("x")) -> tensor<f32> {',
      "    %0 = stablehlo.negate %x : tensor<f32> loc(#loc4)",
      "    return %0 : tensor<f32> loc(#loc1)",
      "  } loc(#loc1)",
      "} loc(#loc)",
      "#loc = loc(unknown)",
      '#loc1 = loc("model.py":3:4 to 3:20)',
      '#loc2 = loc("main.py":9:1)',
      "#loc3 = loc(callsite(#loc1 at #loc2))",
      '#loc4 = loc("jit(f)/neg"(#loc3))',
    ].join("\n");
    expect(printedOp(text, { locations: true })).toBe(
      '%0 = stablehlo.negate %arg0 : tensor<f32> loc("jit(f)/neg"("model.py":3:4))',
    );
  });
});

/** A constant of two i32, and the section that its data stand in. */
function withBlob(blob: string, name = "w"): string {
  const constant = within("%0 = stablehlo.constant dense_resource<w> : tensor<2xi32>");
  return `${constant}\n{-#\n  dialect_resources: { builtin: { ${name}: "${blob}" } }\n#-}`;
}

describe("constants whose data stand at the end", () => {
  const section = [
    "{-#",
    "  dialect_resources: {",
    "    other: { w: true },",
    "    builtin: {",
    '      w: "0x0400000001000000FEFFFFFF",',
    '      "x-1": "0x010000000100",',
    '      n: "0x0100000007FF",',
    '      none: "0x01000000"',
    "    }",
    "  },",
    "  external_resources: {",
    '    mlir_reproducer: { pipeline: "a{b}", verify_each: true }',
    "  }",
    "#-}",
  ].join("\n");
  const cases = [
    ["dense_resource<w> : tensor<2xi32>", "dense<[1, -2]> : tensor<2xi32>"],
    ['dense_resource<"x-1"> : tensor<2xi1>', "dense<[true, false]> : tensor<2xi1>"],
    ["dense_resource<n> : tensor<2x1xi4>", "dense<[[7], [-1]]> : tensor<2x1xi4>"],
    ["dense_resource<none> : tensor<0xf32>", "dense<> : tensor<0xf32>"],
  ] as const;
  for (const [named, read] of cases)
    test(named, () => {
      const text = `${within(`%0 = stablehlo.constant ${named}`)}\n${section}`;
      expect(printedOp(text)).toBe(`%0 = stablehlo.constant ${read}`);
    });
});

test("constants of megabytes", () => {
  const count = 3_000_000;
  const blob = "7F".repeat(count);
  const type = `tensor<${count}xi8>`;
  for (const text of [
    within(`%0 = stablehlo.constant dense<"0x${blob}"> : ${type}`),
    `${within(`%0 = stablehlo.constant dense_resource<w> : ${type}`)}
{-# dialect_resources: { builtin: { w: "0x01000000${blob}" } } #-}`,
  ]) {
    const [op] = parseGraph(text, "test.mlir")[0]?.functions.get("main")?.body.ops ?? [];
    const { value } = (op?.attributes ?? {}) as { readonly value?: Literal };
    const data = value?.data ?? [];
    expect(data).toHaveLength(count);
    expect(data[count - 1]).toBe(127);
  }
});

describe("mistakes", () => {
  const cases = [
    ["TW9001", 2, within("%0 = stablehlo.add %x %x : tensor<4xf32>")],
    ["TW9002", 2, within("%0 = stablehlo.negate %y : tensor<4xf32>")],
    [
      "TW9003",
      3,
      within(
        "%0 = stablehlo.negate %x : tensor<4xf32>",
        "%0 = stablehlo.negate %x : tensor<4xf32>",
      ),
    ],
    ["TW9004", 2, within('%0 = "stablehlo.iota"() : () -> tensor<4xf32>')],
    ["TW9004", 2, within('%0 = "stablehlo.add"(%x) : (tensor<4xf32>) -> tensor<4xf32>')],
    ["TW9005", 2, within("%0 = stablehlo.convert %x : (tensor<8xf32>) -> tensor<8xi32>")],
    ["TW9001", 1, "ML\ufffdR\rStableHLO_v1.9.0\0"],
    ["TW9005", 2, within("return %x : tensor<8xf32>")],
    [
      "TW9005",
      1,
      "func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> {\n return %x : tensor<4xf32> }\n",
    ],
    ["TW9003", 2, "func.func @f() {\n return }\nfunc.func @f() {\n return }\n".replace("{\n", "{")],
    ["TW9006", 2, within("%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>")],
    ["TW9006", 2, within("%0 = stablehlo.constant dense<300> : tensor<ui8>")],
    ["TW9007", 2, within("%0 = stablehlo.constant dense_resource<w> : tensor<2xi32>")],
    ["TW9006", 2, withBlob("0x0400000001000000")],
    ["TW9006", 2, withBlob("0x040000")],
    ["TW9006", 2, withBlob("0x04000000010000000200000")],
    ["TW9006", 2, withBlob("weights")],
    ["TW9007", 2, withBlob("0x040000000100000002000000", "w2")],
    [
      "TW9001",
      3,
      'module {}\n{-#\n  dialect_resources: { builtin: { w "0x" } }\n#-}'.replace(
        "module {}",
        within("%0 = stablehlo.constant dense_resource<w> : tensor<2xi32>").replaceAll("\n", " "),
      ),
    ],
    ["TW9008", 3, within('%0 = "a.b"() ({', "^bb0: ^bb1: }) : () -> tensor<f32>")],
    ["TW9009", 2, within("%0 = tensor.dim %x : tensor<4xf32>")],
  ] as const;
  for (const [code, line, text] of cases)
    test(`${code} on line ${line}: ${text.split("\n")[line - 1]?.slice(0, 50)}`, () => {
      const error = failure(text);
      expect(error.code).toBe(code);
      expect(error.position?.line).toBe(line);
    });
});

test("users print programs with their locations, too", () => {
  const [module] = parseGraph(
    "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }",
  );
  if (module === undefined) throw new Error("there is a module");
  expect(printForUsers(module, { locations: true })).toContain("return");
});
