/**
 * The dimensions of the kernels of a product. What powers of two a size is a multiple of is known when a product is
 * planned, and kernels are made for it, so that memory is accessed as widely as the sizes allow:
 *
 *   n = 4096   dim("n", { multipleOf: 16 })        n = 1001   dim("n")
 */
import { dim } from "../../lang/index.ts";
import type { Dimension } from "../../ir/size.ts";
import type { ProductSizes } from "./configuration.ts";

/** More says nothing that an access could use. */
const greatest = 16;

/** A dimension that is a multiple of whatever power of two the size is one of. */
export function aligned(name: string, size: number): ReturnType<typeof dim> {
  let multipleOf = greatest;
  while (size % multipleOf !== 0) multipleOf /= 2;
  return dim(name, { multipleOf });
}

export interface ProductDimensions {
  readonly batch: Dimension;
  readonly m: Dimension;
  readonly n: Dimension;
  readonly k: Dimension;
}

export function alignedDimensions({ m, n, k }: ProductSizes): ProductDimensions {
  return { batch: dim("batch"), m: aligned("m", m), n: aligned("n", n), k: aligned("k", k) };
}
