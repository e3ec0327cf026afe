/** Every code about the text of a program names the line of the text, at whatever stage it is found. */
import { expect, test } from "vitest";
import { evaluateCodes } from "../../support/diagnostic-codes/evaluate.ts";
import { graphDeviceCodes } from "../../support/diagnostic-codes/graph-devices.ts";
import { graphTextCodes } from "../../support/diagnostic-codes/graph-text.ts";
import { graphCodes } from "../../support/diagnostic-codes/graph.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { evaluate } from "../evaluate/index.ts";
import { compilePlan } from "../plan/compile.ts";
import { verifyGraph } from "../verify/index.ts";
import { parseGraph } from "./index.ts";

/** What stands on the third line of a program; a fourth and fifth may follow. */
const wrong: { readonly [code: string]: string } = {
  TW9001: "%0 = stablehlo.add %x %x : tensor<4xf32>",
  TW9002: "%0 = stablehlo.negate %missing : tensor<4xf32>",
  TW9003: "%x = stablehlo.constant dense<1.0> : tensor<4xf32>",
  TW9004: '%0 = "stablehlo.iota"() : () -> tensor<4xf32>',
  TW9005: "%0 = stablehlo.abs %x : (tensor<8xf32>) -> tensor<8xf32>",
  TW9006: "%0 = stablehlo.constant dense<[1, 2, 3]> : tensor<2xi32>",
  TW9007: "%0 = stablehlo.constant dense_resource<weights> : tensor<2xf32>",
  TW9008: "^other:",
  TW9009: "%0 = tensor.dim %x : tensor<4xf32>",
  TW9010: `%0 = "a.b"() {x = ${"[".repeat(1000)}} : () -> tensor<f32>`,
  TW9011: '%0 = "a.b"() : () -> tensor<99999999999x99999999999xf32>',
  TW9012: "%0 = stablehlo.abs %x : tensor<4xf33>",
  TW9101: '%0 = "stablehlo.add"(%x, %y) : (tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>',
  TW9102: "%0 = stablehlo.popcnt %x : tensor<4xf32>",
  TW9103: "%0 = stablehlo.reverse %x, dims = [1] : tensor<4xf32>",
  TW9104: "%0 = stablehlo.slice %x [0:9] : (tensor<4xf32>) -> tensor<9xf32>",
  TW9105:
    '%0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({ stablehlo.return %x : tensor<4xf32> }) : (tensor<4xf32>) -> tensor<4xf32>',
  TW9106: "%0 = stablehlo.abs %x : (tensor<4xf32>) -> tensor<8xf32>",
  TW9107: "call @missing() : () -> ()",
  TW9108: "call @main() : () -> ()",
  TW9109: "call @f0() : () -> ()",
  TW9501: '%0 = "a.b"(%x) : (tensor<4xf32>) -> tensor<4xf32>',
  TW9502: "check.expect_eq_const %x, dense<2.0> : tensor<4xf32>",
  TW9503:
    '%0:2 = "stablehlo.recv"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (!stablehlo.token) -> (tensor<f32>, !stablehlo.token)',
  TW9506: "%0 = stablehlo.iota dim = 0 : tensor<1000000000000xi32>",
  TW9601:
    "%0 = stablehlo.rng %z, %z, %n, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<1xf32>",
  TW9602: "%0 = stablehlo.dynamic_iota %n, dim = 0 : (tensor<1xi64>) -> tensor<?xf32>",
};

/** Codes about a call from TypeScript, which names the caller's line. */
const ofCalls = ["TW9504", "TW9505"];

/** The functions that TW9109 is about, each calling the next twice. */
const doubling = Array.from(
  { length: 40 },
  (_, i) =>
    `func.func private @f${i}() { ${i === 39 ? "" : `call @f${i + 1}() : () -> () `.repeat(2)}return }`,
).join("\n");

const values = [
  "%x = stablehlo.constant dense<1.0> : tensor<4xf32>",
  "%y = stablehlo.constant dense<1.0> : tensor<8xf32>",
  "%z = stablehlo.constant dense<1.0> : tensor<f32>",
  "%n = stablehlo.constant dense<1> : tensor<1xi64>",
  "%t = stablehlo.create_token : !stablehlo.token",
].join(" ");

test.each(Object.entries(wrong))("%s names its line", (code, line) => {
  const text = `func.func @main() {\n${values}\n${line}\nreturn\n}\n${doubling}`;
  let found: unknown;
  try {
    const [module] = parseGraph(text, "program.mlir");
    if (module === undefined) throw new Error("no program");
    verifyGraph(module);
    if (code.startsWith("TW95")) evaluate(module, "main", []);
    else compilePlan(module, "main");
  } catch (error) {
    found = error;
  }
  if (!(found instanceof TilewrightError)) throw found;
  expect(found.code).toBe(code);
  const place = [found.position, found.generated].find((each) => each?.file === "program.mlir");
  // Functions that become too many ops are refused where there are too many.
  if (code === "TW9109") expect(place?.line).toBeGreaterThan(5);
  else expect(place?.line).toBe(3);
});

test("every code about programs is among them", () => {
  const codes = [graphTextCodes, evaluateCodes, graphDeviceCodes].flatMap(Object.keys);
  const structural = Object.keys(graphCodes).filter((code) => code.startsWith("TW91"));
  const expected = [...codes, ...structural].filter((code) => !ofCalls.includes(code));
  expect(Object.keys(wrong).sort()).toEqual(expected.sort());
});
