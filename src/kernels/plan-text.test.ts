/**
 * What tells plans of the library apart before their kernels are traced: plans of one text have the same launches, whatever was
 * made in between, and launches that differ have different texts.
 */
import { describe, expect, test } from "vitest";
import { bf16, f16, f32, f8e4m3fn, i8 } from "../formats/dtype.ts";
import type { Operation } from "../device/operation.ts";
import { printKernel } from "../ir/printer.ts";
import { tensor, dim } from "../lang/index.ts";
import { targets } from "../targets/target.ts";
import {
  attention,
  attentionBackward,
  convolution,
  convolutionBackwardW,
  convolutionBackwardX,
  crossEntropy,
  layerNorm,
  logSoftmax,
  matmul,
  pagedAttention,
  quantize,
  raggedDot,
  raggedOuter,
  rmsNorm,
  rmsNormBackward,
  softmax,
  softmaxBackward,
} from "./index.ts";

const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const operands = { q: bf16, k: bf16, v: bf16 };
const image = { x: tensor(bf16, [2, 8, 8, 64]), w: tensor(bf16, [64, 3, 3, 64]), padding: 1 };
const plain = { kernel: "plain", rows: 64, columns: 64, depth: 32 } as const;

/** Pairs of a name have specifications that differ in one thing. */
const specs: readonly (() => unknown)[] = [
  () => matmul({ a: bf16, b: bf16 }),
  () => matmul({ a: f16, b: f16 }),
  () => matmul({ a: bf16, b: bf16, out: f32 }),
  () => matmul({ a: bf16, b: tensor(bf16, [k, n], { strides: [1, k] }) }),
  () => matmul({ a: f32, b: f32, precision: "tf32" }),
  () => matmul({ a: f32, b: f32, precision: "tf32x3" }),
  () => matmul({ a: f8e4m3fn, b: f8e4m3fn, accumulation: "fast" }),
  () => matmul({ a: i8, b: i8 }),
  () => matmul({ a: tensor(bf16, [m, 512]), b: tensor(bf16, [512, 1024]) }),
  () => matmul({ a: bf16, b: bf16, configuration: { ...plain, splitK: 1 } }),
  () => matmul({ a: bf16, b: bf16, configuration: { ...plain, splitK: 4 } }),
  () => raggedDot({ a: bf16, b: bf16 }),
  () => raggedDot({ a: bf16, b: bf16, out: f32 }),
  () => raggedOuter({ a: bf16, b: bf16 }),
  () => attention(operands),
  () => attention({ ...operands, causal: true }),
  () => attention({ ...operands, scale: 0.5 }),
  () => attentionBackward(operands),
  () => pagedAttention({ q: bf16, pages: { k: bf16, v: bf16 } }),
  () => softmax({ x: bf16 }),
  () => softmax({ x: bf16, axis: 0 }),
  () => logSoftmax({ x: bf16 }),
  () => softmaxBackward({ out: bf16, dOut: bf16 }),
  () => layerNorm({ x: bf16 }),
  () => layerNorm({ x: bf16, epsilon: 1e-6 }),
  () => rmsNorm({ x: bf16 }),
  () => crossEntropy({ logits: bf16 }),
  () => crossEntropy({ logits: bf16, gradient: true }),
  () => quantize({ x: bf16, out: i8 }),
  () => convolution(image),
  () => convolution({ ...image, padding: 0 }),
  () => convolutionBackwardX(image),
  () => convolutionBackwardW(image),
];

const sizes: readonly { readonly [name: string]: number }[] = [
  { m: 4096, n: 4096, k: 4096, d: 64, e: 64 },
  { m: 100, n: 1024, k: 512, d: 128, e: 128 },
];

/** Sizes that one operation is given one after the other, and that need kernels of their own. */
const walks = [
  {
    name: "numbers of rows that lie apart",
    make: () => {
      const dLoss = tensor(f32, [m, 1], { strides: [dim("apart"), 1] });
      return crossEntropy({ logits: tensor(bf16, [m, 1, n]), gradient: true, dLoss });
    },
    all: [1, 3, 16].map((apart) => ({ m: 264, n: 16_448, apart })),
  },
  {
    name: "rows of whole pieces and shorter ones",
    make: () => layerNorm({ x: bf16, scale: f32, bias: f32 }),
    // Whole, then in boxes as wide as those, then in narrower ones.
    all: [8192, 7936, 7808].map((columns) => ({ m: 4096, n: columns })),
  },
  {
    name: "sums over rows of other widths",
    make: () => rmsNormBackward({ x: bf16, scale: bf16 }),
    all: [1, 3, 127, 1025].map((columns) => ({ m: 300, n: columns })),
  },
];

/** What each dimension of an operation is; attention's own agree with each other. */
function dimensionsOf(operation: Operation, values: { readonly [name: string]: number }) {
  return Object.fromEntries(
    operation.kernel.dimensions.map(({ name, multipleOf }) => [
      name,
      values[name] ?? Math.max(multipleOf, 64),
    ]),
  );
}

/** The launches of a plan in words: kernels, what they are given, and the memory between them. */
function launchesText(plan: ReturnType<Operation["plan"]>): string {
  const launches = plan.launches.map(({ kernel, arguments: given, dimensions }) =>
    [printKernel(kernel.kernel), JSON.stringify(given), JSON.stringify(dimensions)].join("\n"),
  );
  const scratch = Object.entries(plan.scratch).map(([name, { dtype, shape }]) =>
    [name, dtype.name, ...shape].join(" "),
  );
  return [...launches, ...scratch].join("\n");
}

describe("plans of the library", () => {
  test("have one text for one list of launches", { timeout: 120_000 }, () => {
    const known = new Map<string, string>();
    let again = 0;
    for (let round = 0; round < 2; round += 1)
      for (const make of specs)
        for (const values of sizes) {
          const operation = make() as Operation;
          const plan = operation.plan(dimensionsOf(operation, values), targets.sm_90a);
          const { text } = plan;
          if (text === undefined) throw new Error(`${operation.name} was given data alone`);
          const launches = launchesText(plan);
          if (known.has(text)) again += 1;
          expect(known.get(text) ?? launches).toBe(launches);
          known.set(text, launches);
        }
    // The second round makes everything again; every specification has a text of its own.
    expect(again).toBeGreaterThanOrEqual(known.size);
    expect(known.size).toBeGreaterThanOrEqual(specs.length);
  });

  test.each(walks)("of one operation are those of a new one: $name", ({ make, all }) => {
    const operation = make();
    for (const dimensions of all) {
      const [found, wanted] = [operation, make()].map((each) =>
        launchesText(each.plan(dimensions, targets.sm_90a)),
      );
      expect(found).toBe(wanted);
    }
  });

  test("are not those for a GPU with other processors", () => {
    const operation = softmax({ x: bf16 });
    const [large, small] = [targets.sm_90a, { ...targets.sm_90a, processors: 16 }];
    const of = (target: typeof large) => operation.plan({ m: 1, n: 2 ** 21 }, target).configuration;
    expect(of(large)).toMatchObject({ gridCooperative: {}, blocks: 128 });
    expect(of(small)).not.toMatchObject({ blocks: 128 });
  });

  test("have none where a function is traced into them", () => {
    const textOf = (operation: unknown): string | undefined => {
      const given = operation as Operation;
      return given.plan(dimensionsOf(given, {})).text;
    };
    expect(textOf(matmul({ a: bf16, b: bf16 }))).toBeDefined();
    expect(
      textOf(matmul({ a: bf16, b: bf16, epilogue: ({ sums }) => sums.mul(2).cast(bf16) })),
    ).toBeUndefined();
    expect(textOf(attention({ ...operands, score: ({ score }) => score.mul(2) }))).toBeUndefined();
  });

  test("have another text for another choice", () => {
    const operation = matmul({ a: bf16, b: bf16 });
    const dimensions = { m: 64, n: 64, k: 64 };
    const choice = { ...plain, splitK: 2 };
    const [own, chosen] = [operation, operation.with(choice)].map((each) => each.plan(dimensions));
    expect(chosen?.text).toBeDefined();
    expect(chosen?.text).not.toBe(own?.text);
  });
});
