/**
 * Which formats matrix products take and in which they accumulate. What `dot` takes is stated beside the
 * arithmetic; `wgmma` takes the operands that its instruction has, with the same accumulators.
 */
import { acceptsDot } from "../../formats/arithmetic/dot.ts";
import { dtypeNames, dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { productInstructions } from "../../targets/product-instructions.ts";
import type { ProductInstruction } from "../../targets/product-instructions.ts";

const wgmma: ProductInstruction = productInstructions.wgmma;

/** The formats `dot` can accumulate in; none where the operands do not multiply. */
export function dotAccumulators(left: DType, right: DType): readonly DTypeName[] {
  return dtypeNames.filter((name) => acceptsDot(left, right, dtypes[name]));
}

/** The formats `wgmma` can accumulate in; none where it does not take the operands. */
export function wgmmaAccumulators(left: DType, right: DType): readonly DTypeName[] {
  return wgmma.factors.includes(left.name) ? dotAccumulators(left, right) : [];
}

/**
 * Which operands multiply, in words: formats that are multiplied by their own kind alone, then those that mix.
 *
 *   two of f64, f32 or bf16, two of f8e4m3fn and f8e5m2, or two of i8 and u8
 */
export function operandsText(
  accumulators: (left: DType, right: DType) => readonly DTypeName[],
): string {
  const partnersOf = (name: DTypeName): readonly DTypeName[] =>
    dtypeNames.filter((other) => accumulators(dtypes[name], dtypes[other]).length > 0);
  const groups = new Map<string, readonly DTypeName[]>();
  for (const name of dtypeNames) {
    const partners = partnersOf(name);
    if (partners.length > 0) groups.set(partners.join(), partners);
  }
  const alone = [...groups.values()].flatMap((group) => (group.length === 1 ? group : []));
  const mixed = [...groups.values()].filter(({ length }) => length > 1);
  const texts = [
    ...(alone.length === 0 ? [] : [`two of ${alternatives(alone)}`]),
    ...mixed.map((group) => `two of ${group.join(" and ")}`),
  ];
  const last = texts.pop() ?? "none";
  return texts.length === 0 ? last : `${texts.join(", ")}, or ${last}`;
}

function alternatives(names: readonly string[]): string {
  const last = names.at(-1) ?? "";
  return names.length === 1 ? last : `${names.slice(0, -1).join(", ")} or ${last}`;
}
