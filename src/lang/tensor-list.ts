/**
 * Lists of arrays, as a kernel's body has them: `xs.at(2)` is that array, `xs.at(group)` with a traced index the one that is picked when the
 * kernel runs. Every array is a parameter of its own, `xs[0]`, `xs[1]` …, which is how launches and reports name it.
 */
import type { DTypeName } from "../formats/dtype.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import { indexValue, isIndex } from "./indices.ts";
import type { Index } from "./indices.ts";
import { Ref } from "./ref.ts";
import { emitOrigin } from "./trace.ts";
import { useValue, wrongKind } from "./traced.ts";

/** Arrays of one format and shape, of which a kernel picks one. */
export class TensorList<D extends DTypeName = DTypeName> {
  /** Tells a list of arrays from refs, tiles and scalars. */
  readonly kind = "refs";
  /** How many arrays there are. */
  readonly length: number;
  readonly #name: string;
  readonly #arrays: readonly Ref<D>[];

  /** @internal */
  constructor(name: string, arrays: readonly Ref<D>[]) {
    this.#name = name;
    this.#arrays = arrays;
    this.length = arrays.length;
    Object.freeze(this);
  }

  /** The array of an index: a number, or an i32 scalar, which must be from 0 to `length - 1` where the array is accessed. */
  at(index: Index): Ref<D> {
    const location = captureLocation();
    if (!isIndex(index) || (typeof index === "number" && !Number.isInteger(index)))
      wrongKind(
        "the index of a list of arrays",
        "a number, an i32 scalar or a size",
        index,
        location,
      );
    if (typeof index === "number") {
      const array = this.#arrays[index];
      if (array !== undefined) return array;
      throw new TilewrightError({
        code: "TW1016",
        message: `the list ${this.#name} has no array ${index}`,
        location,
        expected: `0 to ${this.length - 1}`,
        found: String(index),
      });
    }
    const operands = {
      refs: this.#arrays.map((array) => useValue(array, location)),
      index: indexValue("the index of a list of arrays", index, location),
    };
    return new Ref<D>(emitOrigin("select_ref", operands, { name: this.#name }, location));
  }

  /** The arrays one by one, for loops of the program that makes the kernel. */
  [Symbol.iterator](): IterableIterator<Ref<D>> {
    return this.#arrays[Symbol.iterator]();
  }
}
