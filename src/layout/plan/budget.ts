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
 * Scratch that an op needs for itself (see `scratch.ts`) counts like any buffer, for the time of the op.
 * Where several agents run the op side by side, program threads or warps, each has a part of its own; they
 * are not at the same op at the same time, so that all scratch of what they run lies in one buffer:
 *
 *   on_threads [1, 2]        scratch of exp     2048 bytes a thread: offset 0, and 2048
 *     exp %3                   needs 2048
 *     sum %4                   needs  512
 */
import type { AnyOp, Kernel, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { walkOps } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import type { Target } from "../../targets/target.ts";
import { swizzlePattern } from "../algebra/shared-layout.ts";
import type { SharedLayout } from "../algebra/shared-layout.ts";
import type { RegisterLayout } from "../algebra/register-layout.ts";
import type { RelayoutPlan } from "../relayout/steps.ts";
import { allocatedBytes } from "../model/placed-types.ts";
import { collectScratch } from "./agents.ts";
import type { ScratchArea } from "./agents.ts";
import { Lives, livesOverlap } from "./lives.ts";
import type { Life } from "./lives.ts";

export interface SharedBuffer {
  readonly name: string;
  /** The allocation; undefined for scratch. */
  readonly value: Value | undefined;
  /** The op that allocates it or needs the scratch. */
  readonly op: AnyOp;
  readonly bytes: number;
  readonly alignment: number;
  readonly life: Life;
  readonly offset: number;
}

/** The scratch of an op. */
export interface Scratch {
  /** Of the first agent's part. */
  readonly offset: number;
  /** Of one part. */
  readonly bytes: number;
  /** From one agent's part to the next one's; agents count the threads that run the op, then warps. */
  readonly stride: number;
}

/** Scratch with the byte that it begins at. */
export type PlacedArea = ScratchArea & { readonly offset: number; readonly name: string };

export interface SharedMemoryPlan {
  readonly buffers: readonly SharedBuffer[];
  /** For each op that needs some. */
  readonly scratch: ReadonlyMap<AnyOp, Scratch>;
  readonly areas: readonly PlacedArea[];
  readonly bytes: number;
}

type Unplaced = Omit<SharedBuffer, "offset">;

/** Buffers of instructions start at a multiple of this. */
const leastAlignment = 128;
const barrierAlignment = 8;

export interface BudgetRequest {
  readonly kernel: Kernel;
  readonly target: Target;
  readonly shared: ReadonlyMap<Value, SharedLayout>;
  readonly conversions: readonly { readonly op: AnyOp; readonly plan: RelayoutPlan }[];
  /** Where ops need their operands, in the order of the op's rule. */
  readonly needs: ReadonlyMap<AnyOp, readonly { readonly layout: RegisterLayout }[]>;
}

export function assignSharedMemory(request: BudgetRequest): SharedMemoryPlan {
  const lives = new Lives(request.kernel);
  const areas = collectScratch(request);
  const scratch = areas.map((area) => scratchBuffer(area, lives));
  const buffers = [...allocatedBuffers(request, lives), ...scratch];
  const { placed, bytes } = assign(buffers);
  const limit = request.target.sharedMemoryPerBlock;
  if (bytes > limit) throw overBudget(request, buffers, bytes);
  const inOrder = buffers.flatMap((buffer) => placed.get(buffer) ?? []);
  const placedAreas = areas.map((area, index) => {
    const { offset = 0, name = "scratch" } = (scratch[index] && placed.get(scratch[index])) ?? {};
    return { ...area, offset, name };
  });
  const places = placedAreas.flatMap(({ users, bytes: stride, offset }) =>
    users.map((user) => [user.op, { offset, bytes: user.bytes, stride }] as const),
  );
  return { buffers: inOrder, scratch: new Map(places), areas: placedAreas, bytes };
}

function scratchBuffer({ users, bytes, agents, region, own }: ScratchArea, lives: Lives): Unplaced {
  const largest = users.reduce((most, each) => (each.bytes > most.bytes ? each : most));
  return {
    name: `scratch of ${opName(largest.op)}`,
    value: undefined,
    op: largest.op,
    bytes: agents * bytes,
    alignment: leastAlignment,
    life: own ? lives.during(largest.op) : lives.throughout(region),
  };
}

function allocatedBuffers({ kernel, shared }: BudgetRequest, lives: Lives): readonly Unplaced[] {
  const buffers: Unplaced[] = [];
  const members = new Map<Value, Value[]>();
  const alignmentOf = (value: Value): number =>
    Math.max(leastAlignment, swizzlePattern(shared.get(value)?.swizzle ?? 0));
  walkOps(kernel.body, (op) => {
    const [value] = op.results;
    if (value === undefined) return;
    if (op.kind === "union_member")
      members.set(op.operands.union, [...(members.get(op.operands.union) ?? []), value]);
    const bytes = allocatedBytes(op, shared.get(value));
    if (bytes === undefined) return;
    const alignment = op.kind === "alloc_barrier" ? barrierAlignment : alignmentOf(value);
    buffers.push({ name: nameOf(op), value, op, bytes, alignment, life: lives.of(value) });
  });
  return buffers.map((buffer) => {
    const own = (buffer.value && members.get(buffer.value)) ?? [];
    return { ...buffer, alignment: Math.max(buffer.alignment, ...own.map(alignmentOf)) };
  });
}

function nameOf(op: AnyOp): string {
  const named = op.kind === "alloc" || op.kind === "alloc_union" || op.kind === "alloc_barrier";
  return (named ? op.attributes.name : undefined) ?? opName(op);
}

interface Assignment {
  readonly placed: ReadonlyMap<Unplaced, SharedBuffer>;
  readonly bytes: number;
}

function assign(buffers: readonly Unplaced[]): Assignment {
  const placed = new Map<Unplaced, SharedBuffer>();
  const order = [...buffers].sort((left, right) => right.bytes - left.bytes);
  for (const buffer of order)
    placed.set(buffer, { ...buffer, offset: lowestOffset(buffer, [...placed.values()]) });
  const ends = [...placed.values()].map((each) => each.offset + each.bytes);
  return { placed, bytes: Math.max(0, ...ends) };
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
  bytes: number,
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
