/** How many arrivals of the hardware one arrival of the language is, for each barrier of a kernel. */
import type { Kernel, Region, Value } from "../../ir/node.ts";
import { regionList } from "../../ir/traverse.ts";

export class Arrivals {
  readonly #byWarps = new Set<Value>();
  readonly #warps: number;

  constructor({ body, warps }: Kernel) {
    this.#warps = warps;
    this.#visit(body);
  }

  /** The warps of a program thread where one arrives with its lanes, each warp for itself; else 1. */
  scaleOf(barrier: Value): number {
    return this.#byWarps.has(barrier) ? this.#warps : 1;
  }

  #visit(region: Region): void {
    for (const op of region.ops) {
      if (op.kind === "barrier_arrive") this.#byWarps.add(op.operands.barrier);
      const { barrier } = op.kind === "copy_async" ? op.operands : { barrier: undefined };
      if (op.kind === "copy_async" && barrier !== undefined && op.attributes.by !== "tensor")
        this.#byWarps.add(barrier);
      // Warps on their own arrive one by one, with whatever count the others need.
      if (op.kind !== "warps") for (const inner of regionList(op)) this.#visit(inner);
    }
  }
}
