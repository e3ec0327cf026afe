/** Inference for ops that allocate memory, make windows on it and move data synchronously. */
import { dtypeNames, dtypes, packedBytes, u32, u64, u8 } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { opName } from "../op-names.ts";
import type { atomicFunctions, memoryOps } from "../ops/memory.ts";
import { indexedShape, joinedExtents } from "../indexed.ts";
import type { Value } from "../node.ts";
import { multiplySizes, sameShape, sameSize, shapeText, sizeText } from "../size.ts";
import { dataShape, dataType, refType, sameType, scalarType, typeText } from "../types.ts";
import type { DataType, RefType, TileType, Type } from "../types.ts";
import {
  dataOperand,
  elementCount,
  fail,
  indexOperand,
  isPositiveInteger,
  permute,
  refOperand,
  requireAxes,
  requireBool,
  requireCluster,
  requireEviction,
  requirePermutation,
  requireSizes,
  requireSpace,
  requireTileShape,
  staticShape,
  tileOperand,
} from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";

type AtomicFunction = (typeof atomicFunctions)[number];

const wholeWords: readonly DTypeName[] = ["i32", "u32", "i64", "u64"];
const extrema: readonly DTypeName[] = [...wholeWords, "f16", "bf16", "f32", "f64"];
const words: readonly DTypeName[] = [...wholeWords, "f32", "tf32", "f64"];

/** The formats that the hardware updates atomically. */
export const atomicFormats: {
  readonly [F in AtomicFunction | "compare_exchange"]: readonly DTypeName[];
} = {
  add: [...wholeWords, "f16", "bf16", "f32", "f64"],
  min: extrema,
  max: extrema,
  and: wholeWords,
  or: wholeWords,
  xor: wholeWords,
  exchange: words,
  // Floats are compared by their bits, as the hardware does.
  compare_exchange: ["i16", "u16", ...wholeWords, "f32", "f64"],
};

function requireAtomic(
  draft: AnyDraft,
  fn: AtomicFunction | "compare_exchange",
  dtype: DType,
): void {
  const formats = atomicFormats[fn];
  if (!formats.includes(dtype.name))
    fail(draft, "TW2045", `there is no ${opName(draft)} on ${dtype.name}`, {
      expected: `one of ${formats.join(", ")}`,
      found: dtype.name,
    });
}

type AccessKind =
  | "load"
  | "store"
  | "atomic"
  | "atomic_compare_exchange"
  | "atomic_load"
  | "atomic_store";

/** The shape of what an access moves: the window's, with index tiles in place of the axes that they pick along. */
function accessedShape(draft: Draft<AccessKind>, ref: RefType): readonly number[] {
  const { indices, where } = draft.operands;
  if (ref.space === "tmem")
    fail(draft, "TW2302", `${opName(draft)} of elements of tensor memory`, {
      expected: "a tile of tensor memory, loaded and stored whole",
      found: typeText(ref),
    });
  const indexed = draft.attributes.indexed ?? [];
  requireAxes(draft, indexed, ref.shape.length);
  const ordered = indexed.every((axis, position) => axis > (indexed[position - 1] ?? -1));
  if (!ordered || indexed.length !== indices.length)
    fail(draft, "TW2001", `${draft.kind} needs one index tile for each indexed axis, in order`, {
      expected: `${indices.length} axes, in order`,
      found: `[${indexed.join(", ")}]`,
    });
  const tiles = indices.map((index) => indexTile(draft, index));
  const joined = joinedExtents(tiles);
  if (joined === undefined)
    return fail(draft, "TW2004", `index tiles of ${opName(draft)} do not fit together`, {
      expected: tiles.slice(0, 1).map(typeText).join(),
      found: tiles.slice(1).map(typeText).join(", "),
    });
  const shape = staticShape(draft, {
    ...ref,
    shape: indexedShape(ref.shape, indexed, joined).shape,
  });
  if (where !== undefined) requireMask(draft, dataOperand(draft, "where", where), shape);
  return shape;
}

function indexTile(draft: AnyDraft, value: Value): TileType {
  const tile = tileOperand(draft, "an index", value);
  if (tile.dtype.name !== "i32" && tile.dtype.name !== "i64")
    fail(draft, "TW2053", `${opName(draft)} is indexed by a tile of ${tile.dtype.name}`, {
      expected: "i32 or i64",
      found: tile.dtype.name,
    });
  return tile;
}

/** A mask has an axis for each of the tile's, of the same extent or 1. */
function requireMask(draft: AnyDraft, mask: DataType, shape: readonly number[]): void {
  requireBool(draft, "where", mask.dtype);
  const own = dataShape(mask);
  const fits =
    own.length === shape.length &&
    own.every((extent, axis) => extent === 1 || extent === shape[axis]);
  if (!fits)
    fail(draft, "TW2054", `the mask of ${opName(draft)} does not fit what is accessed`, {
      expected: `a shape that repeats to ${shapeText(shape)}`,
      found: shapeText(own),
    });
}

/** A value written to a window has its dtype and its shape. */
function requireStorable(draft: Draft<AccessKind>, ref: RefType, value: DataType): void {
  if (value.dtype !== ref.dtype)
    fail(
      draft,
      "TW2042",
      `${opName(draft)} of ${value.dtype.name} into memory of ${ref.dtype.name}`,
      {
        expected: ref.dtype.name,
        found: value.dtype.name,
        remedy: `convert the value with .cast(${ref.dtype.name})`,
      },
    );
  const shape = accessedShape(draft, ref);
  if (!sameShape(shape, dataShape(value)))
    fail(draft, "TW2043", `${opName(draft)} of a value of another shape than the window`, {
      expected: shapeText(shape),
      found: shapeText(dataShape(value)),
    });
}

function requireSharedShape(draft: Draft<"alloc">): void {
  const size = draft.attributes.shape.find((extent) => typeof extent !== "number");
  if (size !== undefined)
    fail(draft, "TW2041", `shared memory cannot have extent ${sizeText(size)}, known at launch`, {
      expected: "extents that are numbers",
      found: shapeText(draft.attributes.shape),
    });
}

function unionMember(draft: Draft<"union_member">): readonly Type[] {
  const { group, offset, dtype, shape } = draft.attributes;
  const union = refOperand(draft, "the union", draft.operands.union);
  requireSpace(draft, "the union", union, ["smem"]);
  requireTileExtents(draft, shape);
  const [bytes = 0] = staticShape(draft, union);
  const end = offset + packedBytes(dtype, elementCount(shape));
  if (!Number.isInteger(group) || group < 0 || union.dtype !== u8 || union.shape.length !== 1)
    fail(draft, "TW2001", "union_member needs a union and a group from 0", {
      expected: "the result of alloc_union",
      found: `group ${group} of ${typeText(union)}`,
    });
  if (!Number.isInteger(offset) || offset < 0 || end > bytes)
    fail(draft, "TW2051", "the member lies outside its union", {
      expected: `bytes from 0 to ${bytes}`,
      found: `bytes from ${offset} to ${end}`,
    });
  const alignment = Math.max(1, dtype.bits / 8);
  if (offset % alignment !== 0)
    fail(draft, "TW2052", `a member of ${dtype.name} starts at byte ${offset} of its union`, {
      expected: `a multiple of ${alignment}`,
      found: String(offset),
    });
  return [refType("smem", dtype, shape)];
}

function requireTileExtents(draft: AnyDraft, shape: readonly number[]): void {
  if (!shape.every(isPositiveInteger))
    fail(draft, "TW2008", `extents must be positive integers, not ${shapeText(shape)}`, {
      expected: "positive integers",
      found: shapeText(shape),
    });
}

function sliceRef(draft: Draft<"slice_ref">, context: InferContext): readonly Type[] {
  const ref = refOperand(draft, "the window", draft.operands.ref);
  const { offsets } = draft.operands;
  const { sizes, dropped } = draft.attributes;
  for (const offset of offsets) indexOperand(draft, "an index", offset);
  const rank = ref.shape.length;
  if (offsets.length !== rank || sizes.length !== rank)
    fail(draft, "TW2046", `a window on ${typeText(ref)} needs one index or slice for each axis`, {
      expected: `${rank} offsets and sizes`,
      found: `${offsets.length} offsets and ${sizes.length} sizes`,
    });
  requireSizes(draft, sizes, context);
  requireAxes(draft, dropped, rank);
  for (const axis of dropped) {
    const size = sizes[axis];
    if (size !== 1)
      fail(draft, "TW2047", `axis ${axis} cannot be dropped from the window`, {
        expected: "size 1",
        found: `size ${sizeText(size ?? 0)}`,
      });
  }
  if (ref.space === "tmem") requireAllRows(draft, ref);
  const shape = sizes.filter((_, axis) => !dropped.includes(axis));
  return [refType(ref.space, ref.dtype, shape)];
}

/** Tiles of tensor memory lie side by side, and so do their columns: all of their rows belong to a window. */
function requireAllRows(draft: Draft<"slice_ref">, ref: RefType): void {
  const { sizes, dropped } = draft.attributes;
  const columns = ref.shape.length - 1;
  const rows = columns - (hasHalves(ref) ? 2 : 1);
  const isKept = (axis: number): boolean => !dropped.includes(axis);
  const whole = ref.shape.slice(rows, columns).every((size, axis) => size === sizes[rows + axis]);
  if (whole && [rows, columns - 1, columns].every(isKept)) return;
  fail(draft, "TW2302", "a window of tensor memory that has not all rows of its tile", {
    expected: `${sizeText(ref.shape[rows] ?? 0)} rows, and a slice of columns`,
    found: `${sizeText(sizes[rows] ?? 0)} rows of ${typeText(ref)}`,
  });
}

/** Whether the columns of a tile in tensor memory are seen as those of its two halves of lanes. */
export function hasHalves({ space, shape }: RefType): boolean {
  return space === "tmem" && shape.length > 2 && shape.at(-2) === 2;
}

/** Columns of a tile in tensor memory can become those of either half of the lanes: [64, n] becomes [64, 2, n / 2]. */
function requireHalves(draft: Draft<"reshape_ref">, ref: RefType): void {
  if (ref.space !== "tmem") return;
  const columns = Number(ref.shape.at(-1));
  const wanted = [...ref.shape.slice(0, -1), 2, columns / 2];
  if (!hasHalves(ref) && columns % 2 === 0 && sameShape(draft.attributes.shape, wanted)) return;
  fail(draft, "TW2302", `${opName(draft)} of a window of tensor memory`, {
    expected: "windows of columns, by at, or [64, 2, n / 2] of sums of a pair of blocks",
    found: `${typeText(ref)} to ${shapeText(draft.attributes.shape)}`,
  });
}

/** What lies in tensor memory keeps its rows and columns. */
function requireNoTensorMemory(draft: AnyDraft, ref: RefType): void {
  if (ref.space !== "tmem") return;
  fail(draft, "TW2302", `${opName(draft)} of a window of tensor memory`, {
    expected: "windows of columns, by at",
    found: typeText(ref),
  });
}

function load(draft: Draft<"load">): readonly Type[] {
  const ref = refOperand(draft, "the window", draft.operands.ref);
  const shape = accessedShape(draft, ref);
  requireTileShape(draft, shape);
  const { evict } = draft.attributes;
  requireEviction(draft, evict);
  if (evict !== undefined && ref.space !== "gmem")
    fail(draft, "TW2079", `a load of ${ref.space} goes through no cache`, {
      expected: "a window of gmem",
      found: `a window of ${ref.space}`,
    });
  if (draft.operands.fill !== undefined) {
    const fill = dataOperand(draft, "the fill value", draft.operands.fill);
    if (fill.kind === "tile" && !sameShape(shape, fill.shape))
      fail(draft, "TW2044", "the fill value of a load has another shape than what is loaded", {
        expected: `${shapeText(shape)}, or what repeats to it`,
        found: shapeText(fill.shape),
        remedy: "give a scalar, or a tile with an element for each that is loaded",
      });
    if (fill.dtype !== ref.dtype)
      fail(draft, "TW2044", `the fill value of a load of ${ref.dtype.name} is ${fill.dtype.name}`, {
        expected: ref.dtype.name,
        found: fill.dtype.name,
      });
  }
  return [dataType(ref.dtype, shape)];
}

/** Elements that are read or written at once, while others do: those of whole bytes. */
function requireWholeBytes(draft: AnyDraft, dtype: DType): void {
  if (wholeBytes.includes(dtype.name)) return;
  fail(draft, "TW2045", `${opName(draft)} with a memory order takes no ${dtype.name}`, {
    expected: `one of ${wholeBytes.join(", ")}`,
    found: dtype.name,
    remedy: "keep the flag in an i32",
  });
}

const wholeBytes = dtypeNames.filter(
  (name) => dtypes[name].bits >= 8 && dtypes[name].kind !== "bool",
);

/** The cluster is a scope where there is one. */
function requireScope(draft: AnyDraft, scope: string | undefined, context: InferContext): void {
  if (scope !== "cluster" || context.grid.some(({ cluster }) => cluster > 1)) return;
  fail(draft, "TW2058", `${opName(draft)} has the scope of a cluster, and the kernel has none`, {
    expected: "a kernel with a cluster",
    found: "a grid without one",
  });
}

export const memoryRules: InferRules<keyof typeof memoryOps> = {
  alloc(draft, context) {
    const { space, dtype, shape } = draft.attributes;
    requireSizes(draft, shape, context);
    if (space === "smem") requireSharedShape(draft);
    return [refType(space, dtype, shape)];
  },

  alloc_union(draft) {
    const { bytes } = draft.attributes;
    requireTileExtents(draft, [bytes]);
    return [refType("smem", u8, [bytes])];
  },

  union_member: unionMember,
  slice_ref: sliceRef,

  transpose_ref(draft) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    requireNoTensorMemory(draft, ref);
    const { permutation } = draft.attributes;
    requirePermutation(draft, permutation, ref.shape.length);
    return [refType(ref.space, ref.dtype, permute(ref.shape, permutation))];
  },

  reshape_ref(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    requireHalves(draft, ref);
    const { shape } = draft.attributes;
    requireSizes(draft, shape, context);
    const [from, to] = [multiplySizes(...ref.shape), multiplySizes(...shape)];
    if (!sameSize(from, to))
      fail(
        draft,
        "TW2024",
        `reshape of ${typeText(ref)} to ${shapeText(shape)} changes the number of elements`,
        {
          expected: `${sizeText(from)} elements`,
          found: `${sizeText(to)} elements`,
        },
      );
    return [refType(ref.space, ref.dtype, shape)];
  },

  peer_ref(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    requireSpace(draft, "the window", ref, ["smem"]);
    indexOperand(draft, "the rank", draft.operands.rank);
    requireCluster(draft, context);
    return [refType("peer", ref.dtype, ref.shape)];
  },

  select_ref(draft) {
    const { refs, index } = draft.operands;
    const [first, ...others] = refs.map((ref) => refOperand(draft, "an array", ref));
    indexOperand(draft, "the index", index);
    if (first === undefined)
      return fail(draft, "TW2001", "select_ref has no array to select", {
        expected: "one array or more",
        found: "none",
      });
    requireSpace(draft, "an array", first, ["gmem"]);
    const other = others.find((type) => !sameType(type, first));
    if (other !== undefined)
      fail(draft, "TW2003", "the arrays of select_ref have different types", {
        expected: typeText(first),
        found: typeText(other),
      });
    return [first];
  },

  address_of(draft) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    staticShape(draft, ref);
    return [scalarType(ref.space === "gmem" ? u64 : u32)];
  },

  load,

  store(draft) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    requireStorable(draft, ref, dataOperand(draft, "the value", draft.operands.value));
    return [];
  },

  atomic(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    const value = dataOperand(draft, "the value", draft.operands.value);
    requireStorable(draft, ref, value);
    requireAtomic(draft, draft.attributes.fn, ref.dtype);
    requireScope(draft, draft.attributes.scope, context);
    return [value];
  },

  atomic_compare_exchange(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    const value = dataOperand(draft, "the value", draft.operands.value);
    requireStorable(draft, ref, dataOperand(draft, "the expected value", draft.operands.expected));
    requireStorable(draft, ref, value);
    requireAtomic(draft, "compare_exchange", ref.dtype);
    requireScope(draft, draft.attributes.scope, context);
    return [value];
  },

  atomic_load(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    const fill = dataOperand(draft, "the fill value", draft.operands.fill);
    requireStorable(draft, ref, fill);
    requireWholeBytes(draft, ref.dtype);
    requireScope(draft, draft.attributes.scope, context);
    return [fill];
  },

  atomic_store(draft, context) {
    const ref = refOperand(draft, "the window", draft.operands.ref);
    requireStorable(draft, ref, dataOperand(draft, "the value", draft.operands.value));
    requireWholeBytes(draft, ref.dtype);
    requireScope(draft, draft.attributes.scope, context);
    return [];
  },
};
