/**
 * Notes of what the placement knows: products that tensor cores do not make, accesses that are narrower than
 * they could be, tiles that lanes keep copies of, and conflicts of banks. What is said is worth a user's time:
 *
 *   | note     | where                                                     | unless                                        |
 *   |----------|-----------------------------------------------------------|-----------------------------------------------|
 *   | TW7501   | a dot of formats for tensor cores, by fma                 | exact f32 was asked for                       |
 *   | TW7516   | a dot by fragments of warps, where there is tensor memory |                                               |
 *   | TW7517   | a scaledDot of bf16, where instructions take scales       |                                               |
 *   | TW7502   | fewer than 16 bytes a lane, where a lane has 16 or more   | it fills its sectors and alignment is known   |
 *   | TW7503   | 32 or more registers a thread hold copies                   |                                               |
 *   | TW7504   | twice the wavefronts that would do, or more               |                                               |
 *   | TW7514   | `printLayout`                                             |                                               |
 *   | TW7512   | a copy by lanes that TMA would make           | its window can be written no other way        |
 */
import type { AnyOp, Op, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { definingOps } from "../../ir/rewrite/analysis.ts";
import { dimensionsOf, knownDivisor } from "../../ir/size.ts";
import type { Size } from "../../ir/size.ts";
import { walkOps } from "../../ir/traverse.ts";
import { typeText } from "../../ir/types.ts";
import type { RegisterLayout } from "../../layout/algebra/register-layout.ts";
import { replication } from "../../layout/algebra/register-layout.ts";
import { wordsPerLane } from "../../layout/algebra/vectors.ts";
import { contiguousAxis, globalAlignment, sectorUse } from "../../layout/model/access-cost.ts";
import { mmaBits, tileOf } from "../../layout/model/product-instructions.ts";
import { gatheredWindow } from "../../layout/model/gather-cost.ts";
import { windowsOf } from "../../layout/model/windows.ts";
import type { GlobalWindow } from "../../layout/model/windows.ts";
import type { Placement } from "../../layout/plan/place.ts";
import { bankUses, tileLayout } from "./bank-use.ts";
import type { AccessesOf } from "./emitted-accesses.ts";
import { distinctNotes } from "./note.ts";
import type { PerformanceNote } from "./note.ts";
import { codes } from "../../support/diagnostic-codes/index.ts";
import { tensorMemoryInstruction } from "../../targets/product-instructions.ts";

export function placementNotes(
  placement: Placement,
  accessesOf: AccessesOf,
): readonly PerformanceNote[] {
  return distinctNotes([
    ...productNotes(placement),
    ...narrowNotes(placement, accessesOf),
    ...copyNotes(placement),
    ...replicationNotes(placement),
    ...bankNotes(placement, accessesOf),
    ...layoutNotes(placement),
  ]);
}

/** Layouts that the program asks for, as they were chosen. */
function layoutNotes(placement: Placement): readonly PerformanceNote[] {
  const found: PerformanceNote[] = [];
  walkOps(placement.kernel.body, (op) => {
    if (op.kind !== "print_layout") return;
    const { source } = op.operands;
    const layout = placement.layouts.get(source);
    const { name = "the tile" } = op.attributes;
    const text = layout === undefined ? "in no registers" : layout.text;
    found.push(
      ...note(op, "TW7514", `${name}, ${typeText(source.type)}, lies as ${text}`, {
        because: "printLayout asks for it",
        remedy: "state another with layoutCast, or convert it with convertLayout",
      }),
    );
  });
  return found;
}

function productNotes({ products, target }: Placement): readonly PerformanceNote[] {
  const tensor = tensorMemoryInstruction(target);
  return [...products].flatMap(([op, { instruction, reason }]) => {
    const { unscaled } = op.attributes;
    if (unscaled !== undefined)
      return note(op, "TW7517", "this product with scales is made of bf16", {
        because: unscaled,
        remedy: codes.TW7517.remedy,
      });
    if (instruction !== "fma" && tensor?.factors.includes(tileOf(op.operands.right).dtype.name))
      return note(op, "TW7516", `this dot is computed by ${instruction}, not by ${tensor.name}`, {
        because: reason,
        remedy: codes.TW7516.remedy,
      });
    if (instruction !== "fma" || !suitsTensorCores(op)) return [];
    const depth = 256 / mmaBits(op);
    return note(op, "TW7501", `this dot is computed without tensor cores`, {
      because: reason,
      remedy: `make rows a multiple of 16, columns of 8 and the depth of ${depth}, by larger or padded tiles; the larger side may go on the left by transposing the product`,
    });
  });
}

/** Whether tensor cores multiply such formats at all, as precisely as was asked. */
function suitsTensorCores({ operands: { left, right }, attributes }: Op<"dot">): boolean {
  const formats = [tileOf(left).dtype, tileOf(right).dtype];
  return formats.every(
    ({ bits, name }) => bits <= 16 || name === "tf32" || attributes.precision === "tf32",
  );
}

const widestBytes = 16;

function narrowNotes(placement: Placement, accessesOf: AccessesOf): readonly PerformanceNote[] {
  const windows = windowsOf(placement.kernel);
  const names = parameterNames(placement);
  const found: PerformanceNote[] = [];
  walkOps(placement.kernel.body, (op) => {
    if (op.kind !== "load" && op.kind !== "store") return;
    const whole = windows.of(op.operands.ref);
    const layout = tileLayout(op, placement);
    if (whole.space !== "gmem" || layout === undefined || layout.kind === "splat") return;
    const window = gatheredWindow(whole, op);
    // Elements that are picked one by one lie wherever the indices say.
    if (op.operands.indices.length > 0 && contiguousAxis(window) === undefined) return;
    const widths = accessesOf(op).flatMap(({ kind, bytes }) =>
      kind.startsWith("global") && bytes !== undefined ? [bytes] : [],
    );
    const width = Math.max(...widths);
    const shape = window.axes.map(({ extent }) => Number(extent));
    const held = wordsPerLane(layout, shape, window.dtype.bits) * 4;
    if (widths.length === 0 || width >= widestBytes || held < widestBytes) return;
    const name = names.get(window.root) ?? "the array";
    const message = `${op.kind} ${op.kind === "load" ? "of" : "to"} ${name} moves ${width} bytes a thread at a time`;
    found.push(...whyNarrow(op, message, window, layout, width));
  });
  return found;
}

function whyNarrow(
  op: AnyOp,
  message: string,
  window: GlobalWindow,
  layout: RegisterLayout,
  width: number,
): readonly PerformanceNote[] {
  const bytes = window.dtype.bits / 8;
  const wanted = widestBytes / bytes;
  if (globalAlignment(window) * bytes <= width) {
    const culprit = unalignedStride(window, wanted);
    if (culprit === undefined)
      return note(op, "TW7502", message, {
        because: "the window is not known to begin at a multiple of 16 bytes",
        remedy: `let it begin at a multiple of ${wanted} elements, for instance a block's number times a block's size`,
      });
    return note(op, "TW7502", message, {
      because: `rows of ${sizeName(culprit)} elements need not begin at a multiple of 16 bytes`,
      remedy: strideRemedy(culprit, wanted),
    });
  }
  const share = sectorUse(layout, window, width);
  if (share >= 1) return [];
  return note(op, "TW7502", message, {
    because: `of each 32 bytes of memory that it touches it uses ${Math.round(32 * share)}: the tile lies in registers as another op needs it`,
    remedy:
      "store the tile to shared memory and copyAsync it, or layoutCast it to whole rows first",
  });
}

/** A stride whose divisor keeps accesses from being as wide as they could be. */
function unalignedStride(window: GlobalWindow, wanted: number): Size | undefined {
  return [...window.axes, ...window.dropped]
    .map(({ stride }) => stride)
    .find((stride) => stride !== undefined && stride !== 1 && knownDivisor(stride) % wanted !== 0);
}

function sizeName(size: Size): string {
  if (typeof size === "number") return `${size}`;
  return dimensionsOf(size)[0]?.name ?? "a size";
}

function strideRemedy(stride: Size, wanted: number): string {
  const [dimension] = dimensionsOf(stride);
  return dimension === undefined
    ? `pad rows to a multiple of ${wanted} elements, by strides`
    : `say what ${dimension.name} is a multiple of: dim("${dimension.name}", { multipleOf: ${wanted} })`;
}

/** Copies by lanes where the target has TMA. */
function copyNotes({ copies, target }: Placement): readonly PerformanceNote[] {
  if (!target.features.includes("tma")) return [];
  return [...copies].flatMap(([op, { method, pieces, reason, remedy }]) => {
    if (method === "tensor" || method === "bulk") return [];
    if (pieces >= widestBytes)
      return remedy === undefined
        ? []
        : note(op, "TW7512", "this copy is made by threads, which wait for it", {
            because: reason,
            remedy,
          });
    return note(op, "TW7502", `this copy is made by threads, ${pieces} bytes at a time`, {
      because: reason,
      remedy:
        remedy ??
        "let rows be multiples of 16 bytes (multipleOf of their dimension) and the window begin at one",
    });
  });
}

const fewCopies = 32;

function replicationNotes({ kernel, layouts }: Placement): readonly PerformanceNote[] {
  const makers = definingOps(kernel.body);
  return [...layouts].flatMap(([value, layout]) => {
    const op = makers.get(value);
    if (op === undefined || value.type.kind !== "tile" || layout.kind === "splat") return [];
    const { shape, dtype } = value.type;
    const copies = replication(layout);
    const words = wordsPerLane(layout, shape, dtype.bits);
    if (words - words / copies < fewCopies) return [];
    return note(op, "TW7503", `${copies} threads keep each element of what ${opName(op)} gives`, {
      because: `it takes ${words} registers a thread instead of ${Math.ceil(words / copies)}`,
      remedy: "take back a layoutCast beside it, or work on a smaller part of the tile",
    });
  });
}

function bankNotes(placement: Placement, accessesOf: AccessesOf): readonly PerformanceNote[] {
  return bankUses(placement, accessesOf).flatMap(({ op, wavefronts, ideal }) => {
    if (wavefronts < 2 * ideal) return [];
    return note(op, "TW7504", `${opName(op)} has conflicts of banks`, {
      because: `it takes ${wavefronts} wavefronts where ${ideal} would do`,
      remedy:
        "leave the layout of the buffer to the compiler, or state one with a wider swizzle; where rows are read and columns written, pad the rows",
    });
  });
}

function parameterNames({ kernel }: Placement): ReadonlyMap<Value, string> {
  return new Map(kernel.parameters.map(({ value, name }) => [value, name]));
}

function note(
  { location: { position } }: AnyOp,
  code: PerformanceNote["code"],
  message: string,
  { because, remedy }: Pick<PerformanceNote, "because" | "remedy">,
): readonly PerformanceNote[] {
  return [{ code, message, because, remedy, position }];
}
