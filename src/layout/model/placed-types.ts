/** What a placed kernel says of its values and its memory, read from types and attributes. */
import { packedBytes } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { walkOps } from "../../ir/traverse.ts";
import { isSpread } from "../../ir/types.ts";
import { onceForEach } from "../../support/memo.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import { parseSharedLayout } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { knownLayout } from "../algebra/parse-layout.ts";

/** Where a value lies. */
export function layoutOf({ type, id }: Value): RegisterLayout {
  if (!isSpread(type) || type.layout === undefined) throw new Error(`%${id} has no layout`);
  return knownLayout(type.layout);
}

/** How an allocation, or a member of a union, is stored; undefined for bytes and barriers. */
export function storedAs(op: AnyOp | undefined): SharedLayout | undefined {
  if (op?.kind !== "alloc" && op?.kind !== "union_member") return undefined;
  const { layout } = op.attributes;
  return layout === undefined ? undefined : parseSharedLayout(layout);
}

const barrierBytes = 8;

/** Bytes of shared memory that an op allocates, stored so; undefined for one that allocates none. */
export function allocatedBytes(op: AnyOp, stored: SharedLayout | undefined): number | undefined {
  if (op.kind === "alloc_union") return op.attributes.bytes;
  if (op.kind === "alloc_barrier") return barrierBytes * op.attributes.count;
  if (op.kind === "alloc_scratch") return op.attributes.bytes * op.attributes.agents;
  if (op.kind !== "alloc" || op.attributes.space !== "smem") return undefined;
  const elements = op.attributes.shape.reduce<number>((count, size) => count * Number(size), 1);
  const bytes = packedBytes(op.attributes.dtype, elements);
  // A swizzle moves bytes within chunks of its width, the last one included.
  const chunk = Math.max(1, stored?.swizzle ?? 0);
  return Math.ceil(bytes / chunk) * chunk;
}

/** Shared memory of a placed kernel. */
export interface PlacedBuffer {
  readonly name: string;
  readonly value: Value;
  readonly op: AnyOp;
  readonly offset: number;
  readonly bytes: number;
}

/** Buffers in the order of the program, scratch last. */
export const placedBuffers = onceForEach(({ body }: Kernel): readonly PlacedBuffer[] => {
  const [own, scratch]: [PlacedBuffer[], PlacedBuffer[]] = [[], []];
  walkOps(body, (op) => {
    const bytes = allocatedBytes(op, storedAs(op));
    const value = bytes === undefined ? undefined : op.results[0];
    if (bytes === undefined || value === undefined) return;
    const { at: offset, name = opName(op) } = op.attributes as BufferAttributes;
    if (offset === undefined) throw new Error(`${name} has no place in shared memory`);
    (op.kind === "alloc_scratch" ? scratch : own).push({ name, value, op, offset, bytes });
  });
  return [...own, ...scratch];
});

interface BufferAttributes {
  readonly at?: number;
  readonly name?: string;
}

/** The scratch that an op may use. */
export function scratchOperand({ operands }: AnyOp): Value | undefined {
  return "scratch" in operands ? operands.scratch : undefined;
}
