/** Arrays in an emulator's global memory: what a pointer parameter is given. */
import { packedBytes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { elementCount } from "../../formats/shape.ts";
import { madeBy, thisCopy } from "../../support/duplicate-library.ts";
import type { EmulatedMemory } from "../memory.ts";

/** An array in the emulator's memory. */
export class EmulatedArray<N extends DTypeName = DTypeName> {
  /** The format of the elements. */
  readonly dtype: DType<N>;
  /** The extents of the axes. */
  readonly shape: readonly number[];
  /** By which reports name it. */
  readonly label: string | undefined;
  /** Of its first byte, a multiple of 512. */
  readonly address: number;
  /** The bytes of memory that it takes. */
  readonly bytes: number;

  /** @internal */
  constructor(
    memory: EmulatedMemory,
    dtype: DType<N>,
    shape: readonly number[],
    label: string | undefined,
  ) {
    this.dtype = dtype;
    this.bytes = packedBytes(dtype, elementCount(shape));
    this.shape = Object.freeze([...shape]);
    this.label = label;
    this.address = memory.allocate(this.bytes, label);
    Object.freeze(this);
  }

  /** @internal */
  get [madeBy](): object {
    return thisCopy;
  }
}

/** An array in words, for messages. */
export function arrayText({
  dtype,
  shape,
  label,
}: Pick<EmulatedArray, "dtype" | "shape" | "label">): string {
  const type = `${dtype.name}[${shape.join(", ")}]`;
  return label === undefined ? `an array ${type}` : `array ${label}, ${type}`;
}
