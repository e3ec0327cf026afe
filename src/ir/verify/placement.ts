/**
 * Verifies that ops stand where they can run.
 *
 * | op                                       | kernel body | scoped | loop, if … | on_threads | warps |
 * |------------------------------------------|-------------|--------|------------|------------|-------|
 * | alloc smem, alloc_union, alloc_barrier   | yes         | yes    | no         | no         | no    |
 * | alloc_tmem                               | yes         | yes    | no         | no         | no    |
 * | alloc gmem, alloc_semaphore              | yes         | no     | no         | no         | no    |
 * | block_sync, cluster_arrive, cluster_wait | yes         | yes    | yes        | of all     | no    |
 * | scoped, warps                            | yes         | yes    | yes        | yes        | no    |
 * | on_threads                               | yes         | yes    | yes        | of a subset| no    |
 * | accumulator, wgmma, wgmma_wait           | yes         | yes    | yes        | yes        | no    |
 *
 * `scoped` inside `on_threads` is entered by those threads alone, so it is not collective there.
 */
import { noSlots } from "../make-op.ts";
import type { AnyOp, Kernel, Region } from "../node.ts";
import { opName } from "../op-names.ts";
import { allocatesShared, traitsOf } from "../traits.ts";
import { regionList } from "../traverse.ts";
import { reject } from "./report.ts";
import { visitEach } from "../../support/visit-each.ts";

interface Surroundings {
  /** The op whose region this is; the kernel's body has none. */
  readonly owner: AnyOp | undefined;
  /** The program threads that run here. */
  readonly threads: readonly number[];
  /** The innermost on_threads around. */
  readonly selection: AnyOp | undefined;
  readonly warps: AnyOp | undefined;
}

function verifyAllocation(op: AnyOp, { owner, selection, threads }: Surroundings): void {
  // Columns of tensor memory are those of one scope: several threads that enter it apart would share them.
  const isApart = selection !== undefined && threads.length > 1;
  const shared = allocatesShared(op) || (op.kind === "alloc_tmem" && !isApart);
  if (owner === undefined || (traitsOf(owner).regions === "once" && shared)) return;
  reject(op, "TW2211", `${opName(op)} stands inside ${opName(owner)}`, {
    expected: shared ? "the kernel's body or a scoped body" : "the kernel's body",
    found: `the body of ${opName(owner)}`,
    notes: [{ message: `${opName(owner)} begins here`, location: owner.location }],
  });
}

function verifyPlace(op: AnyOp, kernel: Kernel, place: Surroundings): void {
  const { threads, selection, warps } = place;
  const { stands } = traitsOf(op);
  if (warps !== undefined && (stands === "whole thread" || stands === "all threads"))
    reject(op, "TW2209", `${opName(op)} needs the whole program thread, not one warp`, {
      expected: "a place outside of code for single warps",
      found: "one within it",
      notes: [{ message: "the warps split up here", location: warps.location }],
    });
  if (stands === "all threads" && threads.length < kernel.threads.length)
    reject(op, "TW2210", `not all program threads reach ${opName(op)}`, {
      expected: `all of ${kernel.threads.join(", ")}`,
      found: threads.map((thread) => kernel.threads[thread]).join(", "),
      ...(selection !== undefined && {
        notes: [{ message: "the other threads are left out here", location: selection.location }],
      }),
    });
  if (op.kind === "on_threads") {
    const outside = op.attributes.threads.find((thread) => !threads.includes(thread));
    if (outside !== undefined)
      reject(op, "TW2212", `program thread ${kernel.threads[outside]} does not get here`, {
        expected: `some of ${threads.map((thread) => kernel.threads[thread]).join(", ")}`,
        found: op.attributes.threads.map((thread) => kernel.threads[thread]).join(", "),
        ...(selection !== undefined && {
          notes: [{ message: "it is left out here", location: selection.location }],
        }),
      });
  }
  if (stands === "body") verifyAllocation(op, place);
}

function verifyRegion(region: Region, kernel: Kernel, place: Surroundings): void {
  visitEach(region.ops, (op) => {
    verifyPlace(op, kernel, place);
    if (op.regions === noSlots) return;
    const inside: Surroundings = {
      owner: op,
      threads: op.kind === "on_threads" ? op.attributes.threads : place.threads,
      selection: op.kind === "on_threads" ? op : place.selection,
      warps: traitsOf(op).regions === "each warp" ? op : place.warps,
    };
    for (const inner of regionList(op)) verifyRegion(inner, kernel, inside);
  });
}

export function verifyPlacement(kernel: Kernel): void {
  verifyRegion(kernel.body, kernel, {
    owner: undefined,
    threads: kernel.threads.map((_, thread) => thread),
    selection: undefined,
    warps: undefined,
  });
}
