/**
 * Windows that must not leave what they were cut from: every window of shared memory, and every index. Where the
 * kernel's `guard` says so, it asks before it accesses memory through the window, and traps:
 *
 *   b: smem [2112]     b.at(slice(s, 64)).load()          setp.gt.u32 %p0, %s, 2048;   @%p0 trap;
 *   x: gmem [n, 64]    x.at(row).load(), row loaded       setp.gt.u32 %p0, %row, %last;  @%p0 trap;
 *
 * As unsigned numbers what lies before 0 is behind the end. It is the access that asks: a window that nobody
 * uses may lie anywhere, as on the simulator. What was asked before on every way to the op is not asked again.
 */
import type { AnyOp } from "../../../ir/node.ts";
import { accessesOf } from "../../../ir/traits.ts";
import type { Register } from "../../module.ts";
import { integer } from "../../operands.ts";
import type { EmitContext } from "../context.ts";
import type { RequiredBound as AnyRequiredBound } from "../../../layout/access/window.ts";
import type { Position, RefValue } from "../values.ts";
import { indexRegister } from "./positions.ts";

type RequiredBound = AnyRequiredBound<Position>;

/** What is certain at a place in the code: an inner region knows what the outer one does. */
export class AskedBounds {
  readonly #outer: AskedBounds | undefined;
  readonly #own = new Set<RequiredBound>();

  constructor(outer?: AskedBounds) {
    this.#outer = outer;
  }

  has(bound: RequiredBound): boolean {
    return this.#own.has(bound) || (this.#outer?.has(bound) ?? false);
  }

  add(bound: RequiredBound): void {
    this.#own.add(bound);
  }
}

/** Traps where a window that the op accesses is not inside. */
export function requireInside(context: EmitContext, op: AnyOp): void {
  const { code, asked } = context;
  for (const { value } of accessesOf(op)) {
    if (value.type.kind !== "ref") continue;
    for (const bound of requiredOf(context.ref(value))) {
      if (asked.has(bound)) continue;
      asked.add(bound);
      const outside = isOutside(context, bound);
      code.guarded(outside, () => {
        code.emit("trap", [], "the window is not inside");
      });
    }
  }
}

function requiredOf(ref: RefValue): readonly RequiredBound[] {
  return ref.kind === "reshaped" ? [...ref.required, ...requiredOf(ref.source)] : ref.required;
}

function isOutside(context: EmitContext, { start, count, size }: RequiredBound): Register {
  const { code } = context;
  const first = indexRegister(context, start);
  if (typeof size === "number")
    return code.make("pred", "setp.gt.u32", first, integer(size - count));
  if (count !== 1) throw new Error("windows of shared memory have known sizes");
  return code.make("pred", "setp.ge.u32", first, context.size(size));
}
