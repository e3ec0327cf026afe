/** Which windows are known to be inside of what they were cut from, at a place in the code: what was asked is not asked again. */
import { sizeText } from "../../../ir/size.ts";
import type { RequiredBound as AnyRequiredBound } from "../../../layout/access/window.ts";
import type { IndexValue, Position } from "../values.ts";

export type RequiredBound = AnyRequiredBound<Position>;

/** `count` elements from `start` on lie inside of `size`. */
export interface Bound extends Pick<RequiredBound, "count" | "size"> {
  readonly start: IndexValue;
}

/** Equal for bounds of which one says all that the other does: registers of values are written once on the way to a place. */
function keyOf({ start: { register, constant }, count, size }: Bound): string {
  return `${register?.name ?? ""} ${constant} ${count} ${sizeText(size)}`;
}

/** What is certain at a place in the code: an inner region knows what the outer one does. */
export class AskedBounds {
  readonly #outer: AskedBounds | undefined;
  readonly #own = new Set<string>();

  constructor(outer?: AskedBounds) {
    this.#outer = outer;
  }

  has(bound: Bound): boolean {
    return this.#own.has(keyOf(bound)) || (this.#outer?.has(bound) ?? false);
  }

  add(bound: Bound): void {
    this.#own.add(keyOf(bound));
  }
}
