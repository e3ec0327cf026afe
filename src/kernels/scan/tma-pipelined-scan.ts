/**
 * A running combination along few, long rows whose elements lie side by side: as in `grid-cooperative-scan.ts` the blocks of a row go through it
 * in waves and tell each other the totals of their pieces, but pieces come and go through a queue in shared memory, moved by the
 * copy engine, and what is not combining elements is done by warps of their own:
 *
 *   lanes      total of my 32 elements: wave 2      total: wave 3      total: wave 4       …   each as soon as the piece is there
 *              ·                                     results: wave 0    results: wave 1     …   each as soon as what comes before is known
 *   a warp     what comes before each lane within the block; tells the block's total
 *   a warp     hears all blocks' totals: what comes before the block
 *   a warp     copies results out, and the next pieces in
 *
 * Lanes meet nobody but through barriers in shared memory: what they wait for was begun waves before. A piece stays in its place of the
 * queue from when it comes until its results go out of it, and lanes read it twice, so that no registers hold it.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  tensor,
  barrier,
  cdiv,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dim,
  iota,
  kernel,
  loop,
  ring,
  slice,
  smem,
  waitGroup,
  warps,
  when,
} from "../../lang/index.ts";
import type {
  TensorSpec,
  Barrier,
  KernelDefinition,
  Ref,
  RingPosition,
  Scalar,
  ScratchSpec,
  Tile,
} from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { Target } from "../../targets/target.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { alignedDimension, widestAccess } from "../support/sizes.ts";
import type { StridedAxis } from "../support/strided.ts";
import { eachTile, nothing, only } from "./scan-kernel.ts";
import type { ScanArray, ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import { toldName } from "../support/mailbox.ts";
import { hear, nothingHeard, tell, toldShape } from "./block-aggregates.ts";
import type { Teller } from "./block-aggregates.ts";

/** Warps that combine; as many serve them, of which three are needed. */
export const queuedWarps = 8;
const lanes = 32 * queuedWarps;

/** Bytes of a lane's elements, as they are copied and as they are combined, and how many elements there are at most. */
const [bytesPerLane, mostPerLane] = [128, 32] as const;

/** Shared memory that the queue and what is known of its pieces may take: what is left, lanes exchange elements through. */
const queueBytes = 209 * 1024;

/** Bytes of a row of a box: as wide as a swizzle, so that lanes read neighbouring stretches without conflicts. */
const boxBytes = 128;

/** Rows of a box at most. */
const mostBoxRows = 256;

const inBox = ({ bits }: DType): number => (boxBytes * 8) / bits;

export interface Queue {
  /** Pieces that the queue has room for. */
  readonly slots: number;
  /** Waves by which results follow totals. */
  readonly slack: number;
}

/** How pieces are queued, for as many workers as there can be; undefined where the copy engine does not take the rows. */
export function chooseQueue(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  target: Target,
): { readonly columns: number; readonly queue: Queue } | undefined {
  if (!isQueueable(rule, axes, target)) return undefined;
  const [copied, combined] = [bytesOf(inputsOf(rule)), bytesOf(Object.values(rule.state))];
  const most = bytesPerLane / Math.max(copied, combined);
  let each = mostPerLane;
  while (each > Math.max(1, most)) each /= 2;
  const columns = lanes * each;
  let queue: Queue | undefined;
  for (let slots = 3; ; slots += 1) {
    // Half of the places wait until others have heard of their totals, half for pieces that come and results that go.
    const next = { slots, slack: Math.floor(slots / 2) };
    if (queuedBytes(rule, columns, next) > queueBytes) break;
    queue = next;
  }
  return queue === undefined ? undefined : { columns, queue };
}

function bytesOf(parts: readonly { readonly dtype: DType }[]): number {
  return parts.reduce((sum, { dtype }) => sum + dtype.bits / 8, 0);
}

/** Bytes of shared memory that a queue and what is known of its pieces take. */
function queuedBytes(rule: ScanRule, columns: number, { slots, slack }: Queue): number {
  const known = (slack + 1) * (2 * lanes + 2) * bytesOf(Object.values(rule.state));
  return slots * columns * bytesOf(inputsOf(rule)) + known;
}

/** Whether there is such a queue of pieces of so many columns: a copy takes one, and a block has room for all. */
export function isPossibleQueue(
  rule: ScanRule,
  columns: number,
  queue: Queue,
  { sharedMemoryPerBlock }: Target,
): boolean {
  const { slots, slack } = queue;
  const isCounted = [slots, slack].every((count) => Number.isSafeInteger(count) && count >= 1);
  // The place of a piece is filled again when the results of the next one go out, which follow totals of later ones.
  if (!isCounted || slots < slack + 2) return false;
  const isCopied = inputsOf(rule).every(({ dtype }) => columns <= mostBoxRows * inBox(dtype));
  return isCopied && queuedBytes(rule, columns, queue) <= sharedMemoryPerBlock;
}

/** Whether boxes of the copy engine make up the rows, and results fit where elements were. */
export function isQueueable(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  { features }: Target,
): boolean {
  const [lead, column] = axes;
  if (axes.length !== 2 || lead === undefined || column === undefined) return false;
  if (!features.includes("tma") || placesOf(rule) === undefined) return false;
  return rule.arrays.every(({ dtype }, position) => {
    const stride = lead.strides[position] ?? 0;
    const isApart = stride > 0 && (stride * dtype.bits) % (8 * widestAccess) === 0;
    return (
      dtype.bits >= 8 &&
      column.strides[position] === 1 &&
      column.extent % inBox(dtype) === 0 &&
      (lead.extent === 1 || isApart)
    );
  });
}

const inputsOf = ({ arrays }: ScanRule): readonly ScanArray[] =>
  arrays.filter(({ role }) => role === "input");

/** By the name of each result, the input of the same format whose place it takes; undefined where there are not enough. */
function placesOf(rule: ScanRule): ReadonlyMap<string, string> | undefined {
  const left = [...inputsOf(rule)];
  const places = new Map<string, string>();
  for (const { name, dtype, role } of rule.arrays) {
    if (role === "input") continue;
    const found = left.findIndex((input) => input.dtype === dtype);
    const [input] = found < 0 ? [] : left.splice(found, 1);
    if (input === undefined) return undefined;
    places.set(name, input.name);
  }
  return places;
}

/** What the kernel depends on. */
export interface QueuedScan {
  readonly rule: ScanRule;
  readonly configuration: ScanConfiguration & { readonly queue: Queue };
  readonly axes: readonly StridedAxis[];
}

const [rowsName, columnsName] = ["rows", "columns"];
const strideName = (position: number): string => `stride${position}`;
const queueName = (name: string): string => `queue_${name}`;
const totalName = (name: string): string => `total_${name}`;
const baseName = (name: string): string => `base_${name}`;
const beforeName = (name: string): string => `before_${name}`;

/** Values for the dimensions of the kernel. */
export function queuedDimensions({ axes }: QueuedScan): { readonly [name: string]: number } {
  const [lead, column] = axes;
  const strides = (lead?.strides ?? []).map(
    (stride, position) => [strideName(position), stride] as const,
  );
  return {
    [rowsName]: lead?.extent ?? 1,
    [columnsName]: column?.extent ?? 1,
    ...(Object.fromEntries(strides) as { readonly [name: string]: number }),
  };
}

const extents = (): readonly [Size, Size] => [
  dim(rowsName),
  // A multiple of the boxes of every format.
  dim(columnsName, { multipleOf: 16 }),
];

function arraySpec({ axes }: QueuedScan, { dtype }: ScanArray, position: number): TensorSpec {
  const [rows, columns] = extents();
  const [lead] = axes;
  const box = inBox(dtype);
  const boxes = cdiv(columns, box);
  const stride: Size =
    lead?.extent === 1 ? box : alignedDimension(strideName(position), lead?.strides[position] ?? 1);
  return tensor(dtype, [rows, boxes, box], { strides: [stride, box, 1] });
}

export function queuedScanKernel(scan: QueuedScan): KernelDefinition {
  const { rule, configuration } = scan;
  const { columns, workers, queue } = configuration;
  const sets = queue.slack + 1;
  const named = (role: ScanArray["role"]) =>
    Object.fromEntries(
      rule.arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, arraySpec(scan, each, position)]] : [],
      ),
    );
  const queues = inputsOf(rule).map(({ name, dtype }): readonly [string, ScratchSpec] => [
    queueName(name),
    smem(dtype, [queue.slots, columns / inBox(dtype), inBox(dtype)]),
  ]);
  const shared = Object.entries(rule.state).flatMap(
    ([name, { dtype }]): (readonly [string, ScratchSpec])[] => [
      [totalName(name), smem(dtype, [sets, lanes])],
      // What comes before each lane, and behind them, or from the end before them, one that nothing comes before.
      [baseName(name), smem(dtype, [sets, lanes + 1])],
      [beforeName(name), smem(dtype, [sets, 1])],
    ],
  );
  const [rows, extent] = extents();
  return kernel(
    {
      name: "scan_queued",
      grid: { row: rows, worker: workers },
      ...{ threads: ["scan", "serve"], warps: queuedWarps },
      inputs: named("input"),
      outputs: named("output"),
      inouts: { [toldName]: tensor(dtypes.u64, toldShape(rule, [rows, extent], configuration, 0)) },
      scratch: {
        ...Object.fromEntries([...queues, ...shared]),
        brought: barrier({ count: queue.slots, arrivals: queues.length }),
        made: barrier({ count: queue.slots }),
        totalled: barrier({ count: sets }),
        known: barrier({ count: sets, arrivals: 2 }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const block = new QueuedBlock(scan, argument);
      const on = (thread: string, body: () => void): void => {
        (argument[thread] as (body: () => void) => void)(body);
      };
      on("scan", () => {
        block.combine();
      });
      on("serve", () => {
        warps((warp) => {
          const serving = [
            () => {
              block.move();
            },
            () => {
              block.tell();
            },
            () => {
              block.hear();
            },
          ];
          for (const [number, body] of serving.entries()) when(warp.eq(number), body);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** The body of the kernel, for one block. */
class QueuedBlock {
  readonly #scan: QueuedScan;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #row: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;
  readonly #pieces: Scalar<"i32">;
  readonly #waves: Scalar<"i32">;
  readonly #teller: Teller;

  constructor(scan: QueuedScan, argument: { readonly [name: string]: unknown }) {
    const { rule, configuration } = scan;
    const { columns, workers } = configuration;
    const [, extent] = extents();
    const count = (of: Size): Scalar<"i32"> => constant(dtypes.i32, 0).add(of as never);
    this.#scan = scan;
    this.#argument = argument;
    this.#row = argument["row"] as Scalar<"i32">;
    this.#worker = argument["worker"] as Scalar<"i32">;
    this.#pieces = count(cdiv(extent, columns));
    this.#waves = count(cdiv(extent, columns * workers));
    const told = (argument[toldName] as Ref<"u64">).at(this.#row);
    this.#teller = { rule, configuration, told, worker: this.#worker };
  }

  get #slots(): ReturnType<typeof ring> {
    return ring(this.#scan.configuration.queue.slots);
  }

  get #sets(): ReturnType<typeof ring> {
    return ring(this.#scan.configuration.queue.slack + 1);
  }

  #barrier(name: "brought" | "made" | "totalled" | "known", { slot }: RingPosition): Barrier {
    return (this.#argument[name] as Barrier).at(slot);
  }

  /** The scanning lanes: totals of one wave, then results of an earlier one. */
  combine(): void {
    const { slack } = this.#scan.configuration.queue;
    const first = { slot: this.#slots.start(), set: this.#sets.start() };
    const next = ({ slot, set }: typeof first): typeof first => ({
      slot: this.#slots.next(slot),
      set: this.#sets.next(set),
    });
    const ahead = loop({ to: this.#waves.minimum(slack), carry: first }, (wave, at) => {
      this.#total(wave, at.slot, at.set);
      return next(at);
    });
    loop({ to: this.#waves, carry: { ahead, at: first } }, (wave, carry) => {
      const later = wave.add(slack);
      when(later.lt(this.#waves), () => {
        this.#total(later, carry.ahead.slot, carry.ahead.set);
      });
      this.#results(wave, carry.at.slot, carry.at.set);
      return { ahead: next(carry.ahead), at: next(carry.at) };
    });
  }

  /** Totals of what each lane has of a piece. */
  #total(wave: Scalar<"i32">, slot: RingPosition, set: RingPosition): void {
    this.#barrier("brought", slot).wait({ parity: slot.phase });
    const totals = this.#scan.rule.total(this.#elements(wave, slot));
    this.#put(totalName, set, totals, lanes);
    this.#barrier("totalled", set).arrive();
  }

  /** Results of a piece, in its place of the queue. */
  #results(wave: Scalar<"i32">, slot: RingPosition, set: RingPosition): void {
    const { rule } = this.#scan;
    const known = this.#barrier("known", set);
    known.wait({ parity: set.phase });
    const bases = this.#get(baseName, set, [lanes, 1], rule.reverse ? 1 : 0);
    const before = rule.merge(this.#get(beforeName, set, [1, 1]), bases);
    const results = rule.finish(rule.merge(before, rule.running(this.#elements(wave, slot))));
    for (const [name, place] of placesOf(rule) ?? []) {
      const result = results[name];
      if (result === undefined) continue;
      const window = (this.#argument[queueName(place)] as Ref).at(slot.slot);
      window.store(
        result
          .broadcastTo([lanes, this.#each])
          .reshape([this.#scan.configuration.columns / inBox(result.dtype), inBox(result.dtype)]),
      );
    }
    commitShared();
    this.#barrier("made", slot).arrive();
  }

  /** Elements of a lane. */
  get #each(): number {
    return this.#scan.configuration.columns / lanes;
  }

  /** A piece as it is combined, neighbouring elements by each lane. Past the end there may be anything that nothing follows. */
  #elements(wave: Scalar<"i32">, { slot }: RingPosition): ReduceTiles {
    const { rule } = this.#scan;
    const layout = `(${bitNames("L", 5)} ${bitNames("W", Math.log2(queuedWarps))} | ${bitNames("R", Math.log2(this.#each))})`;
    const tiles = inputsOf(rule).map(({ name }): readonly [string, Tile] => [
      name,
      (this.#argument[queueName(name)] as Ref)
        .at(slot)
        .load()
        .reshape([lanes, this.#each])
        .layoutCast(layout),
    ]);
    const lifted = eachTile(rule.lift(Object.fromEntries(tiles)), (tile) =>
      tile.broadcastTo([lanes, this.#each]),
    );
    if (!rule.reverse) return lifted;
    const [, extent] = extents();
    const at = iota(dtypes.i32, [lanes, this.#each], { axis: 0 })
      .mul(this.#each)
      .add(iota(dtypes.i32, [lanes, this.#each], { axis: 1 }))
      .add(this.#piece(wave).mul(this.#scan.configuration.columns) as never);
    return only(rule, at.lt(extent as never), lifted);
  }

  /** The number of this block's piece of a wave; of what comes after the last one, the number after it. */
  #piece(wave: Scalar<"i32">): Scalar<"i32"> {
    const { rule, configuration } = this.#scan;
    const number = wave.mul(configuration.workers).add(this.#worker);
    // From the end, the first piece is the last.
    const piece = rule.reverse ? this.#pieces.sub(1).sub(number) : number;
    return number.lt(this.#pieces).select(piece, this.#pieces).maximum(0);
  }

  /** Copies pieces in ahead, and results out once they are made; their place is filled again when they have left it. */
  move(): void {
    const { queue } = this.#scan.configuration;
    loop({ to: this.#waves.minimum(queue.slots) }, (wave) => {
      this.#bring(wave, wave);
    });
    const carry = { at: this.#slots.start(), last: this.#slots.start() };
    loop({ to: this.#waves, carry }, (wave, { at, last }) => {
      this.#barrier("made", at).wait({ parity: at.phase });
      for (const [name, place] of placesOf(this.#scan.rule) ?? [])
        copyAsync((this.#argument[queueName(place)] as Ref).at(at.slot), this.#window(name, wave));
      commitGroup();
      // What the last wave made has left its place by now, or soon.
      const following = wave.add(queue.slots - 1);
      when(wave.gt(0).and(following.lt(this.#waves)), () => {
        waitGroup(1, { read: true });
        this.#bring(following, last.slot);
      });
      return { at: this.#slots.next(at), last: at };
    });
    waitGroup();
  }

  #bring(wave: Scalar<"i32">, slot: Scalar<"i32">): void {
    for (const { name } of inputsOf(this.#scan.rule))
      copyAsync(this.#window(name, wave), (this.#argument[queueName(name)] as Ref).at(slot), {
        barrier: (this.#argument["brought"] as Barrier).at(slot),
      });
  }

  #window(name: string, wave: Scalar<"i32">): Ref {
    const ref = this.#argument[name] as Ref;
    const box = Number(ref.shape[2]);
    const boxes = this.#scan.configuration.columns / box;
    const first = this.#piece(wave).mul(boxes).maximum(0);
    return ref.at(this.#row, slice(first, boxes), slice(0, box));
  }

  /** Tells the total of each wave, and lanes what comes before them within the block. */
  tell(): void {
    const { rule, configuration } = this.#scan;
    const { slack } = configuration.queue;
    const end = rule.reverse ? lanes : 0;
    for (const [name, tile] of Object.entries(nothing(rule, slack + 1)))
      (this.#argument[baseName(name)] as Ref).at(slice(0, slack + 1), slice(end, 1)).store(tile);
    loop({ to: this.#waves, carry: this.#sets.start() }, (wave, set) => {
      this.#barrier("totalled", set).wait({ parity: set.phase });
      // Neighbouring ones by each lane, which puts together its own before it asks others.
      const layout = `( | ${bitNames("R", Math.log2(lanes / 32))} ${bitNames("L", 5)})`;
      const totals = eachTile(this.#get(totalName, set, [1, lanes]), (tile) =>
        tile.layoutCast(layout),
      );
      tell(this.#teller, wave, rule.total(totals));
      const running = rule.running(totals);
      this.#put(baseName, set, running, lanes, rule.reverse ? 0 : 1);
      this.#barrier("known", set).arrive();
      return this.#sets.next(set);
    });
  }

  /** Hears what comes before the block's piece of each wave. */
  hear(): void {
    const { rule } = this.#scan;
    const carry = { set: this.#sets.start(), before: { ...nothing(rule, 1) } };
    loop({ to: this.#waves, carry }, (wave, { set, before }) => {
      // Nothing can be missed before this block has told its own; and by then lanes have read what was heard in this place last.
      this.#barrier("totalled", set).wait({ parity: set.phase });
      const heard = hear(this.#teller, wave, nothingHeard(this.#teller), before);
      this.#put(beforeName, set, heard.here, 1);
      this.#barrier("known", set).arrive();
      return { set: this.#sets.next(set), before: { ...heard.next } };
    });
  }

  /** States of a set in shared memory, by the name that they have there. */
  #put(
    named: (name: string) => string,
    { slot }: RingPosition,
    state: ReduceTiles,
    count: number,
    from = 0,
  ): void {
    for (const [name, tile] of Object.entries(state))
      (this.#argument[named(name)] as Ref)
        .at(slot, slice(from, count))
        .store(tile.reshape([count]));
  }

  #get(
    named: (name: string) => string,
    { slot }: RingPosition,
    shape: readonly [number, number],
    from = 0,
  ): ReduceTiles {
    return Object.fromEntries(
      Object.keys(this.#scan.rule.state).map((name) => [
        name,
        (this.#argument[named(name)] as Ref)
          .at(slot, slice(from, shape[0] * shape[1]))
          .load()
          .reshape(shape),
      ]),
    );
  }
}

function bitNames(name: string, count: number): string {
  return Array.from({ length: count }, (_, bit) => `${name}${bit}`).join(" ");
}
