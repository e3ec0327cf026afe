/**
 * The stage that gives every buffer of a placed kernel its bytes of shared memory, in the attribute `at`. Buffers whose lives
 * do not overlap may share bytes; the largest is placed first, each at the lowest offset that is free for as long as it
 * lives.
 *
 *   buffer        bytes   life      at
 *   tileA         32768   all       0          1024-byte aligned, as the 128-byte swizzle needs
 *   first         16384   2 to 9    32768
 *   second        16384   10 to 20  32768      begins when first is over
 *   full             16   all       49152
 *
 * Scratch that ops need for themselves (`alloc_scratch`) counts like any buffer, from where it is allocated to the last of
 * its users.
 */
import type { AnyOp, Kernel, Op, PlacedFor, Region, Value } from "../../ir/node.ts";
import { opName } from "../../ir/op-names.ts";
import { changeEachOp, changeRegions, withAttributes } from "../../ir/rewrite/substitute.ts";
import { walkOps } from "../../ir/traverse.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { swizzlePattern } from "../algebra/shared-layout.ts";
import { allocatedBytes, storedAs } from "../model/placed-types.ts";
import { Lives, livesOverlap } from "./buffer-lifetimes.ts";
import type { Life } from "./buffer-lifetimes.ts";
import { allocatedColumns, blocksTogether, tmemSlotBytes } from "../model/tensor-memory.ts";
import type { TmemBuffer } from "../model/tensor-memory.ts";

interface Unplaced {
  readonly name: string;
  readonly op: AnyOp;
  /** Of tensor memory columns. */
  readonly bytes: number;
  readonly alignment: number;
  readonly life: Life;
}

interface SharedBuffer extends Unplaced {
  readonly offset: number;
}

/** Buffers of instructions start at a multiple of this. */
const leastAlignment = 128;
const barrierAlignment = 8;

/** The placed kernel with a place for each of its buffers; refuses one whose buffers do not fit (TW6103). */
export function allocate(kernel: Kernel): Kernel {
  const { placed: placedFor } = kernel;
  if (placedFor === undefined) throw new Error(`${kernel.name} has not been placed`);
  const buffers = buffersOf(kernel);
  const { placed, bytes } = assign(buffers);
  const slot = usesTensorMemory(kernel) ? tmemSlotBytes + alignUp(bytes, tmemSlotBytes) - bytes : 0;
  if (bytes + slot > placedFor.target.sharedMemoryPerBlock)
    throw overBudget(kernel, placedFor, buffers, bytes + slot);
  const columns = assignColumns(kernel, placedFor);
  const places = new Map([
    ...[...placed.values()].map(({ op, offset }) => [op, offset] as const),
    ...columns,
  ]);
  const body = withPlaces(kernel.body, places);
  return Object.freeze({
    ...kernel,
    body,
    placed: Object.freeze({ ...placedFor, sharedBytes: bytes + slot }),
  });
}

function usesTensorMemory({ body }: Kernel): boolean {
  let uses = false;
  walkOps(body, ({ kind }) => {
    uses ||= kind === "alloc_tmem";
  });
  return uses;
}

/**
 * Where each buffer of tensor memory begins: in the order of the program, or the widest first where that takes fewer columns; refuses those that do
 * not fit (TW6108).
 */
function assignColumns(kernel: Kernel, { target }: PlacedFor): ReadonlyMap<AnyOp, number> {
  const ops: Op<"alloc_tmem">[] = [];
  const members: TmemBuffer[] = [];
  walkOps(kernel.body, (op) => {
    if (op.kind === "alloc_tmem") ops.push(op);
    else if (op.kind === "tmem_member") members.push(op);
  });
  requireAllTogether([...ops, ...members]);
  const lives = new Lives(kernel);
  const buffers = ops.map((op): Unplaced => {
    const life = lives.ofTensorMemory(op);
    return { name: nameOf(op), op, bytes: allocatedColumns(op), alignment: 1, life };
  });
  const [inOrder, widestFirst] = [assignInOrder(buffers), assign(buffers)];
  const { placed, bytes: end } = widestFirst.bytes < inOrder.bytes ? widestFirst : inOrder;
  const limit = target.tensorMemoryColumns;
  if (end <= limit) return new Map([...placed.values()].map(({ op, offset }) => [op, offset]));
  const widest = buffers.reduce((most, each) => (each.bytes > most.bytes ? each : most));
  throw new TilewrightError({
    code: "TW6108",
    message: `${kernel.name} needs ${end} columns of tensor memory`,
    location: widest.op.location,
    expected: `at most ${limit} columns on ${target.name}`,
    found: `${end} columns`,
    remedy: `make ${widest.name} narrower by ${end - limit} columns, have fewer tiles in flight, or let buffers that are not used together share columns with scoped or union`,
    notes: buffers.map(({ name, bytes: columns, op: { location } }) => ({
      message: `${name}: ${columns} columns`,
      location,
    })),
  });
}

/** A kernel's tensor memory is all of pairs of blocks, or none is. */
function requireAllTogether(buffers: readonly TmemBuffer[]): void {
  const paired = buffers.find((each) => blocksTogether(each) === 2);
  const alone = buffers.find((each) => blocksTogether(each) === 1);
  if (paired === undefined || alone === undefined) return;
  throw new TilewrightError({
    code: "TW6109",
    message: `${nameOf(paired)} is tensor memory of a pair of blocks, and ${nameOf(alone)} of one`,
    location: alone.location,
    expected: "{ pair: true } of all tensor memory of a kernel, or of none",
    found: `${nameOf(alone)} without it`,
    notes: [{ message: `${nameOf(paired)} has it`, location: paired.location }],
  });
}

/** The region with the places of what is allocated in it. */
function withPlaces(region: Region, places: ReadonlyMap<AnyOp, number>): Region {
  return changeEachOp(region, (op) => {
    const at = places.get(op);
    const inner = changeRegions(op, (each) => withPlaces(each, places));
    return at === undefined ? inner : withAttributes(inner, { at });
  });
}

/** Buffers in the order of the program, scratch last. */
function buffersOf(kernel: Kernel): readonly Unplaced[] {
  const lives = new Lives(kernel);
  const [own, scratch]: [Unplaced[], Unplaced[]] = [[], []];
  const members = new Map<Value, AnyOp[]>();
  walkOps(kernel.body, (op) => {
    const [value] = op.results;
    if (value === undefined) return;
    if (op.kind === "union_member")
      members.set(op.operands.union, [...(members.get(op.operands.union) ?? []), op]);
    const bytes = allocatedBytes(op, storedAs(op));
    if (bytes === undefined) return;
    const alignment = op.kind === "alloc_barrier" ? barrierAlignment : alignmentOf(op);
    const buffer = { name: nameOf(op), op, bytes, alignment, life: lives.of(value) };
    (op.kind === "alloc_scratch" ? scratch : own).push(buffer);
  });
  return [...own, ...scratch].map((buffer) => {
    const [value] = buffer.op.results;
    const parts = (value && members.get(value)) ?? [];
    return { ...buffer, alignment: Math.max(buffer.alignment, ...parts.map(alignmentOf)) };
  });
}

function alignmentOf(op: AnyOp): number {
  return Math.max(leastAlignment, swizzlePattern(storedAs(op)?.swizzle ?? 0));
}

function nameOf(op: AnyOp): string {
  const { name } = op.attributes as { readonly name?: string };
  return name ?? opName(op);
}

interface Assignment {
  readonly placed: ReadonlyMap<Unplaced, SharedBuffer>;
  readonly bytes: number;
}

/** The largest first. */
function assign(buffers: readonly Unplaced[]): Assignment {
  return assignInOrder([...buffers].sort((left, right) => right.bytes - left.bytes));
}

function assignInOrder(buffers: readonly Unplaced[]): Assignment {
  const placed = new Map<Unplaced, SharedBuffer>();
  for (const buffer of buffers)
    placed.set(buffer, { offset: lowestOffset(buffer, [...placed.values()]), ...buffer });
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
  kernel: Kernel,
  { target }: PlacedFor,
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
