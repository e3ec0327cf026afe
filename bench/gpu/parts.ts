/**
 * The parts of the benchmark. Each ends within ten minutes with every peer, so that a machine that is lent for a short
 * time can be used; their figures come together in one file.
 */
import type { BenchCase } from "./case.ts";
import { attentionBackwardCase } from "./cases/attention-backward.ts";
import { attentionCase } from "./cases/attention.ts";
import type { AttentionTask } from "./cases/attention.ts";
import { convolutionParts } from "./cases/convolution.ts";
import { handwrittenCases } from "./cases/handwritten.ts";
import { languageCases } from "./cases/language.ts";
import { libraryParts } from "./cases/library.ts";
import { matmulCase } from "./cases/matmul.ts";
import type { ProductTask } from "./cases/matmul.ts";
import { memoryCases } from "./cases/memory.ts";
import { pagedCase } from "./cases/paged.ts";
import type { PagedTask } from "./cases/paged.ts";
import { formatCases } from "./cases/product-formats.ts";
import { raggedCase, raggedOuterCase, raggedWeightsCase } from "./cases/ragged.ts";
import type { RaggedTask } from "./cases/ragged.ts";
import { scaledCases } from "./cases/scaled.ts";

/** m, n, k: squares, wide and deep ones, those of language models, uneven ones, and few rows. */
export const productShapes: readonly (readonly [m: number, n: number, k: number])[] = [
  [1024, 1024, 1024],
  [2048, 2048, 2048],
  [4096, 4096, 4096],
  [8192, 8192, 8192],
  [4096, 8192, 4096],
  [16384, 16384, 1024],
  [8192, 8192, 512],
  [4096, 4096, 16384],
  [5120, 13824, 5120],
  [8192, 28672, 8192],
  [1664, 2816, 16384],
  [1000, 3000, 2000],
  [64, 8192, 28672],
  [16, 8192, 28672],
  [1, 8192, 28672],
];

/** No size that TMA could take. */
const oddShape = [1001, 3003, 2001] as const;

function products(
  shapes: readonly (readonly [number, number, number])[],
  form: Pick<ProductTask, "dtype" | "b">,
): readonly BenchCase[] {
  return shapes.map(([m, n, k]) => matmulCase({ ...form, m, n, k }));
}

const shapesByPart = {
  "1": productShapes.slice(0, 5),
  "2": productShapes.slice(5, 10),
  "3": [...productShapes.slice(10), oddShape],
};

function productParts(): readonly (readonly [string, readonly BenchCase[]])[] {
  const forms = [
    ["matmul", { dtype: "bf16", b: "kn" }],
    ["matmul-columns", { dtype: "bf16", b: "nk" }],
    ["matmul-f16", { dtype: "f16", b: "kn" }],
    ["matmul-f16-columns", { dtype: "f16", b: "nk" }],
  ] as const;
  return forms.flatMap(([name, form]) =>
    Object.entries(shapesByPart).map(
      ([part, shapes]) => [`${name}-${part}`, products(shapes, form)] as const,
    ),
  );
}

/** 16k rows in all, and heads that together are 2048 wide. */
function square(head: number, length: number): AttentionTask {
  const heads = 2048 / head;
  return { causal: false, back: 0, batch: 16384 / length, length, heads, shared: heads, head };
}

function attentions(): readonly BenchCase[] {
  const tasks: readonly AttentionTask[] = [
    ...[64, 128, 256].flatMap((head) => [
      square(head, 4096),
      { ...square(head, 4096), causal: true },
    ]),
    { ...square(128, 4096), shared: 2, causal: true },
    square(128, 16384),
    { ...square(128, 16384), causal: true, back: 1024 },
    { ...square(128, 1024), causal: true },
    { ...square(128, 4096), causal: true, asMask: true },
    { ...square(128, 4096), isNarrow: true },
    { ...square(128, 4096), isNarrow: true, causal: true },
  ];
  return tasks.map(attentionCase);
}

function attentionGradients(): readonly BenchCase[] {
  const tasks: readonly AttentionTask[] = [
    square(128, 4096),
    { ...square(128, 4096), causal: true },
    { ...square(128, 4096), shared: 2, causal: true },
    square(64, 4096),
    { ...square(64, 4096), causal: true },
    square(256, 4096),
    { ...square(256, 4096), causal: true },
    square(128, 16384),
    { ...square(128, 1024), causal: true },
  ];
  const [whole, causal] = tasks;
  return [
    ...tasks.map((task) => attentionBackwardCase(task, false)),
    ...[whole, causal].flatMap((task) => (task ? [attentionBackwardCase(task, true)] : [])),
  ];
}

/** A token of each of 64 sequences, in pages of two sizes, of equal and of different lengths; and of one long sequence, likewise. Caches are of bf16 and of FP8. */
function pagedAttentions(): readonly BenchCase[] {
  const heads = { heads: 32, shared: 8, head: 128 };
  const many = { ...heads, sequences: 64, length: 4096, ragged: false, size: 16 };
  const tasks: readonly Omit<PagedTask, "format">[] = [
    many,
    { ...many, size: 64 },
    { ...many, ragged: true },
    { ...many, sequences: 1, length: 65536 },
    { ...many, sequences: 1, length: 65536, size: 64 },
  ];
  return (["bf16", "f8e4m3fn"] as const).flatMap((format) =>
    tasks.map((task) => pagedCase({ format, ...task })),
  );
}

/** Few groups of many rows and many of few, equal and halving; and weights in few bits, of few rows and of many. */
function raggedProducts(): readonly BenchCase[] {
  const few: RaggedTask = { m: 16384, n: 4096, k: 4096, groups: 8, halving: false };
  const many: RaggedTask = { m: 32768, n: 2048, k: 2048, groups: 64, halving: false };
  const tasks = [
    ...[few, { ...few, m: 2048 }, { ...few, m: 512 }],
    ...[many, { ...many, m: 4096 }],
  ];
  const both = tasks.flatMap((task) => [task, { ...task, halving: true }]);
  return [
    ...both.map(raggedCase),
    raggedOuterCase(few),
    raggedOuterCase({ ...many, halving: true }),
    ...[{ ...many, m: 512 }, { ...many, m: 4096 }, few].flatMap((task) => [
      raggedWeightsCase(task, "i4"),
      raggedWeightsCase(task, "f8e4m3fn"),
    ]),
  ];
}

export const parts: ReadonlyMap<string, readonly BenchCase[]> = new Map<
  string,
  readonly BenchCase[]
>([
  ["memory", memoryCases],
  ["language", languageCases],
  ["handwritten", handwrittenCases],
  ...libraryParts,
  ["attention", attentions()],
  ["attention-gradients", attentionGradients()],
  ...convolutionParts,
  ["paged", pagedAttentions()],
  ["ragged", raggedProducts()],
  ...productParts(),
  ["matmul-formats", formatCases(8192, 4096)],
  ["scaled", scaledCases],
]);
