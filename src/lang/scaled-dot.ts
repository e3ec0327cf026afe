/**
 * Products of tiles whose elements share scales in blocks along k: MXFP8, MXFP6, MXFP4, NVFP4 and mixtures of them.
 *
 *   a [m, k]   aScale [m, k / block]        b [k, n]   bScale [n, k / block]        Σ a · aScale · b · bScale
 *
 * sm_120a and sm_121a have instructions for both operands with scales of one format: FP8, FP6 and FP4 with e8m0 for each 32, and FP4 with e4m3 for each 16. Elsewhere
 * tiles become bf16 in registers, of which elements times scales of 8 bits are numbers, down to its smallest one, 2^-133, and tensor cores sum them in f32. An
 * operand without scales is converted as it is.
 */
import { dtypes } from "../formats/dtype.ts";
import type { DTypeName } from "../formats/dtype.ts";
import type { Op, Value } from "../ir/node.ts";
import { shapeText } from "../ir/size.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { atLocation, captureLocation } from "../support/location.ts";
import type { Location } from "../support/location.ts";
import { requireKnownOptions } from "../support/options.ts";
import { hasInstruction, productInstructions } from "../targets/product-instructions.ts";
import { scaledFragmentProblem, scaledKind } from "../targets/scaled-products.ts";
import { tracedTarget } from "./by-target.ts";
import { Tile } from "./tile.ts";
import { emitOrigin } from "./trace.ts";
import { useValue } from "./traced.ts";

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
  const choice = chosenForm(a, b, location);
  if (choice !== undefined && "block" in choice) return multiplied(choice, options, location);
  return atLocation(location, () => {
    const factors = a.scales && spread(a.scales, a.elements.shape[1] ?? 1);
    const turned = b.scales && spread(b.scales, b.elements.shape[0] ?? 1).transpose();
    const [left, right] = [times(a.elements, factors), times(b.elements, turned)];
    const { accumulator } = options;
    const operands = {
      ...{ left: useValue(left, location), right: useValue(right, location) },
      accumulator: accumulator && useValue(accumulator, location),
    };
    const why = choice === undefined ? {} : { unscaled: choice.unscaled };
    const attributes = { dtype: dtypes.f32, precision: "native", ...why } as const;
    return new Tile(emitOrigin("dot", operands, attributes, location));
  });
}

/** Operands as instructions of the target take them. */
interface NativeForm {
  readonly block: number;
  readonly operands: Pick<
    Op<"scaled_dot">["operands"],
    "left" | "right" | "leftScales" | "rightScales"
  >;
}

/** Why a target that multiplies with scales does not do so here. */
interface Unscaled {
  readonly unscaled: string;
}

/** The form in which the target makes the product, or why it does not; undefined of targets that make none. */
function chosenForm(a: Parts, b: Parts, location: Location): NativeForm | Unscaled | undefined {
  const instruction = productInstructions["mma.sync.block_scale"];
  const target = tracedTarget();
  const other = productInstructions.tcgen05;
  if (!hasInstruction(target, instruction))
    return hasInstruction(target, other)
      ? { unscaled: `${other.name} takes scales in tensor memory alone` }
      : undefined;
  const found = nativeForm(a, b, location);
  return typeof found === "string" ? { unscaled: found } : found;
}

function nativeForm(a: Parts, b: Parts, location: Location): NativeForm | string {
  if (a.scales === undefined || b.scales === undefined) return "only one operand has scales";
  const k = a.elements.shape[1] ?? 0;
  const [block, blockB] = [a.scales, b.scales].map((each) => k / (each.shape[1] ?? 1));
  if (block === undefined || block !== blockB || a.scales.dtype !== b.scales.dtype)
    return "the scales of both operands are not alike";
  const [left, right] = [a.elements.dtype, b.elements.dtype];
  const kind = scaledKind(left, right, a.scales.dtype, block);
  if (kind === undefined)
    return `no instruction multiplies ${left.name} by ${right.name} with ${a.scales.dtype.name} for each ${block}`;
  const [m = 0, n = 0] = [a.elements.shape[0], b.elements.shape[1]];
  const problem = scaledFragmentProblem(kind, [m, n, k]);
  if (problem !== undefined) return problem;
  // FP4 beside other formats has a byte, as FP6 with the same exponents has it.
  const own = ({ elements }: Parts): Value =>
    kind.depth === 32 && elements.dtype.bits < 8
      ? useValue(elements.cast(dtypes.f6e2m3fn), location)
      : useValue(elements, location);
  const scales = {
    leftScales: useValue(a.scales, location),
    rightScales: useValue(b.scales, location),
  };
  return { block, operands: { left: own(a), right: own(b), ...scales } };
}

function multiplied(
  { block, operands }: NativeForm,
  { accumulator }: ScaledDotOptions,
  location: Location,
): Tile<"f32"> {
  const begun = accumulator && useValue(accumulator, location);
  const all = { ...operands, accumulator: begun };
  return new Tile(emitOrigin("scaled_dot", all, { block }, location));
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
