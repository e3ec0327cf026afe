/**
 * The stage that chooses the instruction of every `dot`, before anything has a place. A load that wgmma stands for goes: the
 * instruction reads the window when the dot runs.
 *
 *   %3 = load %1                      %5 = dot %1, %2 {instruction = wgmma}
 *   %4 = load %2
 *   %5 = dot %3, %4
 *
 * Factors that mma.sync takes in another format only, which has all their numbers, are converted before it:
 *
 *   %5 = dot %3, %4                   %6 = cast %3 {f16}
 *                                     %7 = cast %4 {f16}
 *                                     %5 = dot %6, %7 {instruction = mma.sync}
 *
 * For wgmma no other op may write, wait or meet between the load and the dot. Whether the window can be stored as wgmma reads it comes
 * out when layouts are solved for: where it cannot, the placement refuses the instruction, with the reason, and selects again.
 */
import { changedOp, makeOp } from "../../ir/make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../../ir/node.ts";
import { countUses, nextValueId } from "../../ir/rewrite/analysis.ts";
import { changeBody, changeOps, changeRegions } from "../../ir/rewrite/substitute.ts";
import { traitsOf } from "../../ir/traits.ts";
import { regionList, withOperands } from "../../ir/traverse.ts";
import { tileType } from "../../ir/types.ts";
import type { Target } from "../../targets/target.ts";
import { parseSharedLayout } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { swizzleCandidates } from "../model/swizzle-candidates.ts";
import {
  mmaFormat,
  mmaProblem,
  operandProblem,
  tileOf,
  warpGrid,
  tensorShapeProblem,
  wgmmaShapeProblem,
} from "../model/product-instructions.ts";
import type { Product } from "../model/product-instructions.ts";
import type { Windows } from "../model/windows.ts";
import {
  productInstructions,
  tensorMemoryInstruction,
} from "../../targets/product-instructions.ts";

/** Why a product that tensor memory has is made by fragments all the same (`lower/tensor-products.ts`). */
const aloneProblem =
  "no loop carries its sum, and to store factors and wait takes longer than fragments do, or finds no room";

/** Products that must do without wgmma, by their results, with the reason. */
export type Refusals = ReadonlyMap<Value, string>;

/** A kernel whose products have instructions, and why they have them. */
export interface Selected {
  readonly kernel: Kernel;
  readonly products: ReadonlyMap<Op<"dot">, Product>;
}

/** Factors, with the same in the format in which mma.sync takes them. */
type Converted = ReadonlyMap<Value, Value>;

interface Surroundings {
  /** Of the kernel as it was traced. */
  readonly windows: Windows;
  readonly target: Target;
  readonly refused: Refusals;
}

export function selectInstructions(kernel: Kernel, surroundings: Surroundings): Selected {
  const selection = new Selection(kernel, surroundings);
  const body = selection.region(kernel.body, kernel.warps);
  return { kernel: changeBody(kernel, body), products: selection.products };
}

class Selection {
  readonly products = new Map<Op<"dot">, Product>();
  readonly #windows: Windows;
  readonly #target: Target;
  readonly #refused: Refusals;
  readonly #uses: ReadonlyMap<Value, number>;
  /** Loads that are not made, with the window that they would have loaded. */
  readonly #read = new Map<Value, Value>();
  #nextId: number | undefined;

  readonly #kernel: Kernel;

  constructor(kernel: Kernel, { windows, target, refused }: Surroundings) {
    this.#kernel = kernel;
    this.#windows = windows;
    this.#target = target;
    this.#refused = refused;
    this.#uses = countUses(kernel.body);
  }

  /** `outer` are factors that were converted before the region. */
  region(region: Region, warps: number, outer: Converted = new Map()): Region {
    const fresh = new Map<Value, Op<"load">>();
    const converted = new Map(outer);
    const ops = region.ops.flatMap((op) => {
      if (op.kind === "scaled_dot") return this.#scaled(op, warps);
      if (op.kind === "dot") return this.#chosen(op, fresh, warps, converted);
      if (op.kind === "load" && isWhole(op)) for (const result of op.results) fresh.set(result, op);
      const { may } = traitsOf(op);
      if (may !== "anything" && may !== "drop") fresh.clear();
      if (regionList(op).length === 0) return op;
      return changeRegions(op, (inner) => {
        return op.kind === "warps" ? this.region(inner, 1) : this.region(inner, warps, converted);
      });
    });
    const made = ops.filter(
      ({ results: [result] }) => result === undefined || !this.#read.has(result),
    );
    return changeOps(region, made);
  }

  /** The product with its instruction, reading windows in place of the loads that it stands for, after its conversions. */
  #chosen(
    op: Op<"dot">,
    fresh: ReadonlyMap<Value, Op<"load">>,
    warps: number,
    converted: Map<Value, Value>,
  ): readonly AnyOp[] {
    const product = this.#choose(op, fresh, warps);
    for (const side of product.reads) {
      const load = fresh.get(op.operands[side]);
      if (load !== undefined) this.#read.set(op.operands[side], load.operands.ref);
    }
    const reading = withOperands(op, (value) => this.#read.get(value) ?? value);
    const conversions =
      product.instruction === "mma.sync"
        ? [op.operands.left, op.operands.right].flatMap((factor) =>
            this.#conversion(op, factor, converted),
          )
        : [];
    const multiplied =
      product.instruction === "mma.sync"
        ? withOperands(reading, (value) => converted.get(value) ?? value)
        : reading;
    const attributes = Object.freeze({ ...op.attributes, ...attributesOf(product) });
    const chosen = changedOp(multiplied, { attributes }) as Op<"dot">;
    this.products.set(chosen, product);
    return [...conversions, chosen];
  }

  /** A product with scales, shared out to the warps that there are. */
  #scaled(op: Op<"scaled_dot">, most: number): AnyOp {
    const { rows, columns } = warpGrid(op, most);
    const warps = Object.freeze([rows, columns]);
    return changedOp(op, { attributes: Object.freeze({ ...op.attributes, warps }) });
  }

  /** The conversion of a factor to the format in which mma.sync takes it, unless it is there. */
  #conversion(op: Op<"dot">, factor: Value, converted: Map<Value, Value>): readonly AnyOp[] {
    const { dtype: from, shape } = tileOf(factor);
    const dtype = mmaFormat(factor);
    if (dtype === from || converted.has(factor)) return [];
    const id = this.#nextId ?? nextValueId(this.#kernel);
    this.#nextId = id + 1;
    const result = Object.freeze({ id, type: tileType(dtype, shape) });
    converted.set(factor, result);
    const parts = { location: op.location, operands: { source: factor }, attributes: { dtype } };
    return [makeOp("cast", { ...parts, results: [result] })];
  }

  #choose(op: Op<"dot">, fresh: ReadonlyMap<Value, Op<"load">>, warps: number): Product {
    const { left, right } = op.operands;
    const [result] = op.results;
    const refusal = result && this.#refused.get(result);
    const why = refusal ?? wgmmaShapeProblem(op, this.#target, warps);
    const rightProblem = this.#loadProblem(right, "right", fresh, warps);
    if (why === undefined && rightProblem === undefined) {
      const shared = this.#loadProblem(left, "left", fresh, warps) === undefined;
      return {
        instruction: productInstructions.wgmma.name,
        reads: shared ? ["left", "right"] : ["right"],
        reason: shared
          ? "both operands are windows of shared memory"
          : "the right operand is a window of shared memory",
      };
    }
    const notWgmma = why ?? `its right operand ${rightProblem}`;
    const notMma = mmaProblem(op);
    const tensor = tensorMemoryInstruction(this.#target);
    const reason =
      tensor?.factors.includes(mmaFormat(right).name) !== true
        ? `no wgmma: ${notWgmma}`
        : `no ${tensor.name}: ${tensorShapeProblem(op, this.#target, warps) ?? aloneProblem}`;
    return notMma === undefined
      ? { instruction: "mma.sync", reads: [], warps: warpGrid(op, warps), reason }
      : { instruction: "fma", reads: [], reason: `${reason}; no mma.sync: ${notMma}` };
  }

  /** Why a value is not a window of shared memory that wgmma could read itself. */
  #loadProblem(
    value: Value,
    side: "left" | "right",
    fresh: ReadonlyMap<Value, Op<"load">>,
    warps: number,
  ): string | undefined {
    const definition = this.#windows.definitions.get(value);
    if (definition?.kind !== "load") return "is computed in registers";
    const window = this.#windows.of(definition.operands.ref);
    if (window.space !== "smem") return "is not loaded from shared memory";
    if (!fresh.has(value)) return "may have been overwritten since it was loaded";
    if ((this.#uses.get(value) ?? 0) > 1) return "is used elsewhere too";
    const found = this.#choices(window.root).map((layout) =>
      operandProblem(window, layout, side, warps),
    );
    return found.includes(undefined)
      ? undefined
      : `lies in shared memory where ${found[0] ?? "nothing fits"}`;
  }

  /** How an allocation may be stored. */
  #choices(root: Value): readonly SharedLayout[] {
    const op = this.#windows.definitions.get(root);
    if (op?.kind !== "alloc" && op?.kind !== "union_member") return [];
    const { layout, shape, dtype } = op.attributes;
    if (layout !== undefined) return [parseSharedLayout(layout)];
    return swizzleCandidates(shape.map(Number), dtype.bits);
  }
}

/** Whether a load takes its window as it is. */
function isWhole({ operands: { indices, where, fill } }: Op<"load">): boolean {
  return indices.length === 0 && where === undefined && fill === undefined;
}

function attributesOf(product: Product): Partial<Op<"dot">["attributes"]> {
  const { instruction } = product;
  if (product.instruction !== "mma.sync") return { instruction };
  const { rows, columns } = product.warps;
  return { instruction, warps: Object.freeze([rows, columns]) };
}
