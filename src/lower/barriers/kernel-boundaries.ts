/**
 * Synchronization where a kernel begins and ends. Blocks of a cluster access each other's shared memory, and TMA reads it while threads go on:
 * no block may be accessed before it has started, and none may end before its memory was read.
 *
 *   cluster_barrier {reason = "the blocks of a cluster start together"}       unless barriers synchronize them: barriers_ready
 *   …
 *   copies_read                                                               after copies that signal no barrier
 *   cluster_barrier {reason = "no block ends while others reach into it"}     unless the program's last line synchronizes them
 *   yield
 */
import { isEngineCopy } from "../../ir/ops/asynchronous.ts";
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { changeBody, changeOps } from "../../ir/rewrite/substitute.ts";
import { reachesPeers } from "../../ir/traits.ts";
import { operandValues, regionList, walkOps } from "../../ir/traverse.ts";
import { makeOp } from "../../ir/make-op.ts";

/** What must stand first and last in the body of a kernel. */
interface Ends {
  readonly first: readonly AnyOp[];
  readonly last: readonly AnyOp[];
}

function endsOf(kernel: Kernel): Ends {
  const { body, grid, location } = kernel;
  const barrier = (reason: string): AnyOp =>
    makeOp("cluster_barrier", { attributes: { reason }, location });
  const inCluster = grid.some(({ cluster }) => cluster > 1);
  const hasBarriers = body.ops.some(({ kind }) => kind === "alloc_barrier");
  const isUntold = copiesUntold(kernel);
  const syncsAtEnd = inCluster && !endsInBarrier(kernel);
  return {
    first: inCluster && !hasBarriers ? [barrier("the blocks of a cluster start together")] : [],
    last: [
      ...(isUntold ? [makeOp("copies_read", { location })] : []),
      ...(syncsAtEnd ? [barrier("no block ends while others reach into it")] : []),
    ],
  };
}

/**
 * Whether the program itself synchronizes all blocks of a cluster at its end: it waits for that in its last line, and whoever has arrived reaches into no other
 * block. TMA may still read the block's own memory then, which is waited for behind it.
 */
function endsInBarrier({ body: { ops } }: Kernel): boolean {
  const isLast = ({ kind }: AnyOp): boolean => kind === "cluster_wait";
  const own = ops.filter(({ kind }) => kind !== "copies_read").slice(0, -1);
  const [last] = own.slice(-1);
  return last !== undefined && isLast(last) && hasArrived(own.slice(0, -1), false) === true;
}

/** Whether threads have arrived after these ops without having reached into another block since; undefined where they have, or where that is not known. */
function hasArrived(ops: readonly AnyOp[], before: boolean): boolean | undefined {
  let arrived = before;
  for (const op of ops) {
    if (op.kind === "cluster_arrive") arrived = true;
    else if (op.kind === "cluster_wait") arrived = false;
    else {
      if (arrived && touchesPeers(op)) return undefined;
      const after = regionList(op).map((region) => hasArrived(region.ops, arrived));
      const isSame = after.every((each) => each !== undefined && each === after[0]);
      const changes = after.some((each) => each !== arrived);
      // Of a loop or a part of the threads nobody knows who comes this way.
      if (changes && (!isSame || op.kind !== "if" || after.length < 2)) return undefined;
      arrived = after[0] ?? arrived;
    }
  }
  return arrived;
}

/** Whether an op touches memory or barriers of other blocks of the cluster. */
function touchesPeers(op: AnyOp): boolean {
  const isOfPeer = ({ type }: Value): boolean => type.kind === "ref" && type.space === "peer";
  return reachesPeers(op) || operandValues(op).some(isOfPeer);
}

/** Whether TMA reads shared memory and no barrier says when it has. */
function copiesUntold({ body }: Kernel): boolean {
  let found = false;
  walkOps(body, (op) => {
    const { barrier } = op.kind === "copy_async" ? op.operands : {};
    found ||= op.kind === "copy_async" && barrier === undefined && isEngineCopy(op.attributes);
  });
  return found;
}

/** Those of the needed ops that do not stand where they should; an op stands there with all that belong to it, or none does. */
function missing(needed: readonly AnyOp[], found: readonly AnyOp[]): readonly AnyOp[] {
  return needed.every(({ kind }, index) => found[index]?.kind === kind) ? [] : needed;
}

function missingEnds(kernel: Kernel): Ends {
  const { first, last } = endsOf(kernel);
  const { ops } = kernel.body;
  return {
    first: missing(first, ops),
    last: missing(last, ops.slice(ops.length - 1 - last.length, -1)),
  };
}

/** The kernel with what belongs at its beginning and end. */
export function withEnds(kernel: Kernel): Kernel {
  const { first, last } = missingEnds(kernel);
  const { ops } = kernel.body;
  const ordered = [...first, ...ops.slice(0, -1), ...last, ...ops.slice(-1)];
  return changeBody(kernel, changeOps(kernel.body, ordered));
}

/** Throws where a block might be reached into before it starts, or end before its memory was read. */
export function verifyEnds(kernel: Kernel): void {
  const { first, last } = missingEnds(kernel);
  if (first.length > 0) throw new Error("the blocks of a cluster must start together");
  if (last.length > 0) throw new Error("a block must not end while its shared memory is read");
}
