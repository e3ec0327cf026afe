/** A scalar argument as the block of arguments holds it. */
import { allocateElements } from "../../src/formats/dtype.ts";
import type { DType, HostValue } from "../../src/formats/dtype.ts";
import { writeElement } from "../../src/formats/values.ts";

export function storeScalarArgument(
  view: DataView,
  at: number,
  dtype: DType,
  value: HostValue,
): void {
  const one = allocateElements(dtype, 1);
  writeElement(dtype, one, 0, value);
  const bytes = new Uint8Array(one.buffer);
  bytes.forEach((byte, index) => view.setUint8(at + index, byte));
}
