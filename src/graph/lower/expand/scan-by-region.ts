/**
 * Scans by any region that combines values of one or more arrays in their order, as the library's `scanWith`: one read and one write of
 * each array.
 *
 *   (a, b), by (a₀, b₀), (a₁, b₁) ─▶ (a₁·a₀, a₁·b₀ + b₁)        along time: h = a·h' + b
 *
 * What changes nothing is either given, as the initial values of windows, or there is nothing known to be such; then a state says whether it has
 * any element yet.
 *
 *   there   values             one without elements leaves the other as it is
 */
import { dtypes } from "../../../formats/dtype.ts";
import type { DType, HostValue } from "../../../formats/dtype.ts";
import type { Operation } from "../../../device/operation.ts";
import { scanWith } from "../../../kernels/scan/scan-with.ts";
import { dim, full, tensor } from "../../../lang/index.ts";
import type { Tile } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { registerKernelCall } from "../../ops/kernel-calls.ts";
import type { ElementType } from "../../ops/elements.ts";
import type { GraphRegion, GraphValue } from "../../ops/node.ts";
import { inlineRegion } from "../../ops/rebuild.ts";
import { opsWithin } from "../../ops/traverse.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import type { TensorType } from "../../ops/types.ts";
import { structureText } from "../../passes/structure.ts";
import {
  binary,
  convert,
  reshape,
  select,
  splatOf,
  typeOfValue,
} from "../../transform/arithmetic.ts";
import { PointContext } from "../context.ts";
import type { AnyPointRule } from "../context.ts";
import { Points } from "../points/points.ts";
import { isStorageOnly, storageOf } from "../storage.ts";
import { converted } from "../tiles/convert.ts";

/** A scan of values along an axis. */
export interface RegionScan {
  readonly inputs: readonly GraphValue[];
  /** Combines two values of each input, those that were met first before the others; it uses nothing from around it. */
  readonly body: GraphRegion;
  readonly axis: number;
  readonly isReverse: boolean;
  /** What changes nothing, a number for each input; undefined where nothing is known to. */
  readonly identity: readonly (number | bigint)[] | undefined;
  /** The inputs whose running values are asked for. */
  readonly wanted: readonly number[];
}

/** What the elements are combined as, within kernels. */
function stateElement(element: ElementType): ElementType {
  if (element === "i1") return "ui8";
  return isStorageOnly(element) ? "f32" : element;
}

/** What arrays of the kernel hold: the library scans no truth values. */
function heldElement(element: ElementType): ElementType {
  return element === "i1" ? "ui8" : element;
}

interface Tiles {
  readonly [name: string]: Tile;
}

function part(tiles: Tiles, name: string): Tile {
  const found = tiles[name];
  if (found === undefined) throw new Error(`a state has no ${name}`);
  return found;
}

function storage(element: ElementType): DType {
  const found = storageOf(element);
  if (found === undefined) throw new Error(`devices have no ${element}`);
  return found;
}

const operations = new Map<string, Operation>();

/** One operation for all scans by a region, whatever their sizes: their kernels are shared. */
function operationOf(scan: RegionScan, own: readonly ElementType[], rule: AnyPointRule): Operation {
  const { body, identity, isReverse, wanted } = scan;
  const key = [structureText(body), identity?.map(String).join(), isReverse, wanted.join()].join(
    "|",
  );
  const known = operations.get(key);
  if (known !== undefined) return known;
  const states = own.map(stateElement);
  const definitions = new Map(
    [...opsWithin(body)].flatMap((op) => op.results.map((value) => [value, op])),
  );
  const apply = (before: Tiles, after: Tiles): readonly Tile[] => {
    const context = new PointContext({ refs: new Map(), definitions, rule });
    const given = [before, after].flatMap((side) =>
      own.map((element, i) => converted(part(side, `x${i}`), states[i] ?? element, element)),
    );
    // A carry has one column, what is combined with it many.
    const shapes = given.map((tile) => tile.shape);
    const shape = (shapes[0] ?? []).map((_, axis) =>
      Math.max(...shapes.map((each) => each[axis] ?? 1)),
    );
    return context
      .region(
        body,
        given.map((tile) => tile.broadcastTo(shape)),
        Points.at([], shape, []),
      )
      .map((tile, i) => converted(tile, own[i] ?? "f32", states[i] ?? "f32").broadcastTo(shape));
  };
  const named = (tiles: readonly Tile[]): Tiles =>
    Object.fromEntries(tiles.map((tile, i) => [`x${i}`, tile]));
  const made: Operation = scanWith({
    inputs: Object.fromEntries(
      own.map((element, i) => [
        `in${i}`,
        tensor(storage(heldElement(element)), [dim("outer"), dim("n"), dim("inner")]),
      ]),
    ),
    axis: 1,
    reverse: isReverse,
    load: (tiles: Tiles): Tiles => {
      const loaded = named(
        own.map((element, i) =>
          converted(part(tiles, `in${i}`), heldElement(element), states[i] ?? element),
        ),
      );
      const shape = loaded["x0"]?.shape ?? [1];
      return identity === undefined ? { ...loaded, there: full(dtypes.u8, shape, 1) } : loaded;
    },
    combine: (before: Tiles, after: Tiles): Tiles => {
      const both = apply(before, after);
      if (identity !== undefined) return named(both);
      const [isBefore, isAfter] = [before, after].map((side) => part(side, "there").ne(0));
      const kept = both.map((tile, i) => {
        const [first, second] = [part(before, `x${i}`), part(after, `x${i}`)];
        return isBefore?.select(isAfter?.select(tile, first) ?? tile, second) ?? tile;
      });
      const some = part(before, "there").or(part(after, "there"));
      return { ...named(kept), there: some };
    },
    identity: {
      ...Object.fromEntries(
        own.map((element, i) => [`x${i}`, hostValue(states[i] ?? element, identity?.[i] ?? 0)]),
      ),
      ...(identity === undefined && { there: 0 }),
    },
    finish: (tiles: Tiles): Tiles =>
      Object.fromEntries(
        wanted.map((i) => {
          const element = own[i] ?? "f32";
          const held = heldElement(element);
          return [`out${i}`, converted(part(tiles, `x${i}`), states[i] ?? element, held)];
        }),
      ),
  });
  operations.set(key, made);
  return made;
}

function hostValue(element: ElementType, value: number | bigint): HostValue {
  return storage(element).bits === 64 && storage(element).kind !== "float"
    ? BigInt(value)
    : Number(value);
}

/** The same as windows that grow, whose first operand says what has elements yet. */
function meaningOf(
  builder: GraphBuilder,
  scan: RegionScan,
  types: readonly TensorType[],
): GraphRegion {
  const { body, isReverse, identity, wanted } = scan;
  const [, extent = 1] = types[0]?.shape ?? [];
  const bool = tensorType("i1", []);
  const scalars = types.map(({ element }) => tensorType(element, []));
  const all = [bool, ...scalars];
  const held = types.map(({ element, shape }) => tensorType(heldElement(element), shape));
  return builder.region(held, (inner, given) => {
    const operands = given.map((value, i) => convert(inner, value, types[i]?.element ?? "f32"));
    const flags = splatOf(inner, tensorType("i1", types[0]?.shape ?? []), 1);
    const combine = inner.region([...all, ...all], (own, parameters) => {
      const [isBefore, ...before] = parameters.slice(0, all.length) as [
        GraphValue,
        ...GraphValue[],
      ];
      const [isAfter, ...after] = parameters.slice(all.length) as [GraphValue, ...GraphValue[]];
      const [first, second] = isReverse ? [after, before] : [before, after];
      const both = inlineRegion(own, body, [...first, ...second]);
      return [
        binary(own, "stablehlo.or", isBefore, isAfter),
        ...both.map((value, i) => {
          const [left = value, right = value] = [before[i], after[i]];
          return select(own, isBefore, select(own, isAfter, value, left), right);
        }),
      ];
    });
    const starts = scalars.map((type, i) => splatOf(inner, type, identity?.[i] ?? 0));
    const running = inner.add(
      "stablehlo.reduce_window",
      {
        inputs: [flags, ...operands],
        init_values: [splatOf(inner, bool, 0), ...starts],
      },
      {
        window_dimensions: [1, extent, 1],
        padding: [[0, 0], isReverse ? [0, extent - 1] : [extent - 1, 0], [0, 0]],
      },
      { regions: { body: combine } },
    );
    return wanted.map((i) => {
      const value = running[i + 1] ?? flags;
      return convert(inner, value, heldElement(typeOfValue(value).element));
    });
  });
}

/** The running values that are asked for. */
export function scanByRegion(
  builder: GraphBuilder,
  scan: RegionScan,
  rule: AnyPointRule,
): readonly GraphValue[] {
  const { inputs, axis, wanted } = scan;
  const [first] = inputs;
  if (first === undefined) return [];
  const { shape } = typeOfValue(first);
  const view = [sizeOf(shape.slice(0, axis)), shape[axis] ?? 1, sizeOf(shape.slice(axis + 1))];
  const own = inputs.map((value) => typeOfValue(value).element);
  const types = own.map((element) => tensorType(element, view));
  const held = own.map((element) => tensorType(heldElement(element), view));
  const attributes = {
    call_target_name: registerKernelCall({
      operation: operationOf(scan, own, rule),
      meaning: meaningOf(builder, scan, types),
    }),
    has_side_effect: false,
    api_version: 1,
    called_computations: [],
  };
  const results = builder.add(
    "stablehlo.custom_call",
    { inputs: inputs.map((value, i) => viewed(builder, value, held[i] ?? typeOfValue(value))) },
    attributes,
    { types: wanted.map((i) => held[i] ?? tensorType("f32", view)) },
  );
  return results.map((value, i) => {
    const element = own[wanted[i] ?? 0] ?? "f32";
    return viewed(builder, value, tensorType(element, shape));
  });
}

/** A value as one of another type with as many elements. */
function viewed(
  builder: GraphBuilder,
  value: GraphValue,
  { element, shape }: TensorType,
): GraphValue {
  const own = convert(builder, value, element);
  return typeOfValue(own).shape.join() === shape.join() ? own : reshape(builder, own, shape);
}
