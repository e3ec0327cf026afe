/**
 * Which waits must close a group first. The language's `waitGroup()` waits for every copy into global memory; the hardware's only for those of groups:
 *
 *   copyAsync(tile, out)           cp.async.bulk … .bulk_group
 *   waitGroup()                    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0
 *
 * Where each copy is in a group by then, nothing is added. A group that is empty on some way to the wait is over at once.
 */
import type { AnyOp, Kernel, Region } from "../../../ir/node.ts";
import { isEngineCopy } from "../../../ir/ops/asynchronous.ts";
import { traitsOf } from "../../../ir/traits.ts";
import { regionList } from "../../../ir/traverse.ts";
import { onceForEach } from "../../../support/memo.ts";

/** Whose copies may be in no group: those of whole threads, those of warps on their own. */
interface Open {
  readonly thread: boolean;
  readonly warps: boolean;
}

const none: Open = { thread: false, warps: false };

function either(left: Open, right: Open): Open {
  return { thread: left.thread || right.thread, warps: left.warps || right.warps };
}

class Walk {
  readonly waits = new Set<AnyOp>();

  region(region: Region, before: Open, own: keyof Open): Open {
    return region.ops.reduce((open, op) => this.#op(op, open, own), before);
  }

  #op(op: AnyOp, open: Open, own: keyof Open): Open {
    if (op.kind === "copy_async") {
      const leaves = op.operands.barrier === undefined && isEngineCopy(op.attributes);
      return leaves ? { ...open, [own]: true } : open;
    }
    if (op.kind === "commit_group") return { ...open, [own]: false };
    if (op.kind === "wait_group") {
      if (op.attributes.pending > 0) return open;
      // A thread waits for copies of its warps, too.
      const awaited = own === "thread" ? open : { ...none, [own]: open[own] };
      if (awaited.thread || awaited.warps) this.waits.add(op);
      return own === "thread" ? none : { ...open, [own]: false };
    }
    const regions = regionList(op);
    if (regions.length === 0) return open;
    const inner = op.kind === "warps" ? "warps" : own;
    const runs = traitsOf(op).regions;
    if (runs === "once" || runs === "each warp")
      return regions.reduce((before, region) => this.region(region, before, inner), open);
    const after = regions.reduce(
      (joined, region) => either(joined, this.region(region, open, inner)),
      open,
    );
    if (runs !== "repeat") return after;
    return regions.reduce(
      (joined, region) => either(joined, this.region(region, after, inner)),
      after,
    );
  }
}

/** The waits of a placed kernel before which copies may be in no group. */
export const closingWaits = onceForEach(({ body }: Kernel): ReadonlySet<AnyOp> => {
  const walk = new Walk();
  walk.region(body, none, "thread");
  return walk.waits;
});
