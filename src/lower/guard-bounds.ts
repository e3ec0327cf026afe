/**
 * The stage that decides which bounds of a window and which indices threads test (`guard`), and how many bytes an instruction moves (`unit`).
 * Both follow from facts about indices, and are written into the kernel, so that the verifier can check them against the facts again and the
 * emitter has nothing to decide:
 *
 *   %7 = slice_ref %3 offsets(%6) {sizes = [1024], dropped = [], guard = ["0 below"]} : ref<gmem, f32, [1024]>
 *   %9 = load %7 {unit = "global 16 if whole"} : tile<f32, [1024], A>
 *
 * A copy that was to be made by `cp.async` becomes loads and stores where its two sides cannot move the same elements at once.
 */
import type { AnyOp, Kernel, Op, Region, Value } from "../ir/node.ts";
import { factsOf } from "../ir/range-analysis/index.ts";
import type { Facts } from "../ir/range-analysis/index.ts";
import {
  changeBody,
  changeEachOp,
  changeRegions,
  withAttributes,
} from "../ir/rewrite/substitute.ts";
import { countUses } from "../ir/rewrite/analysis.ts";
import type { AccessOp } from "../ir/indexed.ts";
import { pairedUnits, pairProblem } from "../layout/access/cp-async.ts";
import { testedIndexText, unprovedIndices } from "../layout/access/gathers.ts";
import { unprovedPlaces } from "../layout/access/indexed-barriers.ts";
import type { TileAccess } from "../layout/access/affine-access.ts";
import { accessOf, accessesByThreads, requestsOf } from "../layout/access/memory-accesses.ts";
import type { AccessSetting } from "../layout/access/memory-accesses.ts";
import { boundText } from "../layout/access/slice.ts";
import { unitsText, widestUnit } from "../layout/access/unit.ts";
import { unproved, WindowModel } from "../layout/access/window-model.ts";
import { windowOfAccess } from "../layout/access/window.ts";
import { walkedInside } from "./verify/walk.ts";
import type { Agents } from "./verify/walk.ts";

/** The placed kernel with its accesses bounded. */
export function guardBounds(kernel: Kernel): Kernel {
  const { placed } = kernel;
  if (placed === undefined) throw new Error(`${kernel.name} has not been placed`);
  const uses = countUses(kernel.body);
  const binder = new Binder(kernel, {
    target: placed.target,
    isUsed: (value) => uses.has(value),
  });
  const all = { threads: kernel.threads.length, warps: kernel.warps };
  return changeBody(kernel, binder.region(kernel.body, all));
}

class Binder {
  readonly #kernel: Kernel;
  readonly #facts: Facts;
  readonly #windows: WindowModel;
  readonly #guards = new Map<AnyOp, string[]>();
  readonly #setting: Omit<AccessSetting, "warps">;

  constructor(kernel: Kernel, setting: Omit<AccessSetting, "warps">) {
    this.#kernel = kernel;
    this.#setting = setting;
    this.#facts = factsOf(kernel);
    this.#windows = new WindowModel(kernel, this.#facts, (op) => {
      const guard: string[] = [];
      this.#guards.set(op, guard);
      return (stated) => {
        const sides = unproved(this.#facts, stated);
        if (sides.low || sides.high) guard.push(boundText(stated, sides));
        return sides;
      };
    });
  }

  region(region: Region, agents: Agents): Region {
    return changeEachOp(region, (op) => {
      const inner = changeRegions(op, (each) => this.region(each, walkedInside(op, agents)));
      if (op.kind === "slice_ref") return withAttributes(inner, { guard: this.#guardOf(op) });
      return this.#withPlaces(accessesByThreads(op) ? this.#access(op, agents) : inner);
    });
  }

  #guardOf(op: Op<"slice_ref">): readonly string[] {
    for (const result of op.results) this.#windows.of(result);
    return Object.freeze(this.#guards.get(op) ?? []);
  }

  #access(op: AnyOp, agents: Agents): AnyOp {
    const accesses = this.#accessesOf(op, agents.warps);
    const [first] = accesses;
    if (first === undefined) throw new Error(`${op.kind} accesses nothing`);
    const paired = op.kind === "copy_async" && op.attributes.by === "cp.async";
    const widest = accesses.map(widestUnit);
    const units = paired ? pairedUnits(widest) : widest;
    if (paired && pairProblem(accesses, units) !== undefined)
      return this.#access(withAttributes(op, { by: "plain" }), agents);
    const unit = unitsText(units, first.window.dtype.bits);
    return withAttributes(op, { ...this.#testedIndices(op), unit });
  }

  #accessesOf(op: AnyOp, warps: number): readonly TileAccess[] {
    const setting = { warps, ...this.#setting };
    const windowOf = (ref: Value) => windowOfAccess(op, this.#windows.of(ref));
    return requestsOf(op, setting, windowOf).map((request) =>
      accessOf(request, windowOf(request.ref), setting),
    );
  }

  /** The op with a guard where it may pick a barrier or counter that is not there. */
  #withPlaces(op: AnyOp): AnyOp {
    const guard = unprovedPlaces(op, this.#kernel, this.#facts).map(({ text }) => text);
    return guard.length === 0 ? op : withAttributes(op, { guard: Object.freeze(guard) });
  }

  /** Index tiles that may hold what is not inside their axis. */
  #testedIndices(op: AnyOp): { readonly guard?: readonly string[] } {
    if (!("indices" in op.operands)) return {};
    const guard = unprovedIndices(op as AccessOp, this.#facts).map(testedIndexText);
    return guard.length === 0 ? {} : { guard: Object.freeze(guard) };
  }
}
