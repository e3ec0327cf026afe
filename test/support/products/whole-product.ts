/** A product of small whole numbers by a given configuration, what it is given, and what it should give to the bit. */
import { bf16, f32 } from "../../../src/formats/dtype.ts";
import type { DType } from "../../../src/formats/dtype.ts";
import { fromNumbers } from "../../../src/formats/hostarray.ts";
import type { HostArray } from "../../../src/formats/hostarray.ts";
import type { Operation } from "../../../src/device/operation.ts";
import type { PersistentConfiguration } from "../../../src/kernels/matmul/configuration.ts";
import { matmul } from "../../../src/kernels/matmul/matmul.ts";
import { tensor, dim } from "../../../src/lang/index.ts";
import type { Tile } from "../../../src/lang/index.ts";
import { productOf } from "../exact-product.ts";

export interface WholeProductCase {
  readonly sizes: readonly [m: number, n: number, k: number];
  readonly configuration: PersistentConfiguration;
  readonly dtype?: DType;
  /** Whether b lies by columns. */
  readonly byColumns?: boolean;
  /** Whether the epilogue leaves sums as they are. */
  readonly plain?: boolean;
}

export interface WholeProduct {
  readonly op: Operation;
  readonly given: { readonly [name: string]: HostArray };
  readonly exact: readonly number[];
}

/** Of -1, 0 and 1, whose sums every format holds. */
function numbers(count: number, step: number): number[] {
  return Array.from({ length: count }, (_, index) => (Math.trunc(index * step) % 3) - 1);
}

/** Sums to which a bias is added, unless they are plain. */
export function wholeProduct(one: WholeProductCase): WholeProduct {
  const { sizes, configuration, dtype = bf16, byColumns = false, plain = false } = one;
  const [m, n, k] = sizes;
  const [rows, columns, depth] = [dim("m"), dim("n"), dim("k")];
  const op = matmul({
    a: tensor(dtype, [rows, depth]),
    b: tensor(dtype, [depth, columns], byColumns ? { strides: [1, depth] } : {}),
    ...(!plain && {
      inputs: { bias: tensor(f32, [columns]) },
      epilogue: ({ sums, bias }: { readonly sums: Tile<"f32">; readonly bias: Tile<"f32"> }) =>
        sums.add(bias).cast(dtype),
    }),
    configuration,
  } as unknown as Parameters<typeof matmul>[0]);
  const [left, right, added] = [numbers(m * k, 1.37), numbers(k * n, 2.71), numbers(n, 1.9)];
  const sums = productOf(
    { values: left, down: k, along: 1 },
    byColumns ? { values: right, down: 1, along: k } : { values: right, down: n, along: 1 },
    sizes,
  );
  const exact = Array.from(sums, (sum, index) => sum + (plain ? 0 : (added[index % n] ?? NaN)));
  if (exact.some((value) => Math.abs(value) > 256)) throw new Error("bf16 rounds these sums");
  return {
    op: op as unknown as Operation,
    given: {
      a: fromNumbers(dtype, [m, k], left),
      b: fromNumbers(dtype, byColumns ? [n, k] : [k, n], right),
      ...(!plain && { bias: fromNumbers(f32, [n], added) }),
    },
    exact,
  };
}
