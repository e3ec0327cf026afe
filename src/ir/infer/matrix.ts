/**
 * Which formats matrix products take and in which they accumulate.
 *
 * | operands                             | dot accumulates in | wgmma accumulates in |
 * |--------------------------------------|--------------------|----------------------|
 * | f64 × f64                            | f64                | –                    |
 * | f32 × f32, precision ieee or tf32    | f32                | –                    |
 * | tf32 × tf32                          | f32                | f32                  |
 * | bf16 × bf16                          | f32                | f32                  |
 * | f16 × f16                            | f32, f16           | f32, f16             |
 * | f8e4m3fn or f8e5m2, either side      | f32, f16           | f32, f16             |
 * | i8 or u8, either side                | i32                | i32                  |
 */
import type { DType, DTypeName } from "../../formats/dtype.ts";

interface Products {
  readonly operands: readonly DTypeName[];
  readonly accumulators: readonly DTypeName[];
  readonly wgmma: boolean;
}

/** Any two formats of one row multiply. */
const products: readonly Products[] = [
  { operands: ["f64"], accumulators: ["f64"], wgmma: false },
  { operands: ["f32"], accumulators: ["f32"], wgmma: false },
  { operands: ["tf32"], accumulators: ["f32"], wgmma: true },
  { operands: ["bf16"], accumulators: ["f32"], wgmma: true },
  { operands: ["f16"], accumulators: ["f32", "f16"], wgmma: true },
  { operands: ["f8e4m3fn", "f8e5m2"], accumulators: ["f32", "f16"], wgmma: true },
  { operands: ["i8", "u8"], accumulators: ["i32"], wgmma: true },
];

function findProduct(left: DType, right: DType): Products | undefined {
  return products.find(
    ({ operands }) => operands.includes(left.name) && operands.includes(right.name),
  );
}

/** The formats `dot` can accumulate in; undefined where the operands do not multiply. */
export function dotAccumulators(left: DType, right: DType): readonly DTypeName[] | undefined {
  return findProduct(left, right)?.accumulators;
}

/** The formats `wgmma` can accumulate in; undefined where it does not take the operands. */
export function wgmmaAccumulators(left: DType, right: DType): readonly DTypeName[] | undefined {
  const product = findProduct(left, right);
  return product?.wgmma === true ? product.accumulators : undefined;
}
