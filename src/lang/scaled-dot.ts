/**
 * Products of tiles whose elements share scales in blocks along k: MXFP8, MXFP6, MXFP4, NVFP4 and mixtures of them.
 *
 *   a [m, k]   aScale [m, k / block]        b [k, n]   bScale [n, k / block]        Σ a · aScale · b · bScale
 *
 * Elements times scales of 8 bits are numbers of bf16, down to its smallest one, 2^-133: tiles become bf16 in registers, and tensor cores sum them in f32. An operand
 * without scales is converted as it is.
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import { shapeText } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { dot } from "./create.ts";
import { Tile } from "./tile.ts";

/** Options of `scaledDot`. */
export interface ScaledDotOptions {
  /** Sums that the product is added to. */
  readonly accumulator?: Tile<"f32">;
}

/** A tile with its scales, or without. */
export type ScaledTile = Tile | readonly [elements: Tile, scales: Tile];

const elementNames: readonly DTypeName[] = [
  ...(["f8e4m3fn", "f8e5m2", "f6e2m3fn", "f6e3m2fn", "f4e2m1fn", "bf16"] as const),
];
const scaleNames: readonly DTypeName[] = ["f8e8m0fnu", "f8e4m3fn"];

/** The product of tiles [m, k] and [k, n] with scales [m, k / block] and [n, k / block]. */
export function scaledDot(
  left: ScaledTile,
  right: ScaledTile,
  options: ScaledDotOptions = {},
): Tile<"f32"> {
  const location = captureLocation();
  requireKnownOptions("scaledDot", options, ["accumulator"], "TW1033", location);
  const [a, b] = [partsOf("left", left, 1, location), partsOf("right", right, 0, location)];
  return atLocation(location, () => {
    const factors = a.scales && spread(a.scales, a.elements.shape[1] ?? 1);
    const turned = b.scales && spread(b.scales, b.elements.shape[0] ?? 1).transpose();
    const product = { ...options, dtype: dtypes.f32 };
    return dot(times(a.elements, factors), times(b.elements, turned), product);
  });
}

function times(elements: Tile, factors: Tile | undefined): Tile<"bf16"> {
  const numbers = elements.cast(dtypes.bf16) as Tile<"bf16">;
  return factors === undefined ? numbers : (numbers.mul(factors as Tile<"bf16">) as Tile<"bf16">);
}

/** Each scale of a row as often as its block has elements: [rows, blocks] to [rows, k]. */
function spread(scales: Tile, k: number): Tile {
  const [rows = 1, blocks = 1] = scales.shape;
  const block = k / blocks;
  return (scales.cast(dtypes.bf16) as Tile)
    .reshape([rows, blocks, 1])
    .broadcastTo([rows, blocks, block])
    .reshape([rows, k]) as Tile;
}

interface Parts {
  readonly elements: Tile;
  readonly scales: Tile | undefined;
}

function isTile(value: unknown): value is Tile {
  return value instanceof Tile;
}

function partsOf(side: string, given: unknown, alongK: 0 | 1, location: Location): Parts {
  const pair: readonly unknown[] = Array.isArray(given) ? given : [given];
  const [elements, scales] = pair;
  const isPair = !Array.isArray(given) || pair.length === 2;
  if (!isPair || !isTile(elements) || !(scales === undefined || isTile(scales)))
    throw new TilewrightError({
      code: "TW2002",
      message: `the ${side} operand of scaledDot is no tile with its scales`,
      location,
      expected: "a tile, or [elements, scales]",
      found: Array.isArray(given) ? `a list of ${pair.length}` : typeof given,
    });
  requireFormat(`elements of the ${side} operand`, elements, elementNames, location);
  if (scales === undefined) return { elements, scales };
  requireFormat(`scales of the ${side} operand`, scales, scaleNames, location);
  const [k = 0, rows = 0] = [elements.shape[alongK], elements.shape[1 - alongK]];
  const [own = 0, blocks = 0] = scales.shape;
  const fits = elements.shape.length === 2 && scales.shape.length === 2;
  if (fits && own === rows && blocks > 0 && k % blocks === 0) return { elements, scales };
  throw new TilewrightError({
    code: "TW2004",
    message: `the scales of the ${side} operand of scaledDot do not fit its elements`,
    location,
    expected: `[${rows}, blocks], of which as many divide ${k}`,
    found: shapeText(scales.shape),
    remedy:
      "give a row of scales for each row of the left operand, or each column of the right one",
  });
}

function requireFormat(
  what: string,
  { dtype }: Tile,
  names: readonly DTypeName[],
  location: Location,
): void {
  if (names.includes(dtype.name)) return;
  throw new TilewrightError({
    code: "TW2003",
    message: `scaledDot takes no ${what} in ${dtype.name}`,
    location,
    expected: names.join(", "),
    found: dtype.name,
    remedy: "multiply the sums of dot by scales of f32 instead",
  });
}
