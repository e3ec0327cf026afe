/**
 * What attention to a paged cache is asked to do, taken apart. A sequence's keys and values lie in pages anywhere in the
 * cache; its row of the table says which page holds its first tokens, which the next ones, and `lengths` how many there are:
 *
 *   q [b, s, h, d]   k [pages, size, kv, d]   v [pages, size, kv, e]   table [b, most]   lengths [b]   ──▶   out [b, s, h, e]
 *
 *   size 4, length 6    table  7 2 –      page 7  t0 t1 t2 t3      page 2  t4 t5 · ·
 *
 * The s rows of q are the last s tokens of their sequence: row i stands at position length - s + i.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { sameSize, shapeText } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec } from "../../lang/index.ts";
import type { Location } from "../../support/location.ts";
import { isRecord, optionText, requireKnownOptions } from "../../support/options.ts";
import { givenArray, refused, requireRows } from "../support/arguments.ts";
import type { Fields, GivenArray } from "../support/arguments.ts";

/** Tokens that a row sees: from `position - left` to `position + right`, to the ends where one is left out. */
export interface PagedWindow {
  /** Keys before a query that it sees; all unless given. */
  readonly left?: number;
  /** Keys after a query that it sees; all unless given. */
  readonly right?: number;
}

/** What `pagedAttention` is made for: queries, the pages of the cache, and the mask. */
export interface PagedAttentionSpec {
  /** [b, s, h, d]: the last s tokens of every sequence. */
  readonly q: GivenArray;
  /** The cache: k of [pages, size, kv, d], v of [pages, size, kv, e]. */
  readonly pages: { readonly k: GivenArray; readonly v: GivenArray };
  /** [b, most]: the pages of every sequence, in order. i32 by default. */
  readonly table?: GivenArray<"i32">;
  /** [b]: tokens of every sequence in the cache, those of q among them. i32 by default. */
  readonly lengths?: GivenArray<"i32">;
  /** The format of the result; that of q by default. */
  readonly out?: DType;
  /** Rows see tokens up to their own. */
  readonly causal?: boolean;
  /** How far to either side of its own position a row sees. */
  readonly window?: PagedWindow;
  /** Scores are brought within ±softCap by softCap · tanh(score / softCap). */
  readonly softCap?: number;
  /** What q · k is multiplied by; 1 / √d by default. */
  readonly scale?: number;
  /** What the numbers of the cache are multiplied by, [kv] of f32 each: inputs `kScale` and `vScale`. */
  readonly scales?: boolean;
  /** Whether the logarithm of the sum of the exponentials of each row is a result, too: [b, h, s] of f32. */
  readonly logSumExp?: boolean;
}

export interface PagedProblem {
  readonly q: TensorSpec;
  readonly k: TensorSpec;
  readonly v: TensorSpec;
  readonly table: TensorSpec;
  readonly lengths: TensorSpec;
  readonly kScale: TensorSpec | undefined;
  readonly vScale: TensorSpec | undefined;
  readonly out: TensorSpec;
  readonly logSumExp: TensorSpec | undefined;
  readonly sizes: { readonly [N in keyof PagedSizes]: Size };
  /** How far a row sees; causal is none to the right. */
  readonly window: PagedWindow;
  readonly softCap: number | undefined;
  readonly scale: number | undefined;
}

/** Sizes of one launch. */
export interface PagedSizes {
  readonly b: number;
  readonly s: number;
  readonly h: number;
  readonly kv: number;
  readonly d: number;
  readonly e: number;
  readonly pages: number;
  readonly size: number;
  readonly most: number;
}

/** What kinds of values the fields take. */
export const pagedFields: Fields = {
  q: "array",
  pages: "named",
  table: "array",
  lengths: "array",
  out: "format",
  causal: "flag",
  window: "settings",
  softCap: "number",
  scale: "number",
  scales: "flag",
  logSumExp: "flag",
  configuration: "settings",
};

const computed: readonly DType[] = [dtypes.bf16, dtypes.f16];
const kept: readonly DType[] = [...computed, dtypes.f8e4m3fn, dtypes.f8e5m2];

export function problemOf(spec: PagedAttentionSpec, location: Location): PagedProblem {
  const dims = ["b", "s", "h", "kv", "d", "e", "pages", "size", "most"].map((name) => dim(name));
  const [b = 0, s = 0, h = 0, kv = 0, d = 0, e = 0, pages = 0, size = 0, most = 0] = dims;
  const cache: { readonly k?: unknown; readonly v?: unknown } = isRecord(spec.pages)
    ? spec.pages
    : {};
  requireKnownOptions("pages of pagedAttention", cache, ["k", "v"], "TW1033", location);
  const operand = (name: string, given: unknown, usual: readonly Size[], formats = kept) =>
    operandOf(name, given, usual, formats, location);
  const q = operand("q", spec.q, [b, s, h, d], computed);
  const k = operand("pages.k", cache.k, [pages, size, kv, d]);
  const v = operand("pages.v", cache.v, [pages, size, kv, e]);
  const integers = [dtypes.i32];
  const table = operand("table", spec.table ?? dtypes.i32, [axis(q, 0), most], integers);
  const lengths = operand("lengths", spec.lengths ?? dtypes.i32, [axis(q, 0)], integers);
  requireTogether({ q, k, v, table, lengths }, location);
  const sizes = {
    ...{ b: axis(q, 0), s: axis(q, 1), h: axis(q, 2), d: axis(q, 3) },
    ...{ pages: axis(k, 0), size: axis(k, 1), kv: axis(k, 2), e: axis(v, 3) },
    most: axis(table, 1),
  };
  const scale = spec.scales === true ? tensor(dtypes.f32, [sizes.kv]) : undefined;
  return {
    ...{ q, k, v, table, lengths, sizes, kScale: scale, vScale: scale },
    out: tensor(outputFormat(spec.out ?? q.dtype, location), [sizes.b, sizes.s, sizes.h, sizes.e]),
    logSumExp:
      spec.logSumExp === true ? tensor(dtypes.f32, [sizes.b, sizes.h, sizes.s]) : undefined,
    window: windowOf(spec, location),
    softCap: numberOf("softCap", spec.softCap, (value) => value > 0, "more than 0", location),
    scale: numberOf("scale", spec.scale, () => true, "a number", location),
  };
}

function axis({ shape }: TensorSpec, index: number): Size {
  return shape[index] ?? 1;
}

function operandOf(
  name: string,
  given: unknown,
  usual: readonly Size[],
  formats: readonly DType[],
  location: Location,
): TensorSpec {
  const spec = givenArray(name, "pagedAttention", given, usual, location);
  if (!formats.includes(spec.dtype))
    throw refused(
      "TW9901",
      `${name} of pagedAttention has a format that it does not take`,
      formats.map((dtype) => dtype.name).join(", "),
      spec.dtype.name,
      location,
    );
  requireRows(name, "pagedAttention", spec, location);
  if (spec.shape.length === usual.length) return spec;
  throw refused(
    "TW9902",
    `${name} of pagedAttention has another shape`,
    shapeText(usual),
    shapeText(spec.shape),
    location,
  );
}

type Operands = { readonly [N in "q" | "k" | "v" | "table" | "lengths"]: TensorSpec };

function requireTogether({ q, k, v, table, lengths }: Operands, location: Location): void {
  if (k.dtype !== v.dtype || (k.dtype.bits === 16 && k.dtype !== q.dtype))
    throw refused(
      "TW9901",
      "pagedAttention takes pages of one format, that of q or FP8",
      `k and v of ${q.dtype.name}, f8e4m3fn or f8e5m2`,
      `k of ${k.dtype.name} and v of ${v.dtype.name}`,
      location,
    );
  const equal: readonly (readonly [string, Size, Size])[] = [
    ["q and k differ in d", axis(q, 3), axis(k, 3)],
    ["k and v differ in pages", axis(k, 0), axis(v, 0)],
    ["k and v differ in the size of pages", axis(k, 1), axis(v, 1)],
    ["k and v differ in heads", axis(k, 2), axis(v, 2)],
    ["q and table differ in b", axis(q, 0), axis(table, 0)],
    ["q and lengths differ in b", axis(q, 0), axis(lengths, 0)],
  ];
  const wrong = equal.find(([, left, right]) => !sameSize(left, right));
  if (wrong !== undefined)
    throw refused(
      "TW9902",
      `the operands of pagedAttention do not fit: ${wrong[0]}`,
      "q of [b, s, h, d], k of [pages, size, kv, d], v of [pages, size, kv, e], table of [b, most], lengths of [b]",
      [q, k, v, table, lengths].map(({ shape }) => shapeText(shape)).join(", "),
      location,
    );
}

function outputFormat(dtype: DType, location: Location): DType {
  const formats = [...computed, dtypes.f32];
  if (formats.includes(dtype)) return dtype;
  throw refused(
    "TW9901",
    "pagedAttention has no such result",
    formats.map(({ name }) => name).join(", "),
    optionText(dtype),
    location,
  );
}

function windowOf({ causal, window = {} }: PagedAttentionSpec, location: Location): PagedWindow {
  const named = ["left", "right"];
  requireKnownOptions("the window of pagedAttention", window, named, "TW1033", location);
  const { left, right } = window;
  for (const side of [left, right])
    if (side !== undefined && (!Number.isSafeInteger(side) || side < 0 || side >= 2 ** 30))
      throw refused(
        "TW9902",
        "pagedAttention has no such window",
        "{ left, right } of whole numbers from 0 to 2 ** 30 - 1; a side that is left out has no end",
        optionText(side),
        location,
      );
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
  const message = `pagedAttention has no such ${name}`;
  throw refused("TW9902", message, expected, optionText(given), location);
}
