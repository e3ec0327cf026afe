/**
 * Whether buffers of shared memory lie where they can: inside what the block has, aligned as the instructions on
 * them ask, and apart from every other buffer that lives at the same time. Lives are found again from the placed
 * kernel itself; scratch lives as long as the ops that have it.
 */
import type { AnyOp, Kernel, PlacedFor, Value } from "../../ir/node.ts";
import { reject } from "../../ir/verify/report.ts";
import { walkOps } from "../../ir/traverse.ts";
import { swizzlePattern } from "../../layout/algebra/shared-layout.ts";
import { placedBuffers, storedAs } from "../../layout/model/placed-types.ts";
import type { PlacedBuffer } from "../../layout/model/placed-types.ts";
import { Lives, livesOverlap } from "../../layout/plan/buffer-lifetimes.ts";
import type { Life } from "../../layout/plan/buffer-lifetimes.ts";
import { placedColumns } from "../../layout/model/tensor-memory.ts";
import type { Target } from "../../targets/target.ts";

const barrierAlignment = 8;
const leastAlignment = 128;

export function verifyMemory(kernel: Kernel, { sharedBytes, target }: PlacedFor): void {
  if (sharedBytes === undefined)
    return reject(kernel, "TW6207", `the shared memory of ${kernel.name} has not been allocated`, {
      expected: "shared bytes of the kernel",
      found: "none",
    });
  if (sharedBytes > target.sharedMemoryPerBlock)
    reject(kernel, "TW6207", `${kernel.name} takes more shared memory than ${target.name} has`, {
      expected: `at most ${target.sharedMemoryPerBlock} bytes`,
      found: `${sharedBytes} bytes`,
    });
  const members = membersOf(kernel);
  const lives = new Lives(kernel);
  const buffers = placedBuffers(kernel).map((buffer) => {
    lies(buffer, sharedBytes, members.get(buffer.value) ?? []);
    return { life: lives.of(buffer.value), ...buffer };
  });
  requireApart(buffers);
  requireColumns(kernel, target, lives);
}

/** Tensor memory has columns in place of bytes. */
function requireColumns(
  kernel: Kernel,
  { tensorMemoryColumns: limit }: Target,
  lives: Lives,
): void {
  const buffers = placedColumns(kernel).map((each) => {
    const end = each.offset + each.columns;
    if (each.offset < 0 || end > limit)
      reject(each.op, "TW6207", `${each.name} reaches outside of tensor memory`, {
        expected: `columns below ${limit}`,
        found: `${each.offset} to ${end}`,
      });
    return { ...each, bytes: each.columns, life: lives.ofTensorMemory(each.op) };
  });
  requireApart(buffers);
}

function requireApart(buffers: readonly (PlacedBuffer & { readonly life: Life })[]): void {
  const sorted = [...buffers].sort((left, right) => left.offset - right.offset);
  sorted.forEach((buffer, index) => {
    for (const other of sorted.slice(index + 1)) {
      if (other.offset >= buffer.offset + buffer.bytes) break;
      if (livesOverlap(buffer.life, other.life)) overlaps(buffer, other);
    }
  });
}

function membersOf({ body }: Kernel): ReadonlyMap<Value, readonly AnyOp[]> {
  const members = new Map<Value, AnyOp[]>();
  walkOps(body, (op) => {
    if (op.kind === "union_member")
      members.set(op.operands.union, [...(members.get(op.operands.union) ?? []), op]);
  });
  return members;
}

function lies(
  { name, op, offset, bytes }: PlacedBuffer,
  sharedBytes: number,
  members: readonly AnyOp[],
): void {
  const patterns = [op, ...members].map((each) => swizzlePattern(storedAs(each)?.swizzle ?? 0));
  const alignment =
    op.kind === "alloc_barrier" ? barrierAlignment : Math.max(leastAlignment, ...patterns);
  if (offset % alignment !== 0)
    reject(op, "TW6207", `${name} lies at byte ${offset}`, {
      expected: `a multiple of ${alignment}`,
      found: `${offset}`,
    });
  if (offset < 0 || offset + bytes > sharedBytes)
    reject(op, "TW6207", `${name} reaches outside of the kernel's shared memory`, {
      expected: `bytes below ${sharedBytes}`,
      found: `${offset} to ${offset + bytes}`,
    });
}

function overlaps(left: PlacedBuffer, right: PlacedBuffer): never {
  return reject(
    right.op,
    "TW6207",
    `${left.name} and ${right.name} live together and share bytes`,
    {
      expected: `${right.name} behind byte ${left.offset + left.bytes}`,
      found: `byte ${right.offset}`,
    },
  );
}
