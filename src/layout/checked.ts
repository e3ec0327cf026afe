/**
 * The functions on layouts as programs call them: what each argument is, checked before anything is done with it. The
 * compiler calls the functions themselves, often and with what it made itself, so the checks are here and not there.
 *
 *   holders("wgmma", [64, 8], 0)     TW6010: argument 1 of holders is not a layout of registers, as parseLayout gives it
 */
import { dtypes } from "../formats/dtype.ts";
import { checkedCall, fieldsOf, isListOf, isWhole } from "../support/checked-call.ts";
import type { ArgumentKind } from "../support/checked-call.ts";
import * as conflicts from "./algebra/bank-conflicts.ts";
import { product } from "./algebra/index-bits.ts";
import * as elements from "./algebra/element-maps.ts";
import * as named from "./algebra/named-layouts.ts";
import * as operations from "./algebra/operations.ts";
import * as registers from "./algebra/register-layout.ts";
import * as stored from "./algebra/shared-layout.ts";
import * as views from "./algebra/shared-view.ts";
import * as tensors from "./algebra/tensor-memory.ts";
import * as tilings from "./algebra/tilings.ts";
import * as registerDrawings from "./drawing/register-drawing.ts";
import * as sharedDrawings from "./drawing/shared-drawing.ts";
import * as textDrawings from "./drawing/text-drawing.ts";
import * as reports from "./plan/report.ts";
import * as costs from "./relayout/cost.ts";
import * as relayouts from "./relayout/relayout.ts";

/** The function with its arguments checked. */
function checked<F extends (...values: never[]) => unknown>(
  name: string,
  kinds: readonly ArgumentKind[],
  call: F,
): F {
  return checkedCall(name, "TW6010", kinds, call);
}

/** Tiles have at most so many elements; a table of more would not fit anywhere. */
const mostElements = 2 ** 24;
const isShapeList = isListOf(isWhole(1, mostElements));

function isShape(value: unknown): value is readonly number[] {
  return isShapeList(value) && product(value as readonly number[]) <= mostElements;
}

function isRegisterLayout(value: unknown): boolean {
  const { kind, text, axes } = fieldsOf(value, ["kind", "text", "axes"]);
  return (
    kind === "splat" ||
    ((kind === "axes" || kind === "flat") && typeof text === "string" && Array.isArray(axes))
  );
}

function isSharedLayout(value: unknown): boolean {
  const { order, tile, text } = fieldsOf(value, ["order", "tile", "text"]);
  return Array.isArray(order) && Array.isArray(tile) && typeof text === "string";
}

function isSharedView(value: unknown): value is views.SharedView {
  const names = ["layout", "allocation", "bits", "shape", "strides"];
  const { layout, allocation, bits, shape, strides } = fieldsOf(value, names);
  return (
    isSharedLayout(layout) &&
    isShape(allocation) &&
    isBits(bits) &&
    isShape(shape) &&
    Array.isArray(strides)
  );
}

const isBits = (value: unknown): boolean => [1, 4, 8, 16, 32, 64].includes(value as number);

/** Each of so many axes once. */
function isPermutation(value: unknown, rank: number): boolean {
  return (
    Array.isArray(value) &&
    value.length === rank &&
    Array.from({ length: rank }, (_, axis) => axis).every((axis) => value.includes(axis))
  );
}

const rankOf = (shape: unknown): number => (isShape(shape) ? shape.length : 0);
const isAxes = (rank: number) => isListOf(isWhole(0, rank - 1));

const layout: ArgumentKind = {
  expected: "a layout of registers, as parseLayout gives it",
  holds: isRegisterLayout,
};
const shape: ArgumentKind = {
  expected: "the shape of a tile, a list of whole numbers from 1",
  holds: isShape,
};
const bits: ArgumentKind = {
  expected: "the bits of an element: 1, 4, 8, 16, 32 or 64",
  holds: isBits,
};
const sharedLayout: ArgumentKind = {
  expected: "a layout in shared memory, as parseSharedLayout gives it",
  holds: isSharedLayout,
};
const sharedView: ArgumentKind = {
  expected: "a view of shared memory, as wholeView gives it",
  holds: isSharedView,
};
const tmemLayout: ArgumentKind = {
  expected: "a layout in tensor memory, as parseTmemLayout gives it",
  holds: (value) =>
    ["full", "half", "pair", "twice", "scales"].includes(String(fieldsOf(value, ["kind"])["kind"])),
};
const vectorBytes: ArgumentKind = {
  expected: "the bytes of a thread's access: 1, 2, 4, 8 or 16",
  holds: (value) => [1, 2, 4, 8, 16].includes(value as number),
};
const vector: ArgumentKind = { expected: "a whole number from 1 to 1024", holds: isWhole(1, 1024) };
/** An element of the tile whose shape stands second. */
const element: ArgumentKind = {
  expected: "the number of an element of the tile",
  holds: (value, [, tile]) => isShape(tile) && isWhole(0, product(tile) - 1)(value),
};
const dtype: ArgumentKind = {
  expected: "a number format such as f32",
  holds: (value) => Object.values(dtypes).some((each) => each === value),
};
const access: ArgumentKind = {
  expected: "{ registers, vectorBytes }, or nothing",
  holds: (value, before) => {
    if (value === undefined) return true;
    const given = fieldsOf(value, ["registers", "vectorBytes"]);
    return isRegisterLayout(given["registers"]) && vectorBytes.holds(given["vectorBytes"], before);
  },
};

/**
 * How many passes over shared memory an access of a tile takes, and how many it would take without bank conflicts;
 * undefined where threads do not hold so many bytes side by side.
 */
export const bankConflicts = checked(
  "bankConflicts",
  [layout, sharedView, vectorBytes],
  conflicts.bankConflicts,
);

/** The warps, threads and registers that hold an element of a tile. */
export const holders = checked("holders", [layout, shape, element], elements.holders);

/** How many registers of each thread a tile takes. */
export const registersPerLane = checked(
  "registersPerLane",
  [layout, shape],
  registers.registersPerLane,
);

/** How many threads hold each element. */
export const replication = checked("replication", [layout], registers.replication);

/** The layout with vectors of neighbours dealt to the threads in turn, by the number of the element. */
export const stridedLayout = checked("stridedLayout", [vector], named.stridedLayout);

/** The layout with which threads access rows of global memory in coalesced vectors. */
export const coalescedLayout = checked("coalescedLayout", [shape, vector], named.coalescedLayout);

/** The layout of a tile that is spread in rectangular blocks, as Triton's blocked layout. */
export const blockedLayout = checked(
  "blockedLayout",
  [
    {
      expected: "{ vector, lanes, warps }: a number, and lists of numbers",
      holds: (value) => {
        const given = fieldsOf(value, ["vector", "lanes", "warps"]);
        const isCounts = isListOf(isWhole(1, 1024));
        return (
          isWhole(1, 1024)(given["vector"]) && isCounts(given["lanes"]) && isCounts(given["warps"])
        );
      },
    },
  ],
  named.blockedLayout,
);

/** The layout of an operand of `mma.sync`. */
export const mmaFragment = checked(
  "mmaFragment",
  [
    {
      expected: '"left", "right" or "accumulator"',
      holds: (value) => ["left", "right", "accumulator"].includes(value as string),
    },
    bits,
    {
      expected: "{ rows, columns } of warps, or nothing",
      holds: (value) => {
        if (value === undefined) return true;
        const given = fieldsOf(value, ["rows", "columns"]);
        return isWhole(1, 4)(given["rows"]) && isWhole(1, 4)(given["columns"]);
      },
    },
  ],
  named.mmaFragment,
);

/** The layout of a tile after it is combined over some of its axes. */
export const reduceLayout = checked(
  "reduceLayout",
  [
    layout,
    shape,
    {
      expected: "a list of axes of the tile",
      holds: (value, [, tile]) => isAxes(rankOf(tile))(value),
    },
  ],
  operations.reduceLayout,
);

/** The layout of a tile with its axes in another order. */
export const transposeLayout = checked(
  "transposeLayout",
  [
    layout,
    shape,
    {
      expected: "each axis of the tile once",
      holds: (value, [, tile]) => isPermutation(value, rankOf(tile)),
    },
  ],
  operations.transposeLayout,
);

/** The layout of a tile repeated along axes, where each thread repeats what it holds; undefined where there is none. */
export const broadcastLayout = checked(
  "broadcastLayout",
  [
    layout,
    {
      expected: "{ from, to, axes }: two shapes, and an axis of the second for each of the first",
      holds: (value) => {
        const { from, to, axes } = fieldsOf(value, ["from", "to", "axes"]);
        return (
          isShape(from) && isShape(to) && isAxes(to.length)(axes) && rankOf(from) === rankOf(axes)
        );
      },
    },
  ],
  operations.broadcastLayout,
);

/** The byte of an allocation in shared memory at which an element begins. */
export const byteOffset = checked(
  "byteOffset",
  [sharedLayout, shape, bits, element],
  stored.byteOffset,
);

/** The view of a whole allocation in shared memory. */
export const wholeView = checked("wholeView", [sharedLayout, shape, bits], views.wholeView);

/** A window of a view of shared memory. */
export const sliceView = checked(
  "sliceView",
  [
    sharedView,
    {
      expected: "where the part begins, a number for each axis",
      holds: (value, [view]) => isOfRank(value, view, 0),
    },
    {
      expected: "how large the part is, a number for each axis",
      holds: (value, [view]) => isOfRank(value, view, 1),
    },
    {
      expected: "the axes that are dropped, or nothing",
      holds: (value, [view]) =>
        value === undefined || (isSharedView(view) && isAxes(view.shape.length)(value)),
    },
  ],
  views.sliceView,
);

function isOfRank(value: unknown, view: unknown, least: number): boolean {
  return (
    isListOf(isWhole(least))(value) &&
    isSharedView(view) &&
    (value as readonly unknown[]).length === view.shape.length
  );
}

/** A view of shared memory with its axes in another order. */
export const transposeView = checked(
  "transposeView",
  [
    sharedView,
    {
      expected: "each axis of the view once",
      holds: (value, [view]) => isSharedView(view) && isPermutation(value, view.shape.length),
    },
  ],
  views.transposeView,
);

/** Where an element of a tile lies in tensor memory. */
export const tmemPlace = checked(
  "tmemPlace",
  [tmemLayout, shape, bits, element],
  tensors.tmemPlace,
);

const isDealt = isListOf(
  (value) => isWhole(-8, 8)(value) || isWhole(1, 32)(fieldsOf(value, ["replicate"])["replicate"]),
);

/** The layout that nested tilings of a shape make, as a product of shapes. */
export const tiling = checked(
  "tiling",
  [
    { expected: "a list of shapes", holds: isListOf(isShape) },
    {
      expected: "{ warps, lanes, vector }: two lists of axes, and an axis",
      holds: (value) => {
        const given = fieldsOf(value, ["warps", "lanes", "vector"]);
        return (
          isDealt(given["warps"]) && isDealt(given["lanes"]) && isWhole(-8, 8)(given["vector"])
        );
      },
    },
  ],
  tilings.tiling,
);

/** A layout of registers drawn as an SVG page. */
export const drawRegisterLayout = checked(
  "drawRegisterLayout",
  [layout, shape],
  registerDrawings.drawRegisterLayout,
);

/** A tile before and after a change of layout, drawn as an SVG page. */
export const drawRelayout = checked(
  "drawRelayout",
  [layout, layout, shape],
  registerDrawings.drawRelayout,
);

/** The banks of a view of shared memory, and what an access conflicts over, drawn as an SVG page. */
export const drawSharedLayout = checked(
  "drawSharedLayout",
  [sharedView, access],
  sharedDrawings.drawSharedLayout,
);

/** A layout of registers drawn as text, an element a cell. */
export const drawLayoutText = checked(
  "drawLayoutText",
  [layout, shape],
  textDrawings.drawLayoutText,
);

/** A tile before and after a change of layout, drawn as text. */
export const drawRelayoutText = checked(
  "drawRelayoutText",
  [layout, layout, shape],
  textDrawings.drawRelayoutText,
);

/** The banks of a view of shared memory, and what an access conflicts over, drawn as text. */
export const drawSharedText = checked(
  "drawSharedText",
  [sharedView, access],
  textDrawings.drawSharedText,
);

/** The cheapest way from one layout of registers to another; undefined where there is none. */
export const planRelayout = checked(
  "planRelayout",
  [layout, layout, shape, dtype],
  relayouts.planRelayout,
);

/** What a change of layout costs, in the units in which plans are compared. */
export const relayoutCost = checked(
  "relayoutCost",
  [
    {
      expected: "a plan, as planRelayout gives it",
      holds: (value) => {
        const { kind, steps, bits: width } = fieldsOf(value, ["kind", "steps", "bits"]);
        return typeof kind === "string" && Array.isArray(steps) && isBits(width);
      },
    },
  ],
  costs.relayoutCost,
);

/** The layouts, conversions and memory of a placed kernel, as text. */
export const placementReport = checked(
  "placementReport",
  [
    {
      expected: "a placement, as placeKernel gives it",
      holds: (value) => {
        const names = ["kernel", "layouts", "conversions", "memory"];
        const { layouts, conversions } = fieldsOf(value, names);
        return layouts instanceof Map && Array.isArray(conversions);
      },
    },
  ],
  reports.placementReport,
);
