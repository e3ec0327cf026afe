/** The thread's own part of each coordinate of a tile, made when first asked for. */
import type { AxisParts, TileParts } from "../../../layout/access/lane-coordinates.ts";
import type { Register } from "../../module.ts";
import type { EmitContext } from "../context.ts";
import { combineParts } from "../tiles/thread-parts.ts";

export class ThreadCoordinates {
  readonly #context: EmitContext;
  readonly #axes: readonly AxisParts[];
  readonly #known = new Map<number, Register | undefined>();

  constructor(context: EmitContext, { axes }: TileParts) {
    this.#context = context;
    this.#axes = axes;
  }

  /** b32; undefined where no lane has a part. */
  of(axis: number): Register | undefined {
    if (this.#known.has(axis)) return this.#known.get(axis);
    const { code, numbers } = this.#context;
    const parts = this.#axes[axis]?.ofBits ?? [];
    const made = parts.some((part) => part > 0)
      ? combineParts(code, numbers.index, parts)
      : undefined;
    this.#known.set(axis, made);
    return made;
  }
}
