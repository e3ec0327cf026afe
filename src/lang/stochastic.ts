/**
 * Casts to a narrower float that round up or down by chance, in proportion to how near either is, so that sums of many rounded
 * numbers are right on average where rounding to the nearest would lose small ones for good. The chance is given as bits:
 *
 *   f32     s eeeeeeee mmmmmmm dddddddddddddddd      the d are dropped
 *   bits                       bbbbbbbbbbbbbbbb      the upper 16 of 32, for bf16; 13 for f16
 *   bf16    s eeeeeeee mmmmmmm                       of the sum of both: rounded up in as many of 2^16 cases as d counts
 *
 * A carry out of m raises the exponent, which is the next number. f16 has subnormal numbers where f32 has none: below 2^-14 its
 * steps are 2^-24 throughout, and the number is split into whole steps and the share of one. Newer GPUs have an instruction
 * (`cvt.rs`); this is the same arithmetic on every one.
 */
import { bf16, f16, f32, u32 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { captureLocation } from "../support/location.ts";
import { isTile } from "./elementwise.ts";
import type { Tile } from "./tile.ts";
import { wrongKind } from "./traced.ts";

/** f16's least normal number, and its step below that. */
const [leastNormal, step] = [2 ** -14, 2 ** -24];

/** `values` as a narrower float, each rounded up in as many cases as it is near the upper neighbour; `bits` are the chance. */
export function castStochastic<D extends "bf16" | "f16">(
  values: Tile<"f32">,
  dtype: DType<D>,
  bits: Tile<"u32">,
): Tile<D> {
  const location = captureLocation();
  if (!isTile(values) || values.dtype !== f32)
    wrongKind("what castStochastic takes", "a tile of f32", values, location);
  if (!isTile(bits) || bits.dtype !== u32)
    wrongKind("the bits of castStochastic", "a tile of u32", bits, location);
  if (dtype !== bf16 && dtype !== f16)
    wrongKind("the format of castStochastic", "bf16 or f16", dtype, location);
  const dropped = dtype === bf16 ? 16 : 13;
  const raised = values.bitcast(u32).add(bits.shr(32 - dropped));
  const kept = raised.shr(dropped).shl(dropped).bitcast(f32);
  const rounded = dtype === bf16 ? kept : withSubnormals(values, kept, bits);
  // What is added to a NaN might make an infinity of it.
  return values.isNan().select(values, rounded).cast(dtype);
}

/** What f16 has fewer digits of than f32: whole steps, and one more in as many cases as what is left of one. */
function withSubnormals(values: Tile<"f32">, normal: Tile<"f32">, bits: Tile<"u32">): Tile<"f32"> {
  const size = values.abs();
  const steps = size.mul(1 / step);
  const whole = steps.floor();
  const chance = bits
    .shr(8)
    .cast(f32)
    .mul(2 ** -24);
  const next = chance.lt(steps.sub(whole)).select(whole.add(1), whole);
  const sign = values.bitcast(u32).and(0x80000000);
  const signed = next.mul(step).bitcast(u32).or(sign).bitcast(f32);
  return size.lt(leastNormal).select(signed, normal);
}
