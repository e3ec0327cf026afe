/**
 * The parts of the benchmark. Each ends within ten minutes with every peer, so that a machine that is lent for a short
 * time can be used; their figures come together in one file.
 */
import type { BenchCase } from "./case.ts";
import { matmulCase } from "./cases/matmul.ts";
import type { ProductTask } from "./cases/matmul.ts";
import { memoryCases } from "./cases/memory.ts";

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

/** No size that the copy engine could take. */
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

export const parts: ReadonlyMap<string, readonly BenchCase[]> = new Map([
  ["memory", memoryCases],
  ...productParts(),
]);
