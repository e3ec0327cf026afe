/**
 * Accesses element by element, for what has no regular form: windows reshaped across gaps or bounds, flat
 * layouts whose bits straddle axes, shared windows that cut through tiles. Coordinates are taken apart and
 * put together by divisions at run time; exact for every window, fast for none.
 *
 *   x.at(slice(3, 10), slice(0, 6)).reshape([60]), element e
 *
 *   row = e / 6, column = e % 6          then x's own bounds and strides
 */
import type { Size } from "../../../ir/size.ts";
import { tileParts } from "../../../layout/access/lane-coordinates.ts";
import { storedDigits } from "../../../layout/access/shared-storage.ts";
import { windowShape } from "../../../layout/access/window.ts";
import type { WindowAxis } from "../../../layout/access/window.ts";
import { rowMajorSizes } from "../../../ir/size.ts";
import { product } from "../../../layout/algebra/index-bits.ts";
import { viewedShape } from "../../../layout/algebra/register-layout.ts";
import type { DistributedLayout } from "../../../layout/algebra/register-layout.ts";
import type { Register } from "../../module.ts";
import { address, integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import { indexQuotient, indexRemainder } from "../elementwise/division.ts";
import type {
  GlobalValue,
  IndexValue,
  Position,
  RefValue,
  ReshapedValue,
  SharedValue,
} from "../values.ts";
import { halved, windowPositions } from "./global.ts";
import { Conjunctions, TileGuards } from "./guards.ts";
import type { Truth } from "./guards.ts";
import { ThreadCoordinates } from "./thread-coordinates.ts";
import type { Gather } from "./gathers.ts";
import { addIndex, indexRegister, sizeIndex, zeroPosition } from "./positions.ts";
import { allocationBase, storedRegister } from "./shared.ts";
import { emitSwizzle } from "./shared-addresses.ts";
import type { Access, Unit } from "./units.ts";
import { addProduct, wideAddress, wideRegister } from "./address-arithmetic.ts";
import type { WideSum } from "./address-arithmetic.ts";

type Place = Pick<Unit, "address" | "half"> & { readonly inside: readonly Truth[] };

interface Request {
  readonly window: RefValue;
  readonly layout: DistributedLayout | undefined;
  readonly shape: readonly number[];
  readonly always: readonly Truth[];
  readonly gather: Gather | undefined;
}

export function elementAccess(context: EmitContext, request: Request): Access {
  const root = rootOf(request.window);
  const shared = root.kind === "shared";
  const local = shared && root.rank === undefined;
  return {
    space: shared ? (local ? "shared" : "shared::cluster") : "global",
    readOnly: root.kind === "global" && root.readOnly,
    units: () => elementUnits(context, request),
  };
}

function rootOf(window: RefValue): GlobalValue | SharedValue {
  return window.kind === "reshaped" ? rootOf(window.source) : window;
}

function elementUnits(context: EmitContext, request: Request): readonly Unit[] {
  const conjunctions = new Conjunctions(context);
  const { window, gather } = request;
  return coordinatesOf(context, request).flatMap(({ coordinates, inTile }, register) => {
    if (inTile === false) return [];
    const place = placeOf(context, window, gatheredCoordinates(coordinates, gather, register));
    const gathered = gather?.truths(register) ?? [];
    const guard = conjunctions.all([inTile, ...gathered, ...place.inside, ...request.always]);
    if (guard === false) return [];
    const { half } = place;
    return [
      {
        registers: [register],
        address: place.address,
        guard: guard === true ? undefined : guard,
        half,
      },
    ];
  });
}

/** Coordinates in the window: indices along the axes that they pick along, those of the tile elsewhere. */
function gatheredCoordinates(
  coordinates: readonly IndexValue[],
  gather: Gather | undefined,
  register: number,
): readonly IndexValue[] {
  if (gather === undefined) return coordinates;
  return gather.shape.axisOf.map((axis, own) => {
    if (axis !== undefined) return coordinates[axis] ?? zeroPosition;
    const index = gather.axes.find((each) => each.axis === own)?.indices[register];
    return index === undefined ? zeroPosition : { register: index, constant: 0 };
  });
}

interface ElementCoordinates {
  readonly coordinates: readonly IndexValue[];
  readonly inTile: Truth;
}

/** The coordinates of each register's element. */
function coordinatesOf(
  context: EmitContext,
  { layout, shape }: Request,
): readonly ElementCoordinates[] {
  if (layout === undefined) return [{ coordinates: [], inTile: true }];
  const viewed = viewedShape(layout, shape);
  const parts = tileParts(layout, viewed);
  if (parts === undefined) throw new Error(`${layout.text} does not spread [${viewed.join()}]`);
  const lanes = new ThreadCoordinates(context, parts);
  const guards = new TileGuards(context, parts, lanes, { rooms: [] });
  return Array.from({ length: parts.registers }, (_, register) => {
    const inTile = guards.of(register);
    const own = parts.axes.map(({ ofRegister }, axis) => ({
      register: lanes.of(axis),
      constant: ofRegister[register] ?? 0,
    }));
    const coordinates =
      layout.kind === "axes" || inTile === false
        ? own
        : takeApart(context, own[0] ?? zeroPosition, shape);
    return { coordinates, inTile };
  });
}

/** The coordinates of a row-major number below 2³¹. */
function takeApart(
  context: EmitContext,
  number: IndexValue,
  shape: readonly number[],
): readonly IndexValue[] {
  const { code } = context;
  const rest = indexRegister(context, number);
  return shape.map((extent, axis) => {
    const below = product(shape.slice(axis + 1));
    const quotient = indexQuotient(code, rest, below);
    const register = axis === 0 ? quotient : indexRemainder(code, quotient, extent);
    return { register, constant: 0 };
  });
}

/** Where an element of a window lies, and what must hold for it to be inside. */
export function placeOf(
  context: EmitContext,
  window: RefValue,
  indices: readonly IndexValue[],
): Place {
  if (window.kind === "global") return globalPlace(context, window, indices);
  if (window.kind === "shared") return sharedPlace(context, window, indices);
  return reshapedPlace(context, window, indices);
}

function globalPlace(
  context: EmitContext,
  window: GlobalValue,
  indices: readonly IndexValue[],
): Place {
  const positions = windowPositions(context, window, indices);
  const { array, base, dtype, axes } = window;
  const inside = boundTruths(context, axes, indices);
  const scale = dtype.bits === 4 ? 1 : dtype.bits / 8;
  const start: WideSum = { register: dtype.bits === 4 ? undefined : base, constant: 0 };
  const sum = array.reduce(
    (total, { stride }, axis) =>
      addProduct(context, total, positions[axis] ?? zeroPosition, stride, scale),
    start,
  );
  if (dtype.bits !== 4) return { address: wideAddress(context, sum), inside };
  const bytes = halved(context, base, sum);
  const { code } = context;
  const low = code.make("b32", "cvt.u32.u64", wideRegister(context, sum));
  const half = code.make("b32", "and.b32", low, integer(1));
  return { address: wideAddress(context, bytes), half, inside };
}

/**
 * A position is from −2³¹ below 2³², so that as an unsigned number it is below a size, which is less than
 * 2³¹, where it is inside and nowhere else.
 */
function boundTruths(
  context: EmitContext,
  axes: readonly WindowAxis<Position>[],
  indices: readonly IndexValue[],
): readonly Truth[] {
  const { code } = context;
  return axes.flatMap(({ bounds }, axis) =>
    bounds.map(({ start, size, high }) => {
      const index = indices[axis] ?? zeroPosition;
      const position = indexRegister(context, addIndex(context, start, index));
      if (!high) return code.make("pred", "setp.ge.s32", position, integer(0));
      const end = indexRegister(context, sizeIndex(context, size));
      return code.make("pred", "setp.lt.u32", position, end);
    }),
  );
}

function sharedPlace(
  context: EmitContext,
  window: SharedValue,
  indices: readonly IndexValue[],
): Place {
  const { code } = context;
  const { dtype, layout, strides, first, moves, offset } = window;
  const terms = [
    ...moves.map(({ index, stride }) => ({ register: index, constant: 0, stride })),
    ...indices.map((index, axis) => ({ ...index, stride: strides[axis] ?? 0 })),
  ];
  let number: IndexValue = { register: undefined, constant: first };
  for (const { register, constant, stride } of terms) {
    const scaled =
      register === undefined || stride === 1
        ? register
        : code.make("b32", "mul.lo.s32", register, integer(stride));
    number = addIndex(context, number, { register: scaled, constant: constant * stride });
  }
  const digits = storedDigits(layout, window.allocation);
  const stored = storedRegister(context, digits, indexRegister(context, number));
  const byte =
    dtype.bits < 8
      ? code.make("b32", "shr.u32", stored, integer(1))
      : code.make("b32", "mul.lo.u32", stored, integer(dtype.bits / 8));
  const moved = layout.swizzle === 0 ? byte : emitSwizzle(context, byte, layout.swizzle);
  const base = code.make("b32", "add.u32", allocationBase(context, window), moved);
  const half = dtype.bits === 4 ? code.make("b32", "and.b32", stored, integer(1)) : undefined;
  return { address: address(base, offset), half, inside: [] };
}

function reshapedPlace(
  context: EmitContext,
  window: ReshapedValue,
  indices: readonly IndexValue[],
): Place {
  const positions: IndexValue[] = [...window.origin];
  window.axes.forEach(({ root }, axis) => {
    const start = window.origin[root] ?? zeroPosition;
    positions[root] = addIndex(context, start, indices[axis] ?? zeroPosition);
  });
  const inside = boundTruths(context, window.axes, indices);
  const strides = rowMajorSizes(window.shape);
  const number = positions.reduce<WideSum>(
    (sum, position, axis) => addProduct(context, sum, position, strides[axis] ?? 1, 1),
    { register: undefined, constant: 0 },
  );
  const sizes = windowShape(window.source);
  const source = takeApartWide(context, wideRegister(context, number), sizes);
  const place = placeOf(context, window.source, source);
  return { ...place, inside: [...inside, ...place.inside] };
}

/** The coordinates of a row-major number in 64 bits. */
function takeApartWide(
  context: EmitContext,
  number: Register,
  sizes: readonly Size[],
): readonly IndexValue[] {
  const { code } = context;
  const coordinates: IndexValue[] = [];
  let rest = number;
  for (let axis = sizes.length - 1; axis >= 0; axis -= 1) {
    const size = sizes[axis] ?? 1;
    const by = typeof size === "number" ? integer(size) : context.size(size, 64);
    const digit = axis === 0 ? rest : code.make("b64", "rem.u64", rest, by);
    coordinates.unshift({ register: code.make("b32", "cvt.u32.u64", digit), constant: 0 });
    if (axis > 0) rest = code.make("b64", "div.u64", rest, by);
  }
  return coordinates;
}
