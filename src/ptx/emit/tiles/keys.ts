/**
 * Elements as unsigned keys whose order is that of the numbers. Signed integers have their sign bit
 * flipped. Of floats, negative ones have all bits flipped and others the sign, so that larger magnitudes
 * of negative numbers come first:
 *
 *   | f32      | bits     | key      |
 *   |----------|----------|----------|
 *   | -1       | bf800000 | 407fffff |
 *   | -0       | 80000000 | 7fffffff |
 *   | +0       | 00000000 | 80000000 |
 *   | 1        | 3f800000 | bf800000 |
 *   | infinity | 7f800000 | ff800000 |
 *   | any NaN  | 7fc00000 | ffc00000 |
 *
 * The key of a NaN is that of the one NaN that its format has for results, which it becomes by being sorted.
 * Elements of fewer than 32 bits have theirs in the highest bits of a b32, with zeros below.
 */
import type { DType } from "../../../formats/dtype.ts";
import type { IntegerOperand, Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { topMask } from "./left-aligned-keys.ts";

export interface KeyOrder {
  /** Greatest first. */
  readonly descending: boolean;
  /** Whether -0 and +0 have one key. */
  readonly equalZeros: boolean;
  /** Where NaN comes, before the order is turned around. */
  readonly nan: "least" | "greatest";
}

interface Form {
  readonly type: "b32" | "b64";
  readonly bits: 32 | 64;
  /** The sign bit, and all others. */
  readonly sign: IntegerOperand;
  readonly magnitude: IntegerOperand;
}

function formOf({ bits }: DType): Form {
  const width = bits === 64 ? 64 : 32;
  const sign = 2n ** BigInt(width - 1);
  return { type: `b${width}`, bits: width, sign: integer(sign), magnitude: integer(sign - 1n) };
}

/** Bits of infinity, and of the NaN that operations make, as they are aligned. */
const specials: { readonly [name: string]: { readonly infinity: bigint; readonly nan: bigint } } = {
  f16: { infinity: 0x7c000000n, nan: 0x7e000000n },
  bf16: { infinity: 0x7f800000n, nan: 0x7fc00000n },
  tf32: { infinity: 0x7f800000n, nan: 0x7fc00000n },
  f32: { infinity: 0x7f800000n, nan: 0x7fc00000n },
  f64: { infinity: 0x7ff0000000000000n, nan: 0x7ff8000000000000n },
};

/** The key of an element that lies in the highest bits. */
export function orderedKey(
  context: EmitContext,
  dtype: DType,
  element: Register,
  order: KeyOrder,
): Register {
  const { code } = context;
  const form = formOf(dtype);
  const { type } = form;
  const ascending =
    dtype.kind === "float"
      ? floatKey(context, dtype, form, element, order)
      : dtype.kind === "signed"
        ? code.make(type, `xor.${type}`, element, form.sign)
        : element;
  const turned = order.descending ? code.make(type, `not.${type}`, ascending) : ascending;
  const dirty = dtype.bits < 32 && (order.descending || dtype.kind === "float");
  return dirty ? code.make("b32", "and.b32", turned, integer(topMask(dtype.bits))) : turned;
}

function floatKey(
  { code }: EmitContext,
  dtype: DType,
  { type, bits, sign, magnitude }: Form,
  element: Register,
  { equalZeros, nan }: KeyOrder,
): Register {
  const special = specials[dtype.name];
  if (special === undefined) throw new Error(`${dtype.name} has no order`);
  const size = code.make(type, `and.${type}`, element, magnitude);
  const isNan = code.make("pred", `setp.gt.u${bits}`, size, integer(special.infinity));
  let value = element;
  if (equalZeros) {
    const isZero = code.make("pred", `setp.eq.u${bits}`, size, integer(0));
    value = code.make(type, `selp.${type}`, integer(0), element, isZero);
  }
  const key = flipped({ code }, value, { type, bits, sign, magnitude });
  const nanKey = integer(nan === "greatest" ? special.nan | (2n ** BigInt(bits - 1)) : 0);
  return code.make(type, `selp.${type}`, nanKey, key, isNan);
}

/** All bits flipped where the sign is set, and the sign elsewhere. */
function flipped(
  { code }: Pick<EmitContext, "code">,
  value: Register,
  { type, bits, sign }: Form,
): Register {
  const signs = code.make(type, `shr.s${bits}`, value, integer(bits - 1));
  const mask = code.make(type, `or.${type}`, signs, sign);
  return code.make(type, `xor.${type}`, value, mask);
}

/** The element of a key, in the highest bits. */
export function elementOfKey(
  context: EmitContext,
  dtype: DType,
  key: Register,
  { descending }: Pick<KeyOrder, "descending">,
): Register {
  const { code } = context;
  const form = formOf(dtype);
  const { type, sign } = form;
  const ascending = descending ? code.make(type, `not.${type}`, key) : key;
  if (dtype.kind === "unsigned") return ascending;
  if (dtype.kind === "signed") return code.make(type, `xor.${type}`, ascending, sign);
  const turned = code.make(type, `not.${type}`, ascending);
  const positive = code.make("pred", `setp.lt.s${form.bits}`, ascending, integer(0));
  const other = code.make(type, `xor.${type}`, ascending, sign);
  return code.make(type, `selp.${type}`, other, turned, positive);
}
