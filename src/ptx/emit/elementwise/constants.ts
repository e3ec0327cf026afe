/** Numbers known now, as the bits that registers hold. */
import { allocateElements, isInteger } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { packElements } from "../../../formats/packed.ts";
import { writeElement } from "../../../formats/values.ts";
import type { Literal } from "../../../ir/schema.ts";
import type { Code } from "../../function-builder.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import { elementClass, slotsOf, wordClass } from "../values.ts";

/** The bits of an element, zeros above. */
export function literalBits(dtype: DType, value: Literal): bigint {
  if (isInteger(dtype)) return BigInt.asUintN(dtype.bits, BigInt(value));
  const lanes = allocateElements(dtype, 1);
  writeElement(dtype, lanes, 0, value);
  const bytes = packElements(dtype, lanes);
  return bytes.reduceRight((bits, byte) => (bits << 8n) | BigInt(byte), 0n);
}

/** A lone element; narrow signed ones are extended. */
export function emitConstant(code: Code, dtype: DType, value: Literal): Register {
  const type = elementClass(dtype);
  const bits = literalBits(dtype, value);
  const extends32 = dtype.kind === "signed" && type === "b32";
  const held = extends32 ? BigInt.asIntN(dtype.bits, bits) : bits;
  return code.make(type, `mov.${type}`, integer(held));
}

/** The word with the number in every slot. */
export function emitConstantWord(code: Code, dtype: DType, value: Literal): Register {
  const type = wordClass(dtype);
  const element = literalBits(dtype, value);
  let word = 0n;
  for (let slot = 0; slot < slotsOf(dtype); slot++) word |= element << BigInt(slot * dtype.bits);
  return code.make(type, `mov.${type}`, integer(word));
}
