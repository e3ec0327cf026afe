/**
 * What attention is asked to do, taken apart: sizes, formats, and what happens to a score before the softmax. Everything
 * else in this folder works on this description.
 *
 *   q [b, s, h, d]   k [b, t, kv, d]   v [b, t, kv, e]   ──▶   out [b, s, h, e], logSumExp [b, h, s]
 *
 *   score = (q · k) · scale ──▶ softCap ──▶ + bias ──▶ score function ──▶ window, mask ──▶ softmax over t
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { sameSize, shapeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Scalar, Tile } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { optionText, requireKnownOptions } from "../../support/options.ts";
import { givenArray, refused } from "../support/arguments.ts";
import type { GivenArray } from "../support/arguments.ts";

/** Where scores are: rows [r, 1] and columns [1, c] of a tile of them, in one head of one batch. */
export interface ScorePlace {
  /** The number of the sequence. */
  readonly batch: Scalar<"i32">;
  /** The number of the head. */
  readonly head: Scalar<"i32">;
  /** The numbers of the queries. */
  readonly row: Tile<"i32">;
  /** The numbers of the keys. */
  readonly column: Tile<"i32">;
}

/** Columns that a row sees: from `row - left` to `row + right`, to the ends where one is left out. */
export interface Window {
  /** Keys before a query that it sees; all unless given. */
  readonly left?: number;
  /** Keys after a query that it sees; all unless given. */
  readonly right?: number;
}

/** What `attention` is made for: its arrays, its mask, and what is done to scores. */
export interface AttentionSpec {
  /** The queries. */
  readonly q: GivenArray;
  /** The keys. */
  readonly k: GivenArray;
  /** The values. */
  readonly v: GivenArray;
  /** The format of the result; that of q by default. */
  readonly out?: DType;
  /** Rows see columns up to their own number. */
  readonly causal?: boolean;
  /** How far to either side a row sees. */
  readonly window?: Window;
  /** Added to scores: [b, h, s, t], each of them 1 where it is the same for all. */
  readonly bias?: TensorSpec;
  /** Whether a row sees a column. */
  readonly mask?: (place: ScorePlace) => Tile<"bool">;
  /** Another score for each. */
  readonly score?: (place: ScorePlace & { readonly score: Tile<"f32"> }) => Tile<"f32">;
  /** Scores are brought within ±softCap by softCap · tanh(score / softCap). */
  readonly softCap?: number;
  /** One more score of each head, [h], that takes its share of the softmax and gives nothing. */
  readonly sinks?: GivenArray<"f32">;
  /** What q · k is multiplied by; 1 / √d by default. */
  readonly scale?: number;
  /** What the numbers of FP8 operands are multiplied by, of f32: inputs `qScale` of [h], `kScale` and `vScale` of [kv]. */
  readonly scales?: boolean;
  /** The part of the weights that become 0, the others being divided by what is left; bits follow from an input `key` of two words. */
  readonly dropout?: number;
  /** Where sequences begin that lie one behind the other along s and t, which then have one batch: [sequences + 1] of i32 each. */
  readonly offsets?: { readonly q: GivenArray<"i32">; readonly k: GivenArray<"i32"> };
  /**
   * The segment of each query, [b, s], and of each key and value, [b, t], of i32: rows see columns of their own segment alone. They are
   * inputs `querySegmentIds` and `keyValueSegmentIds`.
   */
  readonly segmentIds?: {
    readonly query: GivenArray<"i32">;
    readonly keyValue: GivenArray<"i32">;
  };
  /** Whether the logarithm of the sum of the exponentials of each row is a result, too: [b, h, s] of f32. */
  readonly logSumExp?: boolean;
}

export interface AttentionProblem {
  readonly q: TensorSpec;
  readonly k: TensorSpec;
  readonly v: TensorSpec;
  readonly out: TensorSpec;
  readonly logSumExp: TensorSpec | undefined;
  readonly bias: TensorSpec | undefined;
  readonly sinks: TensorSpec | undefined;
  readonly querySegmentIds: TensorSpec | undefined;
  readonly keyValueSegmentIds: TensorSpec | undefined;
  /** What the numbers of a head are multiplied by. */
  readonly qScale: TensorSpec | undefined;
  readonly kScale: TensorSpec | undefined;
  readonly vScale: TensorSpec | undefined;
  /** What dropout draws from. */
  readonly key: TensorSpec | undefined;
  readonly qOffsets: TensorSpec | undefined;
  readonly kOffsets: TensorSpec | undefined;
  readonly sizes: {
    readonly b: Size;
    readonly s: Size;
    readonly t: Size;
    readonly h: Size;
    readonly kv: Size;
    readonly d: Size;
    readonly e: Size;
    /** Offsets of sequences; 0 where batches have an axis of their own. */
    readonly ends: Size;
  };
  /** How far a row sees; causal is none to the right. */
  readonly window: Window;
  readonly mask: AttentionSpec["mask"];
  readonly score: AttentionSpec["score"];
  /** By how much a score changes with the one that the score function was given, for gradients. */
  readonly slope?: AttentionSpec["score"];
  readonly softCap: number | undefined;
  readonly dropout: number | undefined;
  readonly scale: number | undefined;
}

/** What kinds of values the fields take. */
export const attentionFields = {
  q: "array",
  k: "array",
  v: "array",
  out: "format",
  causal: "flag",
  window: "settings",
  bias: "array",
  mask: "function",
  score: "function",
  softCap: "number",
  sinks: "array",
  scale: "number",
  scales: "flag",
  dropout: "number",
  offsets: "named",
  segmentIds: "named",
  logSumExp: "flag",
  configuration: "settings",
} as const;

/** What there are gradients of, and results. */
const formats: readonly DType[] = [dtypes.bf16, dtypes.f16, dtypes.f32];
const narrow: readonly DType[] = [dtypes.f8e4m3fn, dtypes.f8e5m2];

/** Whether operands are FP8, whose products the hardware sums in an order of its own. */
export function isNarrow({ q }: Pick<AttentionProblem, "q">): boolean {
  return narrow.includes(q.dtype);
}

/** Taken apart; FP8 is an operand of the forward pass alone. */
export function problemOf(
  spec: AttentionSpec,
  location: Location,
  taken: "forward" | "gradients" = "gradients",
): AttentionProblem {
  const [s, t, h, kv, d, e] = ["s", "t", "h", "kv", "d", "e"].map((name) => dim(name));
  const b = spec.offsets === undefined ? dim("b") : 1;
  const usual = { q: [b, s, h, d], k: [b, t, kv, d], v: [b, t, kv, e] } as const;
  const operands = taken === "forward" ? [...formats, ...narrow] : formats;
  const q = operandOf("q", spec.q, usual.q, operands, location);
  const k = operandOf("k", spec.k, usual.k, operands, location);
  const v = operandOf("v", spec.v, usual.v, operands, location);
  requireTogether(q, k, v, location);
  const { qOffsets, kOffsets } = offsetsOf(spec, axis(q, 0), location);
  const sizes = {
    ...{ b: axis(q, 0), s: axis(q, 1), h: axis(q, 2), d: axis(q, 3) },
    ...{ t: axis(k, 1), kv: axis(k, 2), e: axis(v, 3) },
    ends: qOffsets === undefined ? 0 : axis(qOffsets, 0),
  };
  return {
    ...{ q, k, v, sizes, qOffsets, kOffsets },
    ...arrivalCountsOf(spec, q, sizes, location),
    ...segmentsOf(spec, sizes, location),
    out: tensor(outputFormat(spec.out ?? q.dtype, location), [sizes.b, sizes.s, sizes.h, sizes.e]),
    logSumExp:
      spec.logSumExp === true ? tensor(dtypes.f32, [sizes.b, sizes.h, sizes.s]) : undefined,
    bias: spec.bias === undefined ? undefined : biasOf(spec.bias, sizes, location),
    sinks: spec.sinks === undefined ? undefined : sinksOf(spec.sinks, sizes.h, location),
    key: spec.dropout === undefined ? undefined : tensor(dtypes.u32, [2]),
    window: windowOf(spec, location),
    mask: spec.mask,
    score: spec.score,
    softCap: numberOf("softCap", spec.softCap, (value) => value > 0, "more than 0", location),
    dropout: numberOf("dropout", spec.dropout, isPart, "a part from 0 to below 1", location),
    scale: numberOf("scale", spec.scale, () => true, "a number", location),
  };
}

function isPart(value: number): boolean {
  return value >= 0 && value < 1;
}

function axis({ shape }: TensorSpec, index: number): Size {
  return shape[index] ?? 1;
}

function operandOf(
  name: string,
  given: unknown,
  usual: readonly (Size | undefined)[],
  taken: readonly DType[],
  location: Location,
): TensorSpec {
  const shape = usual.filter((size) => size !== undefined);
  const spec = givenArray(name, "attention", given, shape, location);
  if (!taken.includes(spec.dtype))
    throw refused(
      "TW9901",
      `attention has no products of ${spec.dtype.name}`,
      taken.map((dtype) => dtype.name).join(", "),
      `${name} of ${spec.dtype.name}`,
      location,
    );
  if (spec.shape.length === 4 && spec.strides === undefined) return spec;
  throw refused(
    "TW9902",
    `${name} of attention lies in memory in a way that no kernel reads`,
    `[${name === "q" ? "b, s, h, d" : name === "k" ? "b, t, kv, d" : "b, t, kv, e"}] by rows`,
    `${shapeText(spec.shape)}${spec.strides === undefined ? "" : " with strides"}`,
    location,
  );
}

function requireTogether(q: TensorSpec, k: TensorSpec, v: TensorSpec, location: Location): void {
  if (q.dtype !== k.dtype || q.dtype !== v.dtype)
    throw refused(
      "TW9901",
      "attention takes operands of one format",
      `k and v of ${q.dtype.name}`,
      `k of ${k.dtype.name} and v of ${v.dtype.name}`,
      location,
    );
  const equal: readonly (readonly [string, Size, Size])[] = [
    ["q and k differ in b", axis(q, 0), axis(k, 0)],
    ["q and k differ in d", axis(q, 3), axis(k, 3)],
    ["k and v differ in b", axis(k, 0), axis(v, 0)],
    ["k and v differ in t", axis(k, 1), axis(v, 1)],
    ["k and v differ in heads", axis(k, 2), axis(v, 2)],
  ];
  const wrong = equal.find(([, left, right]) => !sameSize(left, right));
  if (wrong !== undefined)
    throw refused(
      "TW9902",
      `the operands of attention do not fit: ${wrong[0]}`,
      "q of [b, s, h, d], k of [b, t, kv, d], v of [b, t, kv, e]",
      [q, k, v].map(({ shape }) => shapeText(shape)).join(", "),
      location,
    );
}

/** The arrays of offsets, of equal length; a bias has places for batches of equal lengths alone. */
function offsetsOf(
  { offsets, bias }: AttentionSpec,
  b: Size,
  location: Location,
): { readonly [N in "qOffsets" | "kOffsets"]: TensorSpec | undefined } {
  if (offsets === undefined) return { qOffsets: undefined, kOffsets: undefined };
  const wrong = (message: string, expected: string, found: string) =>
    refused("TW9902", message, expected, found, location);
  requireKnownOptions("offsets of attention", offsets, ["q", "k"], "TW1033", location);
  if (bias !== undefined)
    throw wrong(
      "attention has no bias for sequences of different lengths",
      "a score function of head, row and column",
      "bias and offsets",
    );
  if (b !== 1)
    throw wrong(
      "sequences with offsets lie along one axis",
      "q of [1, s, h, d], k of [1, t, kv, d], v of [1, t, kv, e]",
      `${shapeText([b])} batches`,
    );
  const ends = dim("ends");
  const [q, k] = (["q", "k"] as const).map((name) =>
    givenArray(`offsets.${name}`, "attention", offsets[name], [ends], location),
  );
  const fits = [q, k].every(
    (each) => each?.dtype === dtypes.i32 && each.shape.length === 1 && each.strides === undefined,
  );
  if (q && k && fits && sameSize(axis(q, 0), axis(k, 0))) return { qOffsets: q, kOffsets: k };
  throw wrong(
    "the offsets of attention are two lists of equal length",
    "[sequences + 1] of i32 for q and for k",
    [q, k].map((each) => `${shapeText(each?.shape ?? [])} of ${each?.dtype.name}`).join(" and "),
  );
}

/** The arrays of segments; sequences with offsets are segments already. */
function segmentsOf(
  { segmentIds, offsets }: AttentionSpec,
  { b, s, t }: AttentionProblem["sizes"],
  location: Location,
): Pick<AttentionProblem, "querySegmentIds" | "keyValueSegmentIds"> {
  if (segmentIds === undefined)
    return { querySegmentIds: undefined, keyValueSegmentIds: undefined };
  requireKnownOptions(
    "segmentIds of attention",
    segmentIds,
    ["query", "keyValue"],
    "TW1033",
    location,
  );
  if (offsets !== undefined)
    throw refused(
      "TW9902",
      "attention has no segments within sequences that have offsets",
      "segmentIds or offsets",
      "both",
      location,
    );
  const idsOf = (name: "query" | "keyValue", length: Size): TensorSpec => {
    const spec = givenArray(
      `segmentIds.${name}`,
      "attention",
      segmentIds[name],
      [b, length],
      location,
    );
    const fits =
      spec.shape.length === 2 &&
      sameSize(axis(spec, 0), b) &&
      sameSize(axis(spec, 1), length) &&
      spec.strides === undefined;
    if (fits && spec.dtype === dtypes.i32) return spec;
    throw refused(
      "TW9902",
      "the segments of attention are a number for each query, and for each key",
      `${name} of ${shapeText([b, length])} of i32, by rows`,
      `${shapeText(spec.shape)} of ${spec.dtype.name}`,
      location,
    );
  };
  return { querySegmentIds: idsOf("query", s), keyValueSegmentIds: idsOf("keyValue", t) };
}

/** The arrays of scales, which belong to FP8. */
function arrivalCountsOf(
  { scales }: AttentionSpec,
  q: TensorSpec,
  { h, kv }: AttentionProblem["sizes"],
  location: Location,
): Pick<AttentionProblem, "qScale" | "kScale" | "vScale"> {
  if (scales !== true) return { qScale: undefined, kScale: undefined, vScale: undefined };
  if (!isNarrow({ q }))
    throw refused(
      "TW9902",
      "attention has scales of FP8 alone",
      `q of ${narrow.map(({ name }) => name).join(" or ")}, or \`scale\``,
      `q of ${q.dtype.name}`,
      location,
    );
  const shared = tensor(dtypes.f32, [kv]);
  return { qScale: tensor(dtypes.f32, [h]), kScale: shared, vScale: shared };
}

function outputFormat(dtype: DType, location: Location): DType {
  if (formats.includes(dtype)) return dtype;
  throw refused(
    "TW9901",
    "attention has no such result",
    formats.map(({ name }) => name).join(", "),
    optionText(dtype),
    location,
  );
}

function biasOf(
  given: unknown,
  { b, h, s, t }: AttentionProblem["sizes"],
  location: Location,
): TensorSpec {
  const spec = givenArray("bias", "attention", given, [b, h, s, t], location);
  const fits =
    spec.shape.length === 4 &&
    spec.strides === undefined &&
    [b, h, s, t].every((size, index) => {
      const own = axis(spec, index);
      return own === 1 || sameSize(own, size);
    });
  if (fits && formats.includes(spec.dtype)) return spec;
  throw refused(
    "TW9902",
    "the bias of attention does not fit its scores",
    `${shapeText([b, h, s, t])} of bf16, f16 or f32 by rows, each size as it is or 1`,
    `${shapeText(spec.shape)} of ${spec.dtype.name}`,
    location,
  );
}

function sinksOf(given: unknown, h: Size, location: Location): TensorSpec {
  const spec = givenArray("sinks", "attention", given, [h], location);
  const isOne = spec.shape.length === 1 && sameSize(axis(spec, 0), h);
  if (isOne && spec.strides === undefined && spec.dtype === dtypes.f32) return spec;
  throw refused(
    "TW9902",
    "the sinks of attention are one for each head",
    `${shapeText([h])} of f32`,
    `${shapeText(spec.shape)} of ${spec.dtype.name}`,
    location,
  );
}

function windowOf({ causal, window = {} }: AttentionSpec, location: Location): Window {
  const wrong = (found: unknown) =>
    refused(
      "TW9902",
      "attention has no such window",
      "{ left, right } of whole numbers from 0 to 2 ** 30 - 1; a side that is left out has no end",
      optionText(found),
      location,
    );
  requireKnownOptions("the window of attention", window, ["left", "right"], "TW1033", location);
  const { left, right } = window;
  for (const side of [left, right])
    if (side !== undefined && (!Number.isSafeInteger(side) || side < 0 || side >= 2 ** 30))
      throw wrong(side);
  const ahead = causal === true ? 0 : right;
  return { ...(left !== undefined && { left }), ...(ahead !== undefined && { right: ahead }) };
}

function numberOf(
  name: string,
  given: unknown,
  holds: (value: number) => boolean,
  expected: string,
  location: Location,
): number | undefined {
  if (given === undefined) return undefined;
  if (typeof given === "number" && Number.isFinite(given) && holds(given)) return given;
  throw refused("TW9902", `attention has no such ${name}`, expected, optionText(given), location);
}
