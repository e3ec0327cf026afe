/**
 * Products, quantisation and back with scales of blocks, on the evaluator and on the simulator. References are sums in f64 of the
 * numbers that codes stand for.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Device } from "../../../device/device.ts";
import { open } from "../../../runtime/open.ts";
import { Random } from "../../../support/random.ts";
import { evaluate, isTensorDatum, tensor } from "../../evaluate/index.ts";
import type { Tensor } from "../../evaluate/index.ts";
import { numbersOf } from "../../evaluate/scalars.ts";
import { decodeElement } from "../../ops/index.ts";
import { compilePlan } from "../../plan/compile.ts";
import { Program } from "../../plan/program.ts";
import { parseGraph } from "../../text/index.ts";

let device: Device;
beforeAll(async () => {
  device = await open("simulator", { onNotes: () => undefined });
});
afterAll(() => {
  device.dispose();
});

type Coded = "f4E2M1FN" | "f8E4M3FN" | "f8E5M2" | "f8E8M0FNU";

/** The results of a program on the evaluator and on the simulator. */
async function resultsOf(
  text: string,
  inputs: readonly Tensor[],
): Promise<readonly (readonly Float64Array[])[]> {
  const [module] = parseGraph(text);
  if (module === undefined) throw new Error("the text has a program");
  const program = await Program.load(device, compilePlan(module, "main"));
  try {
    const both = [evaluate(module, "main", inputs), await program.run(inputs)];
    return both.map((each) =>
      each.filter(isTensorDatum).map((one) => Float64Array.from(numbersOf(one), Number)),
    );
  } finally {
    program.dispose();
  }
}

const typeOf = ({ element, shape }: Tensor): string => `tensor<${[...shape, element].join("x")}>`;

function callText(
  target: string,
  inputs: readonly Tensor[],
  results: string,
  settings = "",
): string {
  const names = inputs.map((_, i) => `%${i}`).join(", ");
  const types = inputs.map(typeOf);
  const isOne = !results.includes(",");
  const returned = isOne ? "%r" : "%r#0, %r#1";
  return `func.func @main(${types.map((type, i) => `%${i}: ${type}`).join(", ")}) -> (${results}) {
    %r${isOne ? "" : ":2"} = stablehlo.custom_call @${target}(${names}) {${settings}} : (${types.join(", ")}) -> ${isOne ? results : `(${results})`}
    return ${returned} : ${results}
  }`;
}

/** Codes of finite numbers; those of scales are within 2^±range of 1. */
function codes(random: Random, element: Coded, shape: readonly number[], range = 4): Tensor {
  const count = shape.reduce((all, extent) => all * extent, 1);
  const draw = (): number => {
    for (;;) {
      const code =
        element === "f8E8M0FNU"
          ? 127 + random.below(2 * range + 1) - range
          : random.below(element === "f4E2M1FN" ? 16 : 256);
      if (Number.isFinite(decodeElement(element, code))) return code;
    }
  };
  return tensor(element, shape, Uint8Array.from({ length: count }, draw));
}

const decoded = new WeakMap<Tensor, readonly number[]>();

function numbers(given: Tensor): readonly number[] {
  const known = decoded.get(given);
  if (known !== undefined) return known;
  const made = Array.from(given.data as Uint8Array, (code) =>
    decodeElement(given.element as Coded, code),
  );
  decoded.set(given, made);
  return made;
}

interface Scaled {
  readonly values: Tensor;
  readonly scales: Tensor;
  readonly block: number;
}

/** Element [b, row, at] times its scale, where rows of scales may be longer than need be. */
function numberAt({ values, scales, block }: Scaled, b: number, row: number, at: number): number {
  const [[rows = 1, k = 1], [scaleRows = 1, count = 1]] = [
    values.shape.slice(-2),
    scales.shape.slice(-2),
  ] as [number[], number[]];
  const value = numbers(values)[(b * rows + row) * k + at] as number;
  return (
    value * (numbers(scales)[(b * scaleRows + row) * count + Math.floor(at / block)] as number)
  );
}

/** Sums, and sums of magnitudes, which errors are measured by. */
function product(lhs: Scaled, rhs: Scaled): { readonly sums: number[]; readonly sizes: number[] } {
  const [batch, [m = 1, k = 1]] = [
    lhs.values.shape.length === 3 ? (lhs.values.shape[0] ?? 1) : 1,
    lhs.values.shape.slice(-2),
  ];
  const n = rhs.values.shape.at(-2) ?? 1;
  const [sums, sizes]: [number[], number[]] = [[], []];
  for (let b = 0; b < batch; b++)
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let [sum, size] = [0, 0];
        for (let at = 0; at < k; at++) {
          const term = numberAt(lhs, b, i, at) * numberAt(rhs, b, j, at);
          [sum, size] = [sum + term, size + Math.abs(term)];
        }
        sums.push(sum);
        sizes.push(size);
      }
  return { sums, sizes };
}

/** Products of bf16 are exact in f32, and so is a sum but for a rounding a term. */
function expectNear(
  found: Float64Array | undefined,
  { sums, sizes }: ReturnType<typeof product>,
  k: number,
  factor = 1,
): void {
  for (const [i, sum] of sums.entries()) {
    const bound = (k + 2) * 2 ** -24 * (sizes[i] ?? 0) * factor;
    expect(Math.abs((found?.[i] ?? NaN) - sum * factor), `element ${i}`).toBeLessThanOrEqual(bound);
  }
}

const dot = "__op$block_scaled_dot";
/** As JAX prints them. */
const ofJax = String.raw`api_version = 2 : i32, backend_config = "{\22scaled_dot_backend_config\22: {\22lhs_batch_dimensions\22: [0], \22rhs_batch_dimensions\22: [0], \22dequantize_type\22: \22F32\22}}"`;
const withBlocks = (size: number): string =>
  String.raw`backend_config = "{\22block_scaled_dot_backend_config\22: {\22block_size\22: ${size}}}"`;

describe("products with scales of blocks", () => {
  // Behaviours 48 to 50, 58: formats alone and mixed, one row, a batch, k of one block.
  test.each<
    readonly [Coded, Coded, Coded, number, readonly number[], readonly [number, number, number]]
  >([
    ["f8E4M3FN", "f8E4M3FN", "f8E8M0FNU", 32, [2], [5, 3, 96]],
    ["f8E4M3FN", "f8E5M2", "f8E8M0FNU", 32, [], [1, 7, 64]],
    ["f4E2M1FN", "f4E2M1FN", "f8E4M3FN", 16, [1], [9, 4, 48]],
    ["f4E2M1FN", "f4E2M1FN", "f8E8M0FNU", 32, [], [3, 3, 32]],
    ["f8E4M3FN", "f4E2M1FN", "f8E8M0FNU", 32, [3], [2, 5, 64]],
  ])(
    "%s · %s with %s by %i, batch %j, sizes %j",
    async (left, right, scale, block, batch, [m, n, k]) => {
      const random = new Random(17);
      const make = (element: Coded, rows: number): Scaled => ({
        values: codes(random, element, [...batch, rows, k]),
        scales: codes(random, scale, [...batch, rows, k / block]),
        block,
      });
      const [lhs, rhs] = [make(left, m), make(right, n)];
      const inputs = [lhs.values, rhs.values, lhs.scales, rhs.scales];
      const text = callText(dot, inputs, `tensor<${[...batch, m, n, "f32"].join("x")}>`, ofJax);
      for (const [found] of await resultsOf(text, inputs)) expectNear(found, product(lhs, rhs), k);
    },
  );

  test("small integers are exact, in any result format (54)", async () => {
    const random = new Random(3);
    const whole = (rows: number): Scaled => ({
      values: tensor(
        "f8E4M3FN",
        [rows, 64],
        Uint8Array.from(
          { length: rows * 64 },
          () => [0x38, 0xb8, 0x40, 0x44][random.below(4)] as number,
        ),
      ),
      scales: codes(random, "f8E8M0FNU", [rows, 2], 1),
      block: 32,
    });
    const [lhs, rhs] = [whole(4), whole(6)];
    const inputs = [lhs.values, rhs.values, lhs.scales, rhs.scales];
    const { sums } = product(lhs, rhs);
    for (const element of ["f32", "f64"] as const) {
      const text = callText(dot, inputs, `tensor<4x6x${element}>`);
      for (const [found] of await resultsOf(text, inputs))
        expect(Array.from(found ?? [])).toEqual(sums);
    }
  });

  test("scales may be padded where the size of blocks is given, which need not divide k (56)", async () => {
    const random = new Random(5);
    const make = (rows: number, padded: readonly number[]): Scaled => ({
      values: codes(random, "f8E4M3FN", [rows, 80]),
      scales: codes(random, "f8E8M0FNU", padded),
      block: 32,
    });
    const [lhs, rhs] = [make(3, [8, 4]), make(5, [5, 3])];
    const inputs = [lhs.values, rhs.values, lhs.scales, rhs.scales];
    const text = callText(dot, inputs, "tensor<3x5xf32>", withBlocks(32));
    for (const [found] of await resultsOf(text, inputs)) expectNear(found, product(lhs, rhs), 80);
    const [module] = parseGraph(callText(dot, inputs, "tensor<3x5xf32>"));
    expect(() => compilePlan(module as NonNullable<typeof module>, "main")).toThrow("TW9601");
    expect(() => evaluate(module as NonNullable<typeof module>, "main", inputs)).toThrow(
      /settings are not known/,
    );
  });

  test("a global scale, and a right operand without scales (57)", async () => {
    const random = new Random(7);
    const lhs = {
      values: codes(random, "f4E2M1FN", [4, 32]),
      scales: codes(random, "f8E4M3FN", [4, 2]),
      block: 16,
    };
    const rhs = {
      values: codes(random, "f4E2M1FN", [6, 32]),
      scales: codes(random, "f8E4M3FN", [6, 2]),
      block: 16,
    };
    const global = tensor("f32", [], Float32Array.of(0.375));
    const inputs = [lhs.values, rhs.values, lhs.scales, rhs.scales, global];
    const text = callText(dot, inputs, "tensor<4x6xf32>");
    for (const [found] of await resultsOf(text, inputs))
      expectNear(found, product(lhs, rhs), 33, 0.375);
    const ones = { ...rhs, scales: tensor("f8E4M3FN", [6, 2], new Uint8Array(12).fill(0x38)) };
    const three = inputs.slice(0, 3);
    for (const [found] of await resultsOf(callText(dot, three, "tensor<4x6xf32>"), three))
      expectNear(found, product(lhs, ones), 32);
  });

  test("scales in another order give other sums", async () => {
    const random = new Random(9);
    const make = (): Scaled => ({
      values: codes(random, "f8E4M3FN", [4, 128]),
      scales: codes(random, "f8E8M0FNU", [4, 4]),
      block: 32,
    });
    const [lhs, rhs] = [make(), make()];
    const { data } = lhs.scales;
    const turned = tensor(
      "f8E8M0FNU",
      [4, 4],
      Uint8Array.from({ length: 16 }, (_, i) => Number(data[(i % 4) * 4 + (i >> 2)])),
    );
    const inputs = [lhs.values, rhs.values, turned, rhs.scales];
    for (const [found] of await resultsOf(callText(dot, inputs, "tensor<4x4xf32>"), inputs))
      expect(() => {
        expectNear(found, product(lhs, rhs), 128);
      }).toThrow();
  });
});

describe("quantisation as XLA has it", () => {
  test.each<readonly [Coded, Coded, number, number]>([
    ["f8E4M3FN", "f8E8M0FNU", 32, 256],
    ["f8E5M2", "f8E8M0FNU", 32, 32768],
    ["f4E2M1FN", "f8E4M3FN", 16, 4],
  ])("%s with %s by %i, and back (55)", async (element, scale, block, emax) => {
    const random = new Random(11);
    const x = Float32Array.from({ length: 3 * 64 }, () => Math.fround(random.normal() * 5));
    const given = tensor("f32", [3, 64], x);
    const [values, scales] = [`tensor<3x64x${element}>`, `tensor<3x${64 / block}x${scale}>`];
    const text = callText("__op$quantize", [given], `${values}, ${scales}`);
    for (const [codesOfX, codesOfScales] of await resultsOf(text, [given])) {
      for (let b = 0; b < (3 * 64) / block; b++) {
        const own = Array.from(x.subarray(b * block, (b + 1) * block));
        const greatest = Math.max(...own.map(Math.abs)) / emax;
        const found = codesOfScales?.[b] as number;
        // Powers of two are rounded to the nearer one, E4M3 to 3 bits after the first.
        expect(Math.abs(found / greatest - 1)).toBeLessThanOrEqual(
          scale === "f8E8M0FNU" ? 1 / 3 : 1 / 16,
        );
        const step = element === "f8E4M3FN" ? 2 ** -4 : element === "f8E5M2" ? 2 ** -3 : 2 ** -2;
        const most = element === "f8E4M3FN" ? 448 : element === "f8E5M2" ? 57344 : 6;
        own.forEach((value, i) => {
          const wanted = value / found;
          const got = codesOfX?.[b * block + i] as number;
          if (Math.abs(wanted) <= most)
            expect(Math.abs(got - wanted)).toBeLessThanOrEqual(
              Math.max(Math.abs(wanted) * step, 0.25),
            );
        });
      }
    }
    const coded = {
      values: codes(random, element, [3, 64]),
      scales: codes(random, scale, [3, 64 / block]),
      block,
    };
    const inputs = [coded.values, coded.scales];
    const back = callText("__op$dequantize", inputs, "tensor<3x64xf32>");
    const wanted = Array.from({ length: 192 }, (_, i) =>
      numberAt(coded, 0, Math.floor(i / 64), i % 64),
    );
    for (const [found] of await resultsOf(back, inputs))
      expect(Array.from(found ?? [])).toEqual(wanted);
  });
});
