/**
 * What functions of number formats are given, looked at before it is used. Types say the same, but a program whose
 * types were erased still runs:
 *
 *   fromNumbers("f32", [2], [1, 2])                      TW0007: this is no number format
 *   convertElements(f32, bf16, [1, 2], new Uint16Array(2))  TW0002: elements of f32 are not stored in a list
 */
import { refuseForeign } from "../support/duplicate-library.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { optionText } from "../support/options.ts";
import { allocateElements, dtypes } from "./dtype.ts";
import type { DType } from "./dtype.ts";

/** Refuses what is no format, such as the name of one. */
export function requireDType(dtype: unknown): DType {
  const known = Object.values<DType>(dtypes).find((each) => each === dtype);
  if (known !== undefined) return known;
  refuseForeign("the format", dtype);
  throw new TilewrightError({
    code: "TW0007",
    message: "this is no number format",
    expected: "one of the formats, such as f32",
    found: optionText(dtype),
    remedy:
      typeof dtype === "string" && Object.hasOwn(dtypes, dtype)
        ? `import the format and give it without quotes: ${dtype}`
        : undefined,
  });
}

/** Reads the class of a typed array, whatever its subclass or realm; of anything else, undefined. */
const kindProperty = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype) as object,
  Symbol.toStringTag,
);

/** The class of a typed array. */
export function arrayKind(data: unknown): string | undefined {
  return kindProperty?.get?.call(data) as string | undefined;
}

export function otherStorage(dtype: DType, expected: string, data: unknown): TilewrightError {
  const found = arrayKind(data) ?? otherKindText(data);
  const isBuffer = found === "ArrayBuffer" || found === "SharedArrayBuffer" || found === "DataView";
  return new TilewrightError({
    code: "TW0002",
    message: `elements of ${dtype.name} are not stored in ${found}`,
    expected,
    found,
    remedy: isBuffer
      ? `look at the memory as new ${expected}(buffer, byteOffset, length)`
      : undefined,
  });
}

/** Memory in words, where it is no typed array. */
export function otherKindText(data: unknown): string {
  for (const kind of [ArrayBuffer, DataView]) if (data instanceof kind) return kind.name;
  const isShared = typeof SharedArrayBuffer !== "undefined" && data instanceof SharedArrayBuffer;
  return isShared ? "SharedArrayBuffer" : optionText(data);
}

/** Refuses elements that are not of the format's own class. */
export function requireElements(dtype: DType, elements: unknown): void {
  const expected = arrayKind(allocateElements(requireDType(dtype), 0)) ?? "";
  if (arrayKind(elements) !== expected) throw otherStorage(dtype, expected, elements);
}
