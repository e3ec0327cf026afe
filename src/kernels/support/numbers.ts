/** The arithmetic of the library: in f32, of f64 in f64, as exactly as the results can show. */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { full } from "../../lang/index.ts";
import type { Tile } from "../../lang/index.ts";

/** The format that numbers of `dtype` are computed in. Values of it are typed as f32, which has the same functions. */
export function computeFormat(dtype: DType): DType<"f32"> {
  return (dtype === dtypes.f64 ? dtypes.f64 : dtypes.f32) as DType<"f32">;
}

/** A tile in the format that is computed in. */
export function computed(tile: Tile | undefined, compute: DType<"f32">): Tile<"f32"> {
  if (tile === undefined) throw new Error("an operation names a tile that it has not");
  return tile.dtype === compute ? (tile as Tile<"f32">) : tile.cast(compute);
}

/** A statistic by its name. */
export function statistic(
  statistics: { readonly [name: string]: Tile },
  name: string,
): Tile<"f32"> {
  const found = statistics[name];
  if (found === undefined) throw new Error(`there is no statistic ${name}`);
  return found as Tile<"f32">;
}

/** Statistics that are sums, of [pieces, 1], together. */
export function joinedSums(pieces: { readonly [name: string]: Tile }): {
  readonly [name: string]: Tile<"f32">;
} {
  return Object.fromEntries(
    Object.keys(pieces).map((name) => [
      name,
      statistic(pieces, name).sum({ axis: 0, keepDims: true }),
    ]),
  );
}

const log2e = Math.LOG2E;

/** exp(x): the GPU's approximation, within 2^-20 for |x| up to 100, where results are of 16 bits or fewer. */
export function exponential(x: Tile<"f32">, out: DType): Tile<"f32"> {
  if (out.bits > 16 || x.dtype !== dtypes.f32) return x.exp();
  return x.mul(log2e).exp2({ approximate: true });
}

/** Exponentials of a row beneath its greatest element, up to a factor that they share. */
export interface Powers {
  readonly powers: Tile<"f32">;
  /** `powers · factor` is exp(x − high). */
  readonly factor: Tile<"f32">;
}

/** Greatest elements from which on numbers of 16 bits beneath them are so far away that their exponentials are 0. */
const farApart = 2 ** 16;

/**
 * exp(x − high) of elements that are `from` in memory. Of 16 bits and for 16 bits the difference is taken together with the change
 * to powers of two, in one operation: x · log2(e) − c, where c is high · log2(e) rounded. What rounding has changed is the
 * factor. Where high is so great that this would be a lot, x − high itself is 0 or so far beneath that its power of two is 0, too.
 */
export function powersBeneath(x: Tile<"f32">, high: Tile<"f32">, from: DType, out: DType): Powers {
  if (Math.max(from.bits, out.bits) > 16 || x.dtype !== dtypes.f32)
    return { powers: exponential(x.sub(high), out), factor: full(x.dtype, [1, 1], 1) };
  const scale = high
    .abs()
    .lt(farApart)
    .select(full(dtypes.f32, [1, 1], log2e), 1);
  const shift = high.mul(scale).neg();
  const powers = x.fma(scale, shift).exp2({ approximate: true });
  return { powers, factor: high.fma(scale, shift).neg().exp2({ approximate: true }) };
}
