/** Inference for asynchronous copies and products, and for what waits for them. */
import { i32, isFloat, packedBytes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { floatFormats } from "../../formats/floats.ts";
import { elementsPerWord } from "../../formats/arithmetic/index.ts";
import type { Value } from "../node.ts";
import { opName } from "../op-names.ts";
import type { asynchronousOps, copyReductions } from "../ops/asynchronous.ts";
import { sameShape, shapeText } from "../size.ts";
import { inflightType, scalarType, tileType, typeText } from "../types.ts";
import type { InflightType, RefType, TileType, Type } from "../types.ts";
import {
  requireBool,
  scalarOperand,
  fail,
  inflightOperand,
  refOperand,
  requireEviction,
  requireSpace,
  requireTileShape,
  staticShape,
  tileOperand,
  tileOrRefOperand,
} from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import { requireMulticast, requirePair } from "./block-pairs.ts";
import type { Draft, InferContext, InferRules } from "./inference-input.ts";
import { warpsPerGroup } from "../../targets/target.ts";
import { requireBarrierIndex } from "./synchronization.ts";
import { operandsText, wgmmaAccumulators } from "./matrix.ts";
import { requireAccumulator } from "./scaled-dot.ts";
import { columnGrain, productInstructions } from "../../targets/product-instructions.ts";

/** What copies are multiples of, in bytes. */
export const copyGrain = 16;

type CopyReduction = Exclude<(typeof copyReductions)[number], "none">;

const integers: readonly DTypeName[] = ["i32", "u32", "i64", "u64"];
const copyExtrema: readonly DTypeName[] = ["f16", "bf16", ...integers];
const counters: readonly DTypeName[] = ["u32"];
const reductionFormats: { readonly [R in CopyReduction]: readonly DTypeName[] } = {
  add: [...copyExtrema, "f32", "f64"],
  min: copyExtrema,
  max: copyExtrema,
  inc: counters,
  dec: counters,
  and: integers,
  or: integers,
  xor: integers,
};

/** Source and destination have one format and one static shape that TMA can walk. */
/** Whether a copy rounds f32 to tf32 on its way into shared memory, which is all that TMA converts. */
export function roundsCopy(source: RefType, destination: RefType): boolean {
  const [from, to] = [source.dtype.name, destination.dtype.name];
  return from === "f32" && to === "tf32" && source.space === "gmem" && destination.space === "smem";
}

function checkCopyWindows(draft: Draft<"copy_async">, source: RefType, destination: RefType): void {
  const rounds = roundsCopy(source, destination);
  if (source.dtype !== destination.dtype && !rounds)
    fail(draft, "TW2061", "an asynchronous copy cannot convert", {
      expected: destination.dtype.name,
      found: source.dtype.name,
    });
  const shape = staticShape(draft, source);
  const target = staticShape(draft, destination);
  if (shapeText(shape) !== shapeText(target))
    fail(draft, "TW2062", "source and destination of copyAsync have different shapes", {
      expected: shapeText(shape),
      found: shapeText(target),
    });
  if (shape.length === 0)
    fail(draft, "TW2063", "copyAsync of a window with 0 axes", {
      expected: "1 axis or more",
      found: shapeText(shape),
    });
  const bytes = packedBytes(
    source.dtype,
    shape.reduce((product, extent) => product * extent, 1),
  );
  if (bytes % copyGrain !== 0)
    fail(draft, "TW2064", `unaligned copy: the window takes ${bytes} bytes`, {
      expected: `a multiple of ${copyGrain} bytes`,
      found: `${shapeText(shape)} of ${source.dtype.name}, ${bytes} bytes`,
    });
}

function checkCopyIntoShared(
  draft: Draft<"copy_async">,
  source: RefType,
  context: InferContext,
): void {
  const { barrier, index } = draft.operands;
  const { fill, multicast, reduction } = draft.attributes;
  if (barrier === undefined)
    return fail(draft, "TW2066", "copyAsync into shared memory needs a barrier to arrive on", {
      expected: "copyAsync(source, destination, barrier)",
      found: "no barrier",
    });
  requireBarrierIndex(draft, barrier, index);
  if (reduction !== "none")
    fail(draft, "TW2070", `copyAsync with reduction "${reduction}" into shared memory`, {
      expected: "a destination in gmem",
      found: "smem",
    });
  if (fill === "nan" && !hasNan(source.dtype))
    fail(draft, "TW2072", `${source.dtype.name} has no NaN to fill with`, {
      expected: '"zero"',
      found: '"nan"',
    });
  requireMulticast(draft, multicast, context);
  if (draft.attributes.pair === true) requirePair(draft, context);
  requireParts(draft, context);
}

/** A part for each block that receives all of them. */
function requireParts(draft: Draft<"copy_async">, { grid }: InferContext): void {
  const { multicast, parts } = draft.attributes;
  const blocks = grid
    .filter(({ name }) => multicast.includes(name))
    .reduce((product, { cluster }) => product * cluster, 1);
  if (parts !== undefined && (parts !== blocks || blocks === 1))
    fail(draft, "TW2001", `a multicast to ${blocks} blocks in ${parts} parts`, {
      expected: "a part for each of several blocks",
      found: String(parts),
    });
}

function hasNan(dtype: DType): boolean {
  return isFloat(dtype) && floatFormats[dtype.name].nan !== undefined;
}

function checkCopyIntoGlobal(draft: Draft<"copy_async">, dtype: DType): void {
  const { barrier, index } = draft.operands;
  const { fill, multicast, reduction, pair = false } = draft.attributes;
  if (barrier !== undefined || index !== undefined)
    fail(draft, "TW2067", "copyAsync into global memory arrives on no barrier", {
      expected: "copyAsync(source, destination)",
      found: "a barrier",
    });
  if (multicast.length > 0 || pair)
    fail(
      draft,
      "TW2068",
      `${pair ? "a pair of blocks" : "multicast"} copies into shared memory only`,
      {
        expected: "a destination in smem",
        found: "gmem",
      },
    );
  if (fill !== "zero")
    fail(draft, "TW2072", "a copy into global memory fills nothing: what is outside is dropped", {
      expected: '"zero"',
      found: `"${fill}"`,
    });
  if (reduction !== "none" && !reductionFormats[reduction].includes(dtype.name))
    fail(draft, "TW2071", `copyAsync has no reduction "${reduction}" of ${dtype.name}`, {
      expected: `one of ${reductionFormats[reduction].join(", ")}`,
      found: dtype.name,
    });
}

function copyAsync(draft: Draft<"copy_async">, context: InferContext): readonly Type[] {
  const source = refOperand(draft, "the source", draft.operands.source);
  const destination = refOperand(draft, "the destination", draft.operands.destination);
  const way = `${source.space} to ${destination.space}`;
  if (way !== "gmem to smem" && way !== "smem to gmem")
    fail(draft, "TW2060", `copyAsync does not copy from ${way}`, {
      expected: "gmem to smem, or smem to gmem",
      found: way,
    });
  checkCopyWindows(draft, source, destination);
  requireEviction(draft, draft.attributes.evict);
  if (destination.space === "smem") checkCopyIntoShared(draft, source, context);
  else checkCopyIntoGlobal(draft, source.dtype);
  return [];
}

function requirePending(draft: AnyDraft, pending: number): void {
  if (!Number.isInteger(pending) || pending < 0)
    fail(draft, "TW2073", `${opName(draft)} cannot leave ${pending} unfinished`, {
      expected: "an integer of 0 or more",
      found: String(pending),
    });
}

const accumulatorFormats: readonly DTypeName[] = ["f32", "f16", "i32"];

/** Each warpgroup takes 64 rows and 8 to 256 columns; integers skip odd eights above 32. */
function checkAccumulator(
  draft: AnyDraft,
  dtype: DType,
  shape: readonly number[],
  { warps }: InferContext,
): void {
  if (warps < warpsPerGroup)
    fail(draft, "TW2085", `wgmma takes a warpgroup, and the kernel's threads have ${warps} warps`, {
      expected: `${warpsPerGroup} warps or more`,
      found: String(warps),
    });
  if (!accumulatorFormats.includes(dtype.name))
    fail(draft, "TW2075", `wgmma does not accumulate in ${dtype.name}`, {
      expected: accumulatorFormats.join(", "),
      found: dtype.name,
    });
  requireTileShape(draft, shape);
  const [m = 0, n = 0] = shape;
  const { wgmma: instruction } = productInstructions;
  const { mostColumns } = instruction.shape;
  const grain = columnGrain(instruction, dtype, n);
  const rows = (instruction.shape.rows[0] * warps) / warpsPerGroup;
  if (shape.length !== 2 || m % rows !== 0 || n % grain !== 0 || n > mostColumns)
    fail(draft, "TW2074", `wgmma cannot accumulate a tile of shape ${shapeText(shape)}`, {
      expected: `[m, n] with m a multiple of ${rows}, n ${grain === 8 ? "a multiple of 8 from 8" : "8, 24 or a multiple of 16"} to 256`,
      found: shapeText(shape),
      ...(n > mostColumns && {
        remedy: "split the columns over several accumulators of at most 256",
      }),
    });
}

function checkProduct(
  draft: Draft<"wgmma">,
  accumulator: InflightType,
  a: TileType | RefType,
  b: RefType,
): void {
  const accumulators = wgmmaAccumulators(a.dtype, b.dtype);
  if (accumulators.length === 0)
    fail(draft, "TW2077", `wgmma does not multiply ${a.dtype.name} by ${b.dtype.name}`, {
      expected: operandsText(wgmmaAccumulators),
      found: `${a.dtype.name} and ${b.dtype.name}`,
      ...(a.dtype.name === "f32" && { remedy: "declare the operands as tf32, or cast them to it" }),
    });
  if (!accumulators.includes(accumulator.dtype.name))
    fail(
      draft,
      "TW2075",
      `wgmma of ${a.dtype.name} does not accumulate in ${accumulator.dtype.name}`,
      {
        expected: accumulators.join(" or "),
        found: accumulator.dtype.name,
      },
    );
}

function wgmma(draft: Draft<"wgmma">): readonly Type[] {
  const accumulator = inflightOperand(draft, "the accumulator", draft.operands.accumulator);
  const a = tileOrRefOperand(draft, "the left factor", draft.operands.a);
  const b = refOperand(draft, "the right factor", draft.operands.b);
  if (a.kind === "ref") requireSpace(draft, "the left factor", a, ["smem"]);
  requireSpace(draft, "the right factor", b, ["smem"]);
  checkProduct(draft, accumulator, a, b);
  const left = a.kind === "ref" ? staticShape(draft, a) : a.shape;
  const right = staticShape(draft, b);
  const [m, n] = accumulator.shape;
  const { metadata } = draft.operands;
  const [held, holds] = metadata === undefined ? [1, "k"] : [2, "k / 2"];
  const k = held * (left[1] ?? 0);
  if (
    shapeText(left) !== shapeText([m ?? 0, k / held]) ||
    shapeText(right) !== shapeText([k, n ?? 0])
  )
    fail(draft, "TW2076", "shapes of wgmma do not fit together", {
      expected: `[${m}, ${holds}] by [k, ${n}] for an accumulator of ${shapeText(accumulator.shape)}`,
      found: `${shapeText(left)} by ${shapeText(right)}`,
    });
  // A lane has whole words of metadata, each for four columns of them.
  const grain = metadata === undefined ? 256 / a.dtype.bits : 4 * elementsPerWord(a.dtype);
  if (k % grain !== 0)
    fail(draft, "TW2078", `wgmma of ${a.dtype.name} cannot sum over ${k} elements`, {
      expected: `k a multiple of ${grain}`,
      found: `k = ${k}`,
    });
  if (metadata !== undefined)
    checkMetadata(draft, metadata, [m ?? 0, k / elementsPerWord(a.dtype)]);
  const { adds } = draft.operands;
  if (adds !== undefined) requireBool(draft, "adds", scalarOperand(draft, "adds", adds).dtype);
  return [accumulator];
}

function checkMetadata(draft: Draft<"wgmma">, value: Value, shape: readonly number[]): void {
  const metadata = tileOperand(draft, "the metadata", value);
  if (metadata.dtype.name !== "u16" || shapeText(metadata.shape) !== shapeText(shape))
    fail(draft, "TW2086", "the metadata of wgmma do not fit its left factor", {
      expected: `a tile of u16, ${shapeText(shape)}`,
      found: typeText(metadata),
    });
}

function ofGlobalWindow(draft: Draft<"prefetch"> | Draft<"prefetch_maps">): [] {
  const ref = refOperand(draft, "the window", draft.operands.ref);
  requireSpace(draft, "the window", ref, ["gmem"]);
  return [];
}

/** 16 bytes of shared memory. */
function requireResponse(draft: Draft<"take_block"> | Draft<"taken_block">): void {
  const ref = refOperand(draft, "the response", draft.operands.response);
  requireSpace(draft, "the response", ref, ["smem"]);
  const shape = staticShape(draft, ref);
  if (ref.dtype !== i32 || !sameShape(shape, [responseWords]))
    fail(draft, "TW2001", "a response that is not 16 bytes", {
      expected: `i32, [${responseWords}]`,
      found: typeText(ref),
    });
}

/** Words of what hardware answers to a request for a block. */
const responseWords = 4;

export const asynchronousRules: InferRules<keyof typeof asynchronousOps> = {
  copy_async: copyAsync,

  take_block(draft) {
    requireResponse(draft);
    requireBarrierIndex(draft, draft.operands.barrier, draft.operands.index);
    return [];
  },

  taken_block(draft) {
    requireResponse(draft);
    return [scalarType(i32)];
  },

  prefetch: ofGlobalWindow,
  prefetch_maps: ofGlobalWindow,

  commit_group: () => [],

  wait_group(draft) {
    requirePending(draft, draft.attributes.pending);
    return [];
  },

  proxy_fence: () => [],

  accumulator(draft, context) {
    const { dtype, shape } = draft.attributes;
    checkAccumulator(draft, dtype, shape, context);
    if (draft.operands.initial !== undefined) {
      const initial = tileOperand(draft, "the initial value", draft.operands.initial);
      requireAccumulator(draft, tileType(dtype, shape), initial);
    }
    return [inflightType(dtype, shape)];
  },

  wgmma,

  wgmma_wait(draft) {
    const accumulator = inflightOperand(draft, "the accumulator", draft.operands.accumulator);
    const { pending, gives } = draft.attributes;
    requirePending(draft, pending);
    return [gives === "tile" ? tileType(accumulator.dtype, accumulator.shape) : accumulator];
  },
};
