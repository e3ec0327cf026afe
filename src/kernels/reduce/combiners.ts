/** The built-in combiners of reductions and scans: function, identity and format. */
import { dtypes, isInteger } from "../../formats/dtype.ts";
import type { DType, HostValue } from "../../formats/dtype.ts";
import type { Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { refused } from "../support/arguments.ts";

/** How `reduce` combines elements. */
export type Combination = "sum" | "prod" | "min" | "max" | "and" | "or" | "xor";

export interface CombinationRule {
  readonly merge: (left: Tile<"f32">, right: Tile<"f32">) => Tile<"f32">;
  readonly identity: (dtype: DType) => HostValue;
}

/** The least and the greatest number of a format. */
export function extreme(dtype: DType, sign: 1 | -1): HostValue {
  if (dtype.kind === "float") return sign * Infinity;
  const bits = BigInt(dtype.bits);
  const isSigned = dtype.kind === "signed";
  const top = isSigned ? 2n ** (bits - 1n) - 1n : 2n ** bits - 1n;
  const bottom = isSigned ? -(2n ** (bits - 1n)) : 0n;
  const value = sign > 0 ? top : bottom;
  return bits === 64n ? value : Number(value);
}

const zero = (dtype: DType): HostValue =>
  dtype.kind === "bool" ? false : isInteger(dtype) && dtype.bits === 64 ? 0n : 0;
const one = (dtype: DType): HostValue => (isInteger(dtype) && dtype.bits === 64 ? 1n : 1);
const ones = (dtype: DType): HostValue => {
  if (dtype.kind === "bool") return true;
  return dtype.kind === "signed" ? (dtype.bits === 64 ? -1n : -1) : extreme(dtype, 1);
};

/** Values of any format are typed as f32's, which has the same functions; the rules below say which formats have them. */
export const combinations: { readonly [C in Combination]: CombinationRule } = {
  sum: { merge: (left, right) => left.add(right), identity: zero },
  prod: { merge: (left, right) => left.mul(right), identity: one },
  min: { merge: (left, right) => left.minimum(right), identity: (dtype) => extreme(dtype, 1) },
  max: { merge: (left, right) => left.maximum(right), identity: (dtype) => extreme(dtype, -1) },
  and: { merge: (left, right) => bits(left).and(bits(right)) as never, identity: ones },
  or: { merge: (left, right) => bits(left).or(bits(right)) as never, identity: zero },
  xor: { merge: (left, right) => bits(left).xor(bits(right)) as never, identity: zero },
};

function bits(tile: Tile<"f32">): Tile<"i32"> {
  return tile as unknown as Tile<"i32">;
}

/** The format that is combined in: wide enough that nothing is lost on the way. */
export function stateFormat(
  of: string,
  dtype: DType,
  combine: Combination,
  location: Location,
): DType {
  const isLogic = combine === "and" || combine === "or" || combine === "xor";
  const fits = isLogic
    ? dtype.kind !== "float"
    : dtype.kind !== "bool" && (dtype.kind !== "float" || dtype.bits >= 16);
  if (!fits)
    throw refused(
      "TW9901",
      `${of} does not combine ${dtype.name} by ${combine}`,
      isLogic ? "integers or bool" : "integers, or floats of 16 bits or more",
      dtype.name,
      location,
    );
  if (isLogic || combine === "min" || combine === "max") return dtype;
  if (dtype.kind === "float") return dtype.bits < 32 ? dtypes.f32 : dtype;
  return dtype.bits < 32 ? dtypes.i32 : dtype;
}

/** A tile combined along axes, which keep extent 1. */
export function collapsed(tile: Tile<"f32">, combine: Combination, axes: readonly number[]): Tile {
  const keep = { keepDims: true } as const;
  if (combine === "sum") return tile.sum({ axis: axes, ...keep });
  if (combine === "prod") return tile.prod({ axis: axes, ...keep });
  if (combine === "min") return tile.min({ axis: axes, ...keep });
  if (combine === "max") return tile.max({ axis: axes, ...keep });
  return bits(tile).reduce(combine, { axis: axes, ...keep });
}
