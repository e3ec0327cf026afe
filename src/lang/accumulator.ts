/**
 * Accumulators of wgmma. Tensor cores may still be writing one, so it is linear: each object is used
 * once, by the next wgmma, as a carry, or by a wait, and gives a new object.
 *
 *   let sum = accumulator(f32, [64, 128]);
 *   sum = wgmma(sum, a, b);        // the first object is used up
 *   const tile = sum.wait();       // so is the second
 */
import type { DType, DTypeName } from "../formats/dtype.ts";
import type { Value } from "../ir/node.ts";
import { typeText } from "../ir/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { isPositiveInteger } from "./sizes.ts";
import { refuseTileMethods, Tile } from "./tile.ts";
import { emitOrigin } from "./trace.ts";
import type { Origin, Scope } from "./trace.ts";
import { describe, numberList, origin, Traced, useValue, wrongKind } from "./traced.ts";

/** The sum of products that tensor cores may still be adding to. */
export class Accumulator<D extends DTypeName = DTypeName> extends Traced {
  static {
    refuseTileMethods(this.prototype);
  }

  /** Tells an accumulator from other traced objects. */
  readonly kind = "accumulator";
  /** The number format of the sums. */
  readonly dtype: DType<D>;
  /** The extents: rows and columns. */
  readonly shape: readonly number[];
  readonly #uses: Use[] = [];

  /** @internal */
  constructor(made: Origin) {
    super(made);
    const { type } = made.value;
    if (type.kind !== "inflight") throw new Error(`${typeText(type)} is not in flight`);
    this.dtype = type.dtype as DType<D>;
    this.shape = type.shape;
  }

  /**
   * Waits for the products of this accumulator and gives the sums: for all of the thread's, or for all but the
   * newest `pending`, which must have been started later than the last one of its own.
   */
  wait(options: { readonly pending?: number } = {}): Tile<D> {
    const location = captureLocation();
    requireKnownOptions("wait", options, ["pending"], "TW1033", location);
    const { pending = 0 } = options;
    if (!isPositiveInteger(pending) && pending !== 0)
      throw new TilewrightError({
        code: "TW1019",
        message: `wait cannot leave ${describe(pending)} unfinished`,
        location,
        expected: "a whole number from 0",
        found: describe(pending),
      });
    const operands = { accumulator: this.consume(location) };
    const attributes = { pending, gives: "tile" } as const;
    return new Tile(emitOrigin("wgmma_wait", operands, attributes, location));
  }

  /** Waits until at most `pending` of the thread's wgmma are unfinished. */
  waitPending(pending: number): Accumulator<D> {
    const location = captureLocation();
    if (!isPositiveInteger(pending)) {
      throw new TilewrightError({
        code: "TW1019",
        message: `waitPending cannot leave ${describe(pending)} unfinished`,
        location,
        expected: "a positive whole number",
        found: describe(pending),
        remedy: pending === 0 ? "write wait(), which gives the tile" : undefined,
      });
    }
    const operands = { accumulator: this.consume(location) };
    const attributes = { pending, gives: "accumulator" } as const;
    return new Accumulator(emitOrigin("wgmma_wait", operands, attributes, location));
  }

  /** @internal The IR value, for its one use; of branches, one runs, so each may have a use. */
  consume(location: Location): Value {
    const { path } = this[origin].scope.trace;
    for (const before of this.#uses)
      if (!areAlternatives(before.path, path)) this.#refuseSecond(before, location);
    const value = useValue(this, location);
    this.#uses.push({ location, path });
    return value;
  }

  #refuseSecond(first: Use, location: Location): never {
    const branch = first.path.findLast(({ open, choice }) => !open && choice !== undefined);
    throw new TilewrightError({
      code: "TW1011",
      message: `${describe(this)} was used twice`,
      location,
      expected: "one use of each accumulator object",
      found:
        branch === undefined
          ? "a second use"
          : `a use in ${branch.label}, and this one behind the branches`,
      remedy:
        branch === undefined
          ? undefined
          : "give the accumulator on from each branch, and use what when or switchCase returns",
      notes: [
        { message: "the first use is here", location: first.location },
        { message: "the accumulator is made here", location: this[origin].location },
      ],
    });
  }
}

/** Where an accumulator was used, and the regions that were open there. */
interface Use {
  readonly location: Location;
  readonly path: readonly Scope[];
}

/** Whether two places are in different branches, of which one runs. */
function areAlternatives(left: readonly Scope[], right: readonly Scope[]): boolean {
  const parting = left.findIndex((scope, depth) => scope !== right[depth]);
  const choice = left[parting]?.choice;
  return choice !== undefined && choice === right[parting]?.choice;
}

/**
 * An accumulator for wgmma, of zeros or of the elements of a tile; or of anything, where its first product does not add to it (`adds`),
 * which spares writing all of its registers.
 */
export function accumulator<D extends DTypeName>(
  dtype: DType<D>,
  shape: readonly number[],
  initial?: Tile<D> | "anything",
): Accumulator<D> {
  const location = captureLocation();
  const anything = initial === "anything";
  if (initial !== undefined && !anything && !(initial instanceof Tile))
    wrongKind("the initial value of an accumulator", 'a tile, or "anything"', initial, location);
  const operands =
    initial === undefined || anything ? {} : { initial: useValue(initial, location) };
  const extents = numberList("the shape of an accumulator", shape, location);
  const attributes = { dtype, shape: extents, ...(anything && { anything }) };
  return new Accumulator(emitOrigin("accumulator", operands, attributes, location));
}
