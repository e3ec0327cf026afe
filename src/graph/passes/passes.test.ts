/** Each pass on a program: text in, text out. */
import { describe, expect, test } from "vitest";
import { listFiles, readText } from "../../../test/source-files.ts";
import { parseGraph, printGraph } from "../text/index.ts";
import type { PrintOptions } from "../text/index.ts";
import { verifyGraph } from "../verify/index.ts";
import { evaluate, isTensorDatum, tensor } from "../evaluate/index.ts";
import type { Datum } from "../evaluate/index.ts";
import { Random } from "../../support/random.ts";
import { csePass } from "./cse.ts";
import { dcePass } from "./dce.ts";
import { foldPass } from "./fold.ts";
import { inlinePass } from "./inline.ts";
import { hoistPass, unrollPass } from "./loops.ts";
import type { GraphPass } from "./pass.ts";
import { runPasses } from "./pass-order.ts";
import { simplifyPass } from "./simplify.ts";

function after(pass: GraphPass, text: string, options?: PrintOptions): readonly string[] {
  return parseGraph(text, "test.mlir").flatMap((module) => {
    const result = pass.run(module);
    verifyGraph(result);
    return printGraph(result, options)
      .split("\n")
      .map((line) => line.trim());
  });
}

describe("inline", () => {
  test("puts bodies where they are called, with names, and drops what nobody calls", () => {
    const lines = after(
      inlinePass,
      `func.func public @main(%x: tensor<f32>) -> tensor<f32> {
         %0 = call @f(%x) : (tensor<f32>) -> tensor<f32> loc("layer1")
         %1 = call @f(%0) : (tensor<f32>) -> tensor<f32> loc("layer2")
         return %1 : tensor<f32> }
       func.func private @f(%x: tensor<f32>) -> tensor<f32> {
         %0 = call @g(%x) : (tensor<f32>) -> tensor<f32> loc("inner")
         return %0 : tensor<f32> }
       func.func private @g(%x: tensor<f32>) -> tensor<f32> {
         %0 = stablehlo.sine %x : tensor<f32> loc("sin")
         return %0 : tensor<f32> }`,
      { locations: true },
    );
    expect(
      lines.filter((line) => line.includes("sine")).map((line) => /loc\("([^"]*)"/.exec(line)?.[1]),
    ).toEqual(["layer1/inner/sin", "layer2/inner/sin"]);
    expect(lines.filter((line) => line.includes("func.func"))).toHaveLength(1);
  });
});

describe("dce", () => {
  test("removes what nobody uses, and keeps checks and captures", () => {
    const lines = after(
      dcePass,
      `func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> tensor<f32> {
         %0 = stablehlo.sine %x : tensor<f32>
         %1 = stablehlo.cosine %x : tensor<f32>
         %2 = stablehlo.tanh %0 : tensor<f32>
         %3 = "stablehlo.if"(%p) ({
           %4 = stablehlo.negate %x : tensor<f32>
           stablehlo.return %1 : tensor<f32>
         }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
         check.expect_eq %x, %x : tensor<f32>
         return %3 : tensor<f32> }`,
    );
    expect(lines.filter((line) => /stablehlo\.(sine|tanh|negate)/.test(line))).toEqual([]);
    expect(lines).toContain("%0 = stablehlo.cosine %arg0 : tensor<f32>");
    expect(lines).toContain("check.expect_eq %arg0, %arg0 : tensor<f32>");
  });
});

describe("cse", () => {
  test("merges equal ops, also with those around a region, and not across kinds of constants", () => {
    const lines = after(
      csePass,
      `func.func @main(%x: tensor<f32>, %p: tensor<i1>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
         %a = stablehlo.constant dense<0.0> : tensor<f32>
         %b = stablehlo.constant dense<-0.0> : tensor<f32>
         %c = stablehlo.constant dense<0.0> : tensor<f32>
         %0 = stablehlo.add %x, %a : tensor<f32>
         %1 = stablehlo.add %x, %c : tensor<f32>
         %2 = stablehlo.add %x, %b : tensor<f32>
         %3 = "stablehlo.if"(%p) ({
           %4 = stablehlo.add %x, %a : tensor<f32>
           stablehlo.return %4 : tensor<f32>
         }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
         return %0, %1, %2, %3 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32> }`,
    );
    expect(lines.filter((line) => line.includes("stablehlo.add"))).toHaveLength(2);
    expect(lines).toContain("stablehlo.return %2 : tensor<f32>");
    expect(lines).toContain(
      "return %2, %2, %3, %4 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>",
    );
  });
});

describe("cse of ops with regions", () => {
  const reduction = (name: string, init: string, kind: string, swaps = false): string =>
    `%${name} = "stablehlo.reduce"(%x, ${init}) <{dimensions = array<i64: 0>}> ({
       ^bb0(%l: tensor<f32>, %r: tensor<f32>):
         %s = stablehlo.${kind} ${swaps ? "%r, %l" : "%l, %r"} : tensor<f32>
         %t = stablehlo.add %s, %y : tensor<f32>
         stablehlo.return %t : tensor<f32>
     }) : (tensor<4xf32>, tensor<f32>) -> tensor<f32>`;
  const countAfter = (...reductions: readonly string[]): number => {
    const names = reductions.map((text) => /%\w+/.exec(text)?.[0] ?? "");
    const types = names.map(() => "tensor<f32>").join(", ");
    const text = `func.func @main(%x: tensor<4xf32>, %z: tensor<f32>, %y: tensor<f32>) -> (${types}) {
      ${reductions.join("\n")}
      return ${names.join(", ")} : ${types} }`;
    return after(csePass, text).filter((line) => line.includes("stablehlo.reduce")).length;
  };

  test("equal reductions are one, whatever their values are called", () => {
    const other = reduction("b", "%z", "add").replaceAll("%l", "%first").replaceAll("%s", "%sum");
    expect(countAfter(reduction("a", "%z", "add"), other)).toBe(1);
  });

  test.each([
    ["another op", reduction("b", "%z", "multiply")],
    ["the other order", reduction("b", "%z", "add", true)],
    ["another initial value", reduction("b", "%y", "add")],
    ["another value around the region", reduction("b", "%z", "add").replaceAll("%y", "%z")],
  ])("not those with %s", (_, other) => {
    expect(countAfter(reduction("a", "%z", "add"), other)).toBe(2);
  });
});

describe("simplify", () => {
  const returned = (...lines: readonly string[]): string | undefined =>
    after(
      simplifyPass,
      `func.func @main(%x: tensor<4xf32>, %i: tensor<4xi32>, %p: tensor<4xi1>, %m: tensor<2x3xf32>) -> tensor<*> {
         %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
         %minus = stablehlo.constant dense<-0.0> : tensor<4xf32>
         %one = stablehlo.constant dense<1.0> : tensor<4xf32>
         %izero = stablehlo.constant dense<0> : tensor<4xi32>
         ${lines.join("\n")}
         return %r : tensor<*> }`.replaceAll("tensor<*>", typeOfLast(lines)),
    ).find((line) => line.startsWith("return"));

  function typeOfLast(lines: readonly string[]): string {
    return /(tensor<[^>]*>)\s*$/.exec(lines.at(-1) ?? "")?.[1] ?? "";
  }

  const gone: readonly (readonly string[])[] = [
    ["%r = stablehlo.add %x, %minus : tensor<4xf32>"],
    ["%r = stablehlo.subtract %x, %zero : tensor<4xf32>"],
    ["%r = stablehlo.multiply %one, %x : tensor<4xf32>"],
    ["%r = stablehlo.divide %x, %one : tensor<4xf32>"],
    ["%0 = stablehlo.negate %x : tensor<4xf32>", "%r = stablehlo.negate %0 : tensor<4xf32>"],
    ["%r = stablehlo.maximum %x, %x : tensor<4xf32>"],
    ["%r = stablehlo.select %p, %x, %x : tensor<4xi1>, tensor<4xf32>"],
    ["%r = stablehlo.slice %x [0:4] : (tensor<4xf32>) -> tensor<4xf32>"],
    [
      "%0 = stablehlo.reverse %x, dims = [0] : tensor<4xf32>",
      "%r = stablehlo.reverse %0, dims = [0] : tensor<4xf32>",
    ],
    [
      "%0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<2x2xf32>",
      "%r = stablehlo.reshape %0 : (tensor<2x2xf32>) -> tensor<4xf32>",
    ],
  ];
  for (const lines of gone)
    test(`goes: ${lines.at(-1)}`, () => {
      expect(returned(...lines)).toBe("return %arg0 : tensor<4xf32>");
    });

  test("integers have a zero that ends products, floats do not", () => {
    expect(returned("%r = stablehlo.multiply %i, %izero : tensor<4xi32>")).toBe(
      "return %3 : tensor<4xi32>",
    );
    expect(returned("%r = stablehlo.multiply %x, %zero : tensor<4xf32>")).toBe(
      "return %4 : tensor<4xf32>",
    );
    expect(returned("%r = stablehlo.add %x, %zero : tensor<4xf32>")).toBe(
      "return %4 : tensor<4xf32>",
    );
    expect(returned("%r = stablehlo.subtract %x, %x : tensor<4xf32>")).toBe(
      "return %4 : tensor<4xf32>",
    );
  });

  test("a reshape that adds axes is part of the broadcast after it", () => {
    const lines = after(
      simplifyPass,
      `func.func @main(%x: tensor<4xf32>) -> tensor<3x4x5xf32> {
         %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<1x4x1xf32>
         %1 = stablehlo.broadcast_in_dim %0, dims = [0, 1, 2] : (tensor<1x4x1xf32>) -> tensor<1x4x5xf32>
         %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1, 2] : (tensor<1x4x5xf32>) -> tensor<3x4x5xf32>
         return %2 : tensor<3x4x5xf32> }`,
    );
    expect(lines).toContain(
      "%2 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<4xf32>) -> tensor<3x4x5xf32>",
    );
  });

  test("nothing is seen through a barrier", () => {
    const lines = returned(
      "%0 = stablehlo.negate %x : tensor<4xf32>",
      "%1 = stablehlo.optimization_barrier %0 : tensor<4xf32>",
      "%r = stablehlo.negate %1 : tensor<4xf32>",
    );
    expect(lines).toBe("return %6 : tensor<4xf32>");
  });
});

describe("fold", () => {
  test("computes ops of constants, and keeps equal elements as one", () => {
    const lines = after(
      foldPass,
      `func.func @main() -> (tensor<1024x1024xf32>, tensor<2xf32>) {
         %a = stablehlo.constant dense<2.0> : tensor<4x4xf32>
         %0 = stablehlo.multiply %a, %a : tensor<4x4xf32>
         %b = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
         %1 = stablehlo.negate %b : tensor<2xf32>
         %c = stablehlo.constant dense<1.0> : tensor<1024x1024xf32>
         %2 = stablehlo.negate %c : tensor<1024x1024xf32>
         check.expect_eq %0, %0 : tensor<4x4xf32>
         return %2, %1 : tensor<1024x1024xf32>, tensor<2xf32> }`,
    );
    expect(lines).toContain("%1 = stablehlo.constant dense<4.000000e+00> : tensor<4x4xf32>");
    expect(lines).toContain(
      "%3 = stablehlo.constant dense<[-1.000000e+00, -2.000000e+00]> : tensor<2xf32>",
    );
    // Four megabytes are not computed in advance.
    expect(lines).toContain("%5 = stablehlo.negate %4 : tensor<1024x1024xf32>");
  });
});

describe("loops", () => {
  const loop = (trips: number): string => `func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%i = %c, %a = %x) : tensor<i32>, tensor<f32>
     cond {
      %n = stablehlo.constant dense<${trips}> : tensor<i32>
      %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %1 = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %1 : tensor<i32>
      %s = stablehlo.sine %x : tensor<f32>
      %k = stablehlo.add %a, %s : tensor<f32>
      stablehlo.return %j, %k : tensor<i32>, tensor<f32>
    }
    return %0#1 : tensor<f32> }`;

  test("what does not change is computed before", () => {
    const lines = after(hoistPass, loop(100));
    const start = lines.findIndex((line) => line.includes("stablehlo.while"));
    expect(
      lines.slice(0, start).filter((line) => /sine|dense<100>|dense<1>/.test(line)),
    ).toHaveLength(3);
    expect(lines.slice(start).some((line) => line.includes("sine"))).toBe(false);
  });

  test.each([
    // A counter that wraps runs on; literals of small floats are bit patterns; sums of truth values are no sums.
    ["i8", "120", "LT", "126", "10", 103, ""],
    ["ui8", "250", "LT", "254", "10", 26, ""],
    ["ui8", "2", "NE", "1", "1", 255, ""],
    ["i8", "126", "LT", "127", "1", 1, ""],
    ["bf16", "0.0", "LT", "3.0", "1.0", 3, ""],
    ["f16", "4.0", "GT", "1.0", "-1.0", 3, ""],
    ["f8E4M3FN", "0.0", "LE", "2.0", "1.0", 3, ""],
    ["f32", "0.0", "LE", "2.0", "1.0", 3, ""],
    ["f64", "0.5", "LT", "3.0", "1.0", 3, ""],
    // In total order -0 comes before 0.
    ["f32", "-0.0", "LT", "0.0", "1.0", 1, ", TOTALORDER"],
    ["f64", "0.0", "LE", "2.0", "1.0", 3, ", TOTALORDER"],
  ] as const)(
    "a counter of %s from %s while %s %s by %s",
    (type, from, is, to, by, trips, order) => {
      const [module] = parseGraph(
        `func.func @main(%n: tensor<i32>) -> tensor<i32> {
         %from = stablehlo.constant dense<${from}> : tensor<${type}>
         %to = stablehlo.constant dense<${to}> : tensor<${type}>
         %by = stablehlo.constant dense<${by}> : tensor<${type}>
         %one = stablehlo.constant dense<1> : tensor<i32>
         %0:2 = stablehlo.while(%i = %from, %m = %n) : tensor<${type}>, tensor<i32>
         cond {
           %p = stablehlo.compare ${is}, %i, %to${order} : (tensor<${type}>, tensor<${type}>) -> tensor<i1>
           stablehlo.return %p : tensor<i1>
         } do {
           %j = stablehlo.add %i, %by : tensor<${type}>
           %k = stablehlo.add %m, %one : tensor<i32>
           stablehlo.return %j, %k : tensor<${type}>, tensor<i32>
         }
         return %0#1 : tensor<i32> }`,
        "test.mlir",
      );
      if (module === undefined) throw new Error("no program");
      const zero = tensor("i32", [], Int32Array.of(0));
      const runs = [module, unrollPass.run(module)].map((each) =>
        evaluate(each, "main", [zero]).flatMap((datum) =>
          isTensorDatum(datum) ? [...datum.data] : [],
        ),
      );
      expect(runs).toEqual([[trips], [trips]]);
    },
  );
  test("a few trips are written out, many are not", () => {
    const few = after(unrollPass, loop(3));
    expect(few.some((line) => line.includes("while"))).toBe(false);
    expect(few.filter((line) => line.includes("sine"))).toHaveLength(3);
    expect(after(unrollPass, loop(9)).some((line) => line.includes("while"))).toBe(true);
  });
});

describe("programs that JAX printed", () => {
  for (const file of listFiles("test/fixtures/programs", /\.mlir$/))
    test(`${file} stays a program`, () => {
      for (const module of parseGraph(readText(file), file)) {
        const result = runPasses(module);
        verifyGraph(result);
        // What a composite is decomposed to stays a function.
        const composites = readText(file).split(/stablehlo\.composite\b/).length - 1;
        expect(result.functions.size).toBe(1 + composites);
      }
    });
});

describe("random programs", () => {
  const kinds = ["add", "subtract", "multiply", "divide", "maximum", "minimum"];
  const numbers = ["0.0", "-0.0", "1.0", "0x7FC00000", "0x7F800000", "0xFF800000", "-2.5"];

  /** A program over values of one type, with repeated and special values. */
  function write(random: Random): string {
    const names = ["%x", "%y"];
    const lines: string[] = [];
    const pick = <T>(list: readonly T[]): T =>
      list[Math.floor(random.uniform() * list.length)] as T;
    for (let i = 0; i < 30; i++) {
      const name = `%v${i}`;
      const choice = random.uniform();
      if (choice < 0.2)
        lines.push(`${name} = stablehlo.constant dense<${pick(numbers)}> : tensor<2x3xf32>`);
      else if (choice < 0.7)
        lines.push(
          `${name} = stablehlo.${pick(kinds)} ${pick(names)}, ${pick(names)} : tensor<2x3xf32>`,
        );
      else if (choice < 0.8)
        lines.push(`${name} = stablehlo.negate ${pick(names)} : tensor<2x3xf32>`);
      else if (choice < 0.9) {
        lines.push(
          `%t${i} = stablehlo.transpose ${pick(names)}, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>`,
        );
        lines.push(`${name} = stablehlo.reshape %t${i} : (tensor<3x2xf32>) -> tensor<2x3xf32>`);
      } else {
        lines.push(
          `%p${i} = stablehlo.compare LT, ${pick(names)}, ${pick(names)} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>`,
        );
        lines.push(
          `${name} = stablehlo.select %p${i}, ${pick(names)}, ${pick(names)} : tensor<2x3xi1>, tensor<2x3xf32>`,
        );
      }
      names.push(name);
    }
    const [a, b, c] = [names.at(-1), names.at(-2), names.at(-3)];
    const type = "tensor<2x3xf32>";
    return `func.func @main(%x: ${type}, %y: ${type}) -> (${type}, ${type}, ${type}) {\n${lines.join("\n")}\nreturn ${a}, ${b}, ${c} : ${type}, ${type}, ${type} }`;
  }

  test("give the same bits before and after", () => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = new Random(seed);
      const [module] = parseGraph(write(random));
      if (module === undefined) throw new Error("the text has a program");
      const special = [0, -0, 1, -1, NaN, Infinity, -Infinity, 2.5];
      const input = (): Datum =>
        tensor(
          "f32",
          [2, 3],
          Float32Array.from({ length: 6 }, () => special[Math.floor(random.uniform() * 8)] ?? 0),
        );
      const inputs = [input(), input()];
      const bits = (data: readonly Datum[]): readonly unknown[] =>
        data
          .filter(isTensorDatum)
          .map(({ data }) =>
            Array.from(data as Float32Array, (value) =>
              Object.is(value, -0) ? "-0" : String(value),
            ),
          );
      const result = runPasses(module);
      verifyGraph(result);
      expect(bits(evaluate(result, "main", inputs)), `seed ${seed}`).toEqual(
        bits(evaluate(module, "main", inputs)),
      );
      expect(result.functions.get("main")?.body.ops.length ?? 0).toBeLessThanOrEqual(
        module.functions.get("main")?.body.ops.length ?? 0,
      );
    }
  });
});
