import { describe, expect, test } from "vitest";
import { everyOp } from "../../../test/support/every-op.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { opKinds } from "../ops.ts";
import type { OpKind } from "../ops.ts";
import { printKernel, printModule } from "../printer.ts";
import { walkOps } from "../traverse.ts";
import { verifyModule } from "../verify/index.ts";
import { parseModule } from "./parser.ts";

const header = 'kernel @k grid [i = 4] threads [main] (input %x "x": ref<gmem, f32, [8]>) {';

function parseBody(...lines: readonly string[]) {
  return parseModule([header, ...lines, "}"].join("\n"), "kernel.ir");
}

function mistake(parse: () => unknown): TilewrightError {
  try {
    parse();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("the text parses");
}

describe("round trip", () => {
  test("text of every op parses and prints as it was", () => {
    const module = parseModule(everyOp);
    const kinds = new Set<OpKind>();
    for (const { body } of module.kernels) walkOps(body, ({ kind }) => kinds.add(kind));
    const missing = opKinds.filter((kind) => !kinds.has(kind));
    expect(missing, "add a line with each to test/support/every-op.ts").toEqual([]);
    expect(printModule(module, { locations: true })).toBe(everyOp);
    verifyModule(module);
  });

  test("locations are left out unless asked for, and are kept when parsed", () => {
    const module = parseModule(everyOp);
    const withoutLocations = everyOp.replace(/ @ "(?:[^"\\]|\\.)*":\d+:\d+/g, "");
    expect(printModule(module)).toBe(withoutLocations);
    expect(module.kernels[0]?.location.position).toEqual({ file: "values.ts", line: 3, column: 1 });
    const [first, second] = module.kernels[0]?.body.ops ?? [];
    expect(first?.location.position).toEqual({ file: "values.ts", line: 4, column: 9 });
    expect(second?.location.position).toBeUndefined();
  });

  test.each([
    ["0", 0],
    ["-0", -0],
    ["nan", NaN],
    ["inf", Infinity],
    ["-inf", -Infinity],
    ["1.5", 1.5],
    ["1e+21", 1e21],
    ["5e-324", 5e-324],
    ["-1.7976931348623157e+308", -Number.MAX_VALUE],
  ])("the literal %s", (text, value) => {
    const line = `  %1 = constant {value = ${text}, dtype = f64, shape = []} : f64`;
    const module = parseBody(line, "yield");
    const op = module.kernels[0]?.body.ops[0];
    expect(op?.kind === "constant" && Object.is(op.attributes.value, value)).toBe(true);
    expect(printModule(module)).toContain(line);
  });

  test("values are numbered in the order of the text, whatever their names", () => {
    const module = parseBody(
      "%loaded = load %x : tile<f32, [8]>",
      "%negated = unary %loaded {fn = neg} : tile<f32, [8]>",
      "store %x, %negated yield",
    );
    expect(printKernel(module.kernels[0] ?? expect.fail()))
      .toBe(`kernel @k grid [i = 4] threads [main] (
  input %0 "x": ref<gmem, f32, [8]>
) {
  %1 = load %0 : tile<f32, [8]>
  %2 = unary %1 {fn = neg} : tile<f32, [8]>
  store %0, %2
  yield
}`);
  });

  test("an empty module is empty text", () => {
    expect(parseModule("\n").kernels).toEqual([]);
  });

  test("sizes are brought into their normal form", () => {
    const text =
      'kernel @k dimensions [m, n] grid [i = ceildiv(4*n, 2)] threads [t] (input %0 "x": ref<gmem, f32, [n*2*m*3]>) { yield }';
    const printed = printModule(parseModule(text));
    expect(printed).toContain("grid [i = 2*n]");
    expect(printed).toContain("ref<gmem, f32, [6*m*n]>");
  });
});

describe("mistakes", () => {
  const cases: readonly [string, readonly string[], Partial<TilewrightError>, number, number][] = [
    ["a stray character", ["%1 = thread_index; : i32"], { code: "TW2501", found: '";"' }, 2, 18],
    ["an open string", ['%1 = block_index {axis = "i} : i32'], { code: "TW2502" }, 2, 26],
    ["an unknown escape", ['%1 = block_index {axis = "\\q"} : i32'], { code: "TW2502" }, 2, 26],
    [
      "a missing comma",
      ["%1 = load %x : tile<f32, [8]>", "%2 = binary %1 %1 {fn = add} : tile<f32, [8]>"],
      { code: "TW2503", expected: "`,`", found: "`%1`" },
      3,
      16,
    ],
    [
      "an unknown function",
      ["%1 = load %x : tile<f32, [8]>", "%2 = unary %1 {fn = frob} : tile<f32, [8]>"],
      { code: "TW2503", found: "`frob`" },
      3,
      21,
    ],
    ["a region without yield", [], { code: "TW2503", found: "`}`" }, 2, 1],
    [
      "ops after yield",
      ["yield", "%1 = thread_index : i32"],
      { code: "TW2503", expected: "`}`" },
      3,
      1,
    ],
    [
      "a fraction for an integer",
      ["wait_group {pending = 1.5, read = true}"],
      { code: "TW2503" },
      2,
      23,
    ],
    [
      "a bigint with a fraction",
      ["%1 = constant {value = 1.5n, dtype = i64, shape = []} : i64"],
      { code: "TW2503" },
      2,
      24,
    ],
    [
      "an unknown format",
      ["%1 = constant {value = 1, dtype = f99, shape = []} : f32"],
      { code: "TW2503", found: "`f99`" },
      2,
      35,
    ],
    ["an unknown operation", ["%1 = frobnicate %x : f32"], { code: "TW2504" }, 2, 6],
    ["a name of Object's prototype", ["%1 = constructor : f32"], { code: "TW2504" }, 2, 6],
    ["an undefined value", ["%1 = load %y : tile<f32, [8]>"], { code: "TW2505" }, 2, 11],
    [
      "a value of an inner region",
      [
        "%c = constant {value = true, dtype = bool, shape = []} : bool",
        "if %c then {",
        "  %1 = thread_index : i32",
        "  yield",
        "} otherwise { yield }",
        'debug_print %1 {format = "{}"}',
      ],
      { code: "TW2505" },
      7,
      13,
    ],
    [
      "an op that uses its own result",
      ["%1 = unary %1 {fn = neg} : f32"],
      { code: "TW2505" },
      2,
      12,
    ],
    ["a value defined twice", ["%x = thread_index : i32"], { code: "TW2506" }, 2, 1],
    [
      "a missing attribute",
      ["%1 = block_index : i32"],
      { code: "TW2508", expected: "{axis = …}" },
      2,
      6,
    ],
    [
      "an attribute of another op",
      ["%1 = thread_index {axis = 1} : i32"],
      { code: "TW2508" },
      2,
      20,
    ],
    [
      "an attribute given twice",
      ["commit_group", 'assert %x {message = "", message = ""}'],
      { code: "TW2508" },
      3,
      26,
    ],
    ["an operand given twice", ["%1 = load %x fill(%x) fill(%x) : f32"], { code: "TW2508" }, 2, 23],
    [
      "a missing region",
      ["%1 = thread_index : i32", "switch %1", "scoped", "yield"],
      { code: "TW2097" },
      3,
      1,
    ],
    ["a region too few", ["scoped", "yield"], { code: "TW2508", expected: "one" }, 2, 1],
    [
      "another type than the inferred",
      ["%1 = thread_index : f32"],
      { code: "TW2509", expected: "i32", found: "f32" },
      2,
      6,
    ],
    [
      "no type",
      ["%1 = thread_index"],
      { code: "TW2509", expected: "i32", found: "no result" },
      2,
      6,
    ],
    [
      "too many names",
      ["%1, %2 = thread_index : i32"],
      { code: "TW2509", found: "i32, and 2 names for them" },
      2,
      10,
    ],
    [
      "a mistake that inference finds",
      ["%1 = load %x fill(%x) : tile<f32, [8]>"],
      { code: "TW2002" },
      2,
      6,
    ],
  ];

  test.each(cases)("%s", (_, lines, details, line, column) => {
    const error = mistake(() => parseBody(...lines));
    expect(error).toMatchObject(details);
    expect(error.position).toEqual({ file: "kernel.ir", line, column });
  });

  test("targets are known, and layouts are named in the header, once", () => {
    const kernel = (header: string, layout: string) =>
      `kernel @k grid [] threads [t] target ${header} (input %0 "x": ref<gmem, f32, [4]>) {
         %1 = load %0 : tile<f32, [4], ${layout}>
         yield
       }`;
    const code = (header: string, layout: string) =>
      mistake(() => parseModule(kernel(header, layout))).code;
    const named = 'sm_80 shared 0 layouts [A = "(L0 L1)"]';
    expect(code("sm_1 shared 0", "splat")).toBe("TW2511");
    expect(code(named, "B")).toBe("TW2510");
    expect(code('sm_80 shared 0 layouts [A = "(L0)", A = "(L1)"]', "A")).toBe("TW2506");
    const [named1, spelled] = [kernel(named, "A"), kernel(named, '"(L0 L1)"')].map((text) =>
      printModule(parseModule(text)),
    );
    expect(named1).toBe(spelled);
  });

  test("dimensions are declared, once", () => {
    const kernel = (dimensions: string, size: string) =>
      `kernel @k ${dimensions} grid [i = ${size}] threads [t] () { yield }`;
    expect(mistake(() => parseModule(kernel("", "n"))).code).toBe("TW2507");
    expect(mistake(() => parseModule(kernel("dimensions [n, n]", "n"))).code).toBe("TW2506");
    expect(mistake(() => parseModule(kernel("dimensions [n]", "ceildiv(n, 0)"))).code).toBe(
      "TW2503",
    );
    expect(parseModule(kernel("dimensions [ceildiv]", "ceildiv")).kernels).toHaveLength(1);
  });

  test("kernels of a module have different names", () => {
    const kernel = "kernel @k grid [] threads [t] () { yield }";
    expect(mistake(() => parseModule(`${kernel}\n${kernel}`))).toMatchObject({
      code: "TW2506",
      position: { file: "<ir>", line: 2, column: 1 },
    });
  });

  test("the end of the text is named", () => {
    expect(mistake(() => parseModule("kernel"))).toMatchObject({
      code: "TW2503",
      expected: "`@`",
      found: "the end of the text",
    });
  });
});
