/** The order of lanes is complete: ordering twice adds nothing, and nothing that was added can be left out. */
import { describe, expect, test } from "vitest";
import { exampleKernels } from "../../../test/example-kernels.ts";
import { pipelinedDot, sortedRows } from "../../../test/support/lowered-kernels.ts";
import { flashAttention } from "../../../test/support/placed-kernels.ts";
import type { AnyOp, Kernel, Region } from "../../ir/node.ts";
import { printKernel } from "../../ir/printer.ts";
import { changeBody, changeOps, changeRegions } from "../../ir/rewrite/substitute.ts";
import { walkOps } from "../../ir/traverse.ts";
import { f32 } from "../../formats/dtype.ts";
import {
  tensor,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  kernel as kernelOf,
  smem,
  when,
} from "../../lang/index.ts";
import type { KernelDefinition, Tile } from "../../lang/index.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../stages.ts";
import { insertBarriers, verifyBarriers } from "./index.ts";

const kernels: { readonly [name: string]: KernelDefinition } = {
  ...exampleKernels,
  dot: pipelinedDot(),
  sort: sortedRows(),
  attention: flashAttention(),
};

const ordered = Object.entries(kernels).map(
  ([name, { kernel }]) => [name, place(kernel, targets.sm_90a).kernel] as const,
);

function isAdded(op: AnyOp): boolean {
  if (op.kind === "proxy_fence") return op.attributes.reason !== undefined;
  const kinds = [
    "lane_barrier",
    "barriers_ready",
    "products_wait",
    "cluster_barrier",
    "copies_read",
  ];
  return kinds.includes(op.kind);
}

function added({ body }: Kernel): readonly AnyOp[] {
  const found: AnyOp[] = [];
  walkOps(body, (op) => {
    if (isAdded(op)) found.push(op);
  });
  return found;
}

function without(kernel: Kernel, dropped: (op: AnyOp) => boolean): Kernel {
  const visit = (region: Region): Region =>
    changeOps(
      region,
      region.ops.filter((op) => !dropped(op)).map((op) => changeRegions(op, visit)),
    );
  return changeBody(kernel, visit(kernel.body));
}

function withScales(kernel: Kernel, change: (scale: number) => number): Kernel {
  const visit = (region: Region): Region =>
    changeOps(
      region,
      region.ops.map((op) => {
        if (op.kind !== "alloc_barrier") return changeRegions(op, visit);
        const { scale = 0 } = op.attributes;
        return { ...op, attributes: { ...op.attributes, scale: change(scale) } };
      }),
    );
  return changeBody(kernel, visit(kernel.body));
}

test("barriers count the arrivals of warps, and a TMA copy once", () => {
  const scales: (number | undefined)[] = [];
  const [, kernel] = ordered.find(([name]) => name === "gemm") ?? expect.fail();
  walkOps(kernel.body, (op) => {
    if (op.kind === "alloc_barrier") scales.push(op.attributes.scale);
  });
  expect(new Set(scales)).toEqual(new Set([1, 4]));
  expect(() => verifyBarriers(withScales(kernel, (scale) => 5 - scale))).toThrow("of the hardware");
});

/** What the last ops of a kernel are whose blocks read each other's memory, and end as they are told. */
function lastOps(
  ending: (store: (found?: Tile<"f32">) => void, other: () => Tile<"f32">) => void,
): readonly string[] {
  const { kernel } = kernelOf(
    {
      name: "peers",
      grid: { part: 2 },
      cluster: { part: 2 },
      inputs: { x: tensor(f32, [2, 64]) },
      outputs: { out: tensor(f32, [2, 64]) },
      scratch: { own: smem(f32, [64]) },
    },
    ({ part, x, out, own }) => {
      own.store(x.at(part).load());
      clusterSync();
      const other = own.peer(part.xor(1));
      const found = other.load();
      ending(
        (last = found) => {
          out.at(part).store(last);
        },
        () => other.load(),
      );
    },
  );
  const { ops } = place(kernel, targets.sm_90a).kernel.body;
  return ops.slice(-4, -1).map(({ kind }) => kind);
}

test("blocks of a cluster meet once at the end, by the program's last line or by what ordering adds", () => {
  const last = lastOps((store) => {
    store();
    clusterSync();
  });
  expect(last.slice(-2)).toEqual(["cluster_arrive", "cluster_wait"]);
  // A store behind it, though only to global memory, might as well be to a peer's.
  const behind = lastOps((store) => {
    clusterSync();
    store();
  });
  expect(behind.at(-1)).toBe("cluster_barrier");
});

test("who has arrived may do what reaches into no other block before the program's last line waits", () => {
  const early = lastOps((store) => {
    clusterArrive();
    store();
    clusterWait();
  });
  expect(early.slice(-2)).toEqual(["store", "cluster_wait"]);
  const reaching = lastOps((store, other) => {
    clusterArrive();
    store(other());
    clusterWait();
  });
  expect(reaching.at(-1)).toBe("cluster_barrier");
  const inBoth = lastOps((store, other) => {
    clusterArrive();
    const tell = (): void => {
      store(other());
    };
    when(clusterRank("part").eq(0), tell, tell);
    clusterWait();
  });
  expect(inBoth.at(-1)).toBe("cluster_barrier");
  const some = lastOps((store) => {
    when(clusterRank("part").eq(0), clusterArrive);
    store();
    clusterWait();
  });
  expect(some.at(-1)).toBe("cluster_barrier");
});

describe.each(ordered)("%s", (_, kernel) => {
  test("is in order, and ordering it again adds nothing", () => {
    verifyBarriers(kernel);
    const bare = without(kernel, isAdded);
    expect(printKernel(insertBarriers(bare))).toBe(printKernel(kernel));
    expect(added(insertBarriers(kernel))).toHaveLength(added(kernel).length);
  });

  test("needs each op that ordering has added", () => {
    for (const op of added(kernel)) {
      const less = without(kernel, (each) => each === op);
      expect(() => verifyBarriers(less), `${op.kind} ${JSON.stringify(op.attributes)}`).toThrow();
    }
  });
});
