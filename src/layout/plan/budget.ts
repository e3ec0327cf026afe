/**
 * Shared memory of a block: an offset for every buffer. Buffers whose lives do not overlap may share
 * bytes; the largest is placed first, each at the lowest offset that is free for as long as it lives.
 *
 *   buffer        bytes   life      offset
 *   tileA         32768   all       0          1024-byte aligned, as the 128-byte swizzle needs
 *   first         16384   2 to 9    32768
 *   second        16384   10 to 20  32768      begins when first is over
 *   full             16   all       49152
 *
 * Scratch of conversions through shared memory counts like any buffer, for the time of its op.
 */
import { packedBytes } from "../../formats/dtype.ts";
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { walkOps } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Target } from "../../targets/target.ts";
import { swizzlePattern } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import { scratchBytes } from "../relayout/steps.ts";
import type { RelayoutPlan } from "../relayout/steps.ts";
import { Lives, livesOverlap } from "./lives.ts";
import type { Life } from "./lives.ts";

export interface SharedBuffer {
  readonly name: string;
  /** The allocation; undefined for scratch of a conversion. */
  readonly value: Value | undefined;
  /** The op that allocates it or needs the scratch. */
  readonly op: AnyOp;
  readonly bytes: number;
  readonly alignment: number;
  readonly life: Life;
  readonly offset: number;
}

export interface SharedMemoryPlan {
  readonly buffers: readonly SharedBuffer[];
  readonly bytes: number;
}

type Unplaced = Omit<SharedBuffer, "offset">;

/** Buffers of instructions start at a multiple of this. */
const leastAlignment = 128;
const barrierBytes = 8;

export interface BudgetRequest {
  readonly kernel: Kernel;
  readonly target: Target;
  readonly shared: ReadonlyMap<Value, SharedLayout>;
  readonly conversions: readonly { readonly op: AnyOp; readonly plan: RelayoutPlan }[];
}

export function assignSharedMemory(request: BudgetRequest): SharedMemoryPlan {
  const buffers = buffersOf(request);
  const plan = assign(buffers);
  const limit = request.target.sharedMemoryPerBlock;
  if (plan.bytes > limit) throw overBudget(request, buffers, plan);
  return plan;
}

function buffersOf({ kernel, shared, conversions }: BudgetRequest): readonly Unplaced[] {
  const lives = new Lives(kernel);
  const buffers: Unplaced[] = [];
  const members = new Map<Value, Value[]>();
  const alignmentOf = (value: Value): number =>
    Math.max(leastAlignment, swizzlePattern(shared.get(value)?.swizzle ?? 0));
  walkOps(kernel.body, (op) => {
    const [value] = op.results;
    if (value === undefined) return;
    if (op.kind === "union_member")
      members.set(op.operands.union, [...(members.get(op.operands.union) ?? []), value]);
    const bytes = allocatedBytes(op);
    if (bytes === undefined) return;
    const alignment = op.kind === "alloc_barrier" ? barrierBytes : alignmentOf(value);
    buffers.push({ name: nameOf(op), value, op, bytes, alignment, life: lives.of(value) });
  });
  const aligned = buffers.map((buffer) => {
    const own = (buffer.value && members.get(buffer.value)) ?? [];
    return { ...buffer, alignment: Math.max(buffer.alignment, ...own.map(alignmentOf)) };
  });
  const scratch = conversions.flatMap(({ op, plan }) => {
    const bytes = scratchBytes(plan);
    if (bytes === 0) return [];
    const name = `scratch of ${opName(op)}`;
    const life = lives.during(op);
    return [{ name, value: undefined, op, bytes, alignment: leastAlignment, life }];
  });
  return [...aligned, ...scratch];
}

function allocatedBytes(op: AnyOp): number | undefined {
  if (op.kind === "alloc_union") return op.attributes.bytes;
  if (op.kind === "alloc_barrier") return barrierBytes * op.attributes.count;
  if (op.kind !== "alloc" || op.attributes.space !== "smem") return undefined;
  const elements = op.attributes.shape.reduce<number>((count, size) => count * Number(size), 1);
  return packedBytes(op.attributes.dtype, elements);
}

function nameOf(op: AnyOp): string {
  const named = op.kind === "alloc" || op.kind === "alloc_union" || op.kind === "alloc_barrier";
  return (named ? op.attributes.name : undefined) ?? opName(op);
}

function assign(buffers: readonly Unplaced[]): SharedMemoryPlan {
  const placed: SharedBuffer[] = [];
  const order = [...buffers].sort((left, right) => right.bytes - left.bytes);
  for (const buffer of order) placed.push({ ...buffer, offset: lowestOffset(buffer, placed) });
  const bytes = placed.reduce((most, each) => Math.max(most, each.offset + each.bytes), 0);
  const inOrder = buffers.flatMap((buffer) => placed.find((each) => same(each, buffer)) ?? []);
  return { buffers: inOrder, bytes };
}

function same(placed: SharedBuffer, { value, op, name }: Unplaced): boolean {
  return placed.value === value && placed.op === op && placed.name === name;
}

function lowestOffset(buffer: Unplaced, placed: readonly SharedBuffer[]): number {
  const rivals = placed.filter(({ life }) => livesOverlap(life, buffer.life));
  rivals.sort((left, right) => left.offset - right.offset);
  let offset = 0;
  for (const rival of rivals) {
    if (offset + buffer.bytes <= rival.offset) break;
    offset = Math.max(offset, alignUp(rival.offset + rival.bytes, buffer.alignment));
  }
  return offset;
}

function alignUp(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

function overBudget(
  { kernel, target }: BudgetRequest,
  buffers: readonly Unplaced[],
  { bytes }: SharedMemoryPlan,
): TilewrightError {
  const limit = target.sharedMemoryPerBlock;
  const largest = buffers.reduce((most, each) => (each.bytes > most.bytes ? each : most));
  const stages = fittingStages(buffers, limit);
  const notes = buffers.map(({ name, bytes: own, op: { location } }) => ({
    message: `${name}: ${own} bytes`,
    location,
  }));
  const remedy =
    stages === undefined
      ? `make ${largest.name} smaller by ${bytes - limit} bytes, or let buffers that are not used together share bytes with scoped or union`
      : `use at most ${stages.count} of the ${stages.given} stages of ${stages.names.join(", ")}`;
  return new TilewrightError({
    code: "TW6103",
    message: `${kernel.name} needs ${bytes} bytes of shared memory`,
    location: largest.op.location,
    expected: `at most ${limit} bytes on ${target.name}`,
    found: `${bytes} bytes`,
    notes,
    remedy,
  });
}

interface Stages {
  readonly names: readonly string[];
  readonly given: number;
  readonly count: number;
}

/** The most stages that fit, where buffers of several axes share a first extent. */
function fittingStages(buffers: readonly Unplaced[], limit: number): Stages | undefined {
  const groups = new Map<number, Unplaced[]>();
  for (const buffer of buffers) {
    const given = stagesOf(buffer);
    if (given !== undefined) groups.set(given, [...(groups.get(given) ?? []), buffer]);
  }
  const total = (members: readonly Unplaced[]): number =>
    members.reduce((sum, { bytes }) => sum + bytes, 0);
  const [given, members] =
    [...groups].sort(([, left], [, right]) => total(right) - total(left))[0] ?? [];
  if (given === undefined || members === undefined) return undefined;
  for (let count = given - 1; count >= 1; count -= 1) {
    const fewer = buffers.map((buffer) =>
      members.includes(buffer) ? { ...buffer, bytes: (buffer.bytes / given) * count } : buffer,
    );
    if (assign(fewer).bytes <= limit)
      return { names: members.map(({ name }) => name), given, count };
  }
  return undefined;
}

/** A first extent of two or more in front of a tile. */
function stagesOf({ op }: Unplaced): number | undefined {
  if (op.kind !== "alloc" || op.attributes.shape.length < 3) return undefined;
  const given = Number(op.attributes.shape[0]);
  return given >= 2 ? given : undefined;
}
