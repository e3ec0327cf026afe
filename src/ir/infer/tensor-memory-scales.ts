/**
 * Inference for scales of blocks along k: which products take them, in atoms of 128 rows by 4 blocks, and how they are copied to tensor memory.
 *
 *   a [128, k] f8e4m3fn, b [k, n] f8e5m2      scales f8e8m0fnu, a row of k / 32 each         mxf8f6f4
 *   a [128, k] f4e2m1fn, b [k, n] f4e2m1fn    f8e8m0fnu for 32, or f8e4m3fn for 16           mxf4, mxf4nvf4
 */
import type { Op, Value } from "../node.ts";
import { scaledKind, scaledKinds, usualBlock } from "../../targets/scaled-products.ts";
import type { ScaledKind } from "../../targets/scaled-products.ts";
import { sameShape, shapeText } from "../size.ts";
import { refOf } from "../traverse.ts";
import { typeText } from "../types.ts";
import type { RefType, Type } from "../types.ts";
import { fail, refOperand, requireSpace, staticShape } from "./checks.ts";
import type { AnyDraft } from "./checks.ts";
import type { Draft, InferContext } from "./inference-input.ts";
import { requirePair } from "./block-pairs.ts";

/** The kind of a product; undefined where it has no scales. */
export function scaledKindOf({
  operands: { a, b, aScales },
  attributes,
}: Op<"tcgen05_mma">): ScaledKind | undefined {
  if (aScales === undefined) return undefined;
  const scales = refOf(aScales).dtype;
  const { block = usualBlock(scales.name) } = attributes;
  return scaledKind(refOf(a).dtype, refOf(b).dtype, scales, block);
}

interface Factors {
  readonly a: RefType;
  readonly b: RefType;
  readonly sums: RefType;
}

/** Both factors have scales, in a kind that there is. */
export function checkScaledProduct(draft: Draft<"tcgen05_mma">, { a, b, sums }: Factors): void {
  const { aScales, bScales } = draft.operands;
  const [m = 0, n = 0] = sums.shape.map(Number);
  const [k = 0] = b.shape.map(Number);
  if (aScales === undefined || bScales === undefined)
    return refuse(draft, "scales of both factors", "scales of one");
  const scales = refOperand(draft, "the scales of a", aScales).dtype;
  const { block = usualBlock(scales.name) } = draft.attributes;
  const kind = scaledKind(a.dtype, b.dtype, scales, block);
  if (kind === undefined)
    return refuse(
      draft,
      scaledKinds.map(kindText).join("; "),
      `${a.dtype.name} by ${b.dtype.name} with ${scales.name} for each ${block}`,
    );
  const { pair = false } = draft.attributes;
  const isHalved = pair && m === 64;
  if ((m !== 128 && !isHalved) || n > 256)
    return refuse(
      draft,
      "128 rows, or 64 in each block of a pair, and up to 256 columns",
      `sums of ${shapeText(sums.shape)}`,
    );
  requireWhole(draft, "the left factor", a, kind);
  requireWhole(draft, "the right factor", b, kind);
  checkScales(draft, "the scales of a", aScales, kind, [m, k]);
  // Either half of the columns has rows of its own.
  checkScales(draft, "the scales of b", bScales, kind, [isHalved ? 256 : n, k]);
}

function kindText({ factors, scales, block }: ScaledKind): string {
  return `${factors.join(", ")} with ${scales} for each ${block}`;
}

/** An instruction reads bytes of k where another factor has 8 bits. */
function requireWhole(draft: Draft<"tcgen05_mma">, role: string, type: RefType, kind: ScaledKind) {
  const { space, dtype } = type;
  const isNarrow = dtype.name.startsWith("f6") || dtype.bits < 8;
  if (kind.depth === 64 || !isNarrow || (space === "tmem" && dtype.bits === 8)) return;
  refuse(draft, `${role} of 8 bits`, typeText(type));
}

function refuse(draft: AnyDraft, expected: string, found: string): never {
  return fail(draft, "TW2308", "a product with scales that tcgen05Mma does not make", {
    expected,
    found,
  });
}

/** The scales of a factor: a row for each of its own, of 128 together, and a block for each `block` of k, of 4 together. */
function checkScales(
  draft: AnyDraft,
  name: string,
  value: Value,
  kind: ScaledKind,
  [rows, k]: readonly [rows: number, k: number],
): void {
  const type = refOperand(draft, name, value);
  requireSpace(draft, name, type, ["tmem"]);
  const shape = staticShape(draft, type);
  const wanted = [128 * Math.ceil(rows / 128), 4 * Math.ceil(k / kind.block / 4)];
  if (!sameShape(shape, wanted) || kind.scales !== type.dtype.name)
    fail(draft, "TW2308", `${name} do not fit a factor of ${rows} by ${k}`, {
      expected: `${kind.scales}, ${shapeText(wanted)}`,
      found: typeText(type),
    });
}

export function copyScales(draft: Draft<"tcgen05_copy">, context: InferContext): readonly Type[] {
  if (draft.attributes.pair === true) requirePair(draft, context);
  const source = refOperand(draft, "the source", draft.operands.source);
  const destination = refOperand(draft, "the destination", draft.operands.destination);
  requireSpace(draft, "the source", source, ["smem"]);
  requireSpace(draft, "the destination", destination, ["tmem"]);
  const [rows = 0, blocks = 0] = staticShape(draft, destination);
  const atoms = [
    [rows / 128, blocks / 4, 32, 16],
    ...(rows === 256 ? [[1, blocks / 4, 64, 16]] : []),
  ];
  const shape = staticShape(draft, source);
  if (source.dtype !== destination.dtype || !atoms.some((each) => sameShape(shape, each)))
    fail(draft, "TW2308", "tcgen05Copy of what are no scales of the destination", {
      expected: `${destination.dtype.name}, ${atoms.map(shapeText).join(", or in halves ")}`,
      found: typeText(source),
    });
  return [];
}
