/**
 * A warp-specialized scan of few, long, contiguous rows. As in `grid-cooperative-scan.ts`, the blocks of a row go through it in waves and
 * exchange the aggregates of their pieces. Here TMA moves pieces through a pipeline of stages in shared memory, and dedicated warps do
 * everything but the scan itself:
 *
 *   scan       sum of my 32 elements: wave 2      sum: wave 3        sum: wave 4        …   each as soon as the piece has arrived
 *              ·                                   results: wave 0    results: wave 1    …   each as soon as its prefix is known
 *   a warp     the prefix of each thread within the block; publishes the block's aggregate
 *   a warp     receives the aggregates of all blocks: the prefix of the block
 *   a warp     stores results and loads the next pieces, by TMA
 *
 * Scanning threads synchronize through barriers in shared memory only, with work that was started waves before. A piece stays in its
 * stage until its results are stored from there. Threads read it twice, so no registers hold it in between.
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
import { eachTile, identityState, masked } from "./scan-kernel.ts";
import type { ScanArray, ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import { mailboxName } from "../support/mailbox.ts";
import {
  aggregatesMailboxShape,
  noAggregates,
  publishAggregate,
  receivePrefix,
} from "./block-aggregates.ts";
import type { AggregateExchange } from "./block-aggregates.ts";

/** Warps that scan. The exchange has a program thread of as many, of which three are used. */
export const pipelineWarps = 8;
const threads = 32 * pipelineWarps;

/** Bytes of a thread's elements at most, as copied and as combined; and elements of a thread at most. */
const [bytesPerThread, mostPerThread] = [128, 32] as const;

/** Shared memory beside the pipeline: threads exchange elements through it. */
const exchangeBytes = 18 * 1024;

/** Bytes of a row of a box: as wide as a swizzle, so that threads read neighbouring segments without bank conflicts. */
const boxBytes = 128;

/** Rows of a box at most. */
const mostBoxRows = 256;

const inBox = ({ bits }: DType): number => (boxBytes * 8) / bits;

export interface ScanPipelineShape {
  /** Stages of the pipeline, a piece each. */
  readonly stages: number;
  /** Waves by which aggregates are ahead of results. */
  readonly lookahead: number;
}

/** The shape of the pipeline; undefined where TMA cannot move the rows. */
export function choosePipeline(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  target: Target,
): { readonly columns: number; readonly pipeline: ScanPipelineShape } | undefined {
  if (!isPipelinable(rule, axes, target)) return undefined;
  const [copied, combined] = [bytesOf(inputsOf(rule)), bytesOf(Object.values(rule.state))];
  const most = bytesPerThread / Math.max(copied, combined);
  let each = mostPerThread;
  while (each > Math.max(1, most)) each /= 2;
  const columns = threads * each;
  const pipelineBytes = target.sharedMemoryPerBlock - exchangeBytes;
  let pipeline: ScanPipelineShape | undefined;
  for (let stages = 3; ; stages += 1) {
    // Half of the stages wait for prefixes, the other half for loads and stores.
    const next = { stages, lookahead: Math.floor(stages / 2) };
    if (pipelineBytesOf(rule, columns, next) > pipelineBytes) break;
    pipeline = next;
  }
  return pipeline === undefined ? undefined : { columns, pipeline };
}

function bytesOf(parts: readonly { readonly dtype: DType }[]): number {
  return parts.reduce((sum, { dtype }) => sum + dtype.bits / 8, 0);
}

/** Shared memory of a pipeline and of the aggregates and prefixes of its pieces. */
function pipelineBytesOf(
  rule: ScanRule,
  columns: number,
  { stages, lookahead }: ScanPipelineShape,
): number {
  const states = (lookahead + 1) * (2 * threads + 2) * bytesOf(Object.values(rule.state));
  return stages * columns * bytesOf(inputsOf(rule)) + states;
}

/** Whether a TMA copy takes a piece of so many columns and shared memory holds all stages. */
export function isPossiblePipeline(
  rule: ScanRule,
  columns: number,
  pipeline: ScanPipelineShape,
  { sharedMemoryPerBlock }: Target,
): boolean {
  const { stages, lookahead } = pipeline;
  const isCounted = [stages, lookahead].every((count) => Number.isSafeInteger(count) && count >= 1);
  // A stage is refilled when the results of the next piece are stored, which follow the aggregates of later ones.
  if (!isCounted || stages < lookahead + 2) return false;
  const isCopied = inputsOf(rule).every(({ dtype }) => columns <= mostBoxRows * inBox(dtype));
  return isCopied && pipelineBytesOf(rule, columns, pipeline) <= sharedMemoryPerBlock;
}

/** Whether TMA boxes make up the rows, and results fit in the stages of inputs. */
export function isPipelinable(
  rule: ScanRule,
  axes: readonly StridedAxis[],
  { features }: Target,
): boolean {
  const [lead, column] = axes;
  if (axes.length !== 2 || lead === undefined || column === undefined) return false;
  if (!features.includes("tma") || stagesOfResults(rule) === undefined) return false;
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

/** For each result the input of the same format whose stage it overwrites; undefined where there are not enough. */
function stagesOfResults(rule: ScanRule): ReadonlyMap<string, string> | undefined {
  const left = [...inputsOf(rule)];
  const found = new Map<string, string>();
  for (const { name, dtype, role } of rule.arrays) {
    if (role === "input") continue;
    const index = left.findIndex((input) => input.dtype === dtype);
    const [input] = index < 0 ? [] : left.splice(index, 1);
    if (input === undefined) return undefined;
    found.set(name, input.name);
  }
  return found;
}

/** What the kernel depends on. */
export interface PipelinedScan {
  readonly rule: ScanRule;
  readonly configuration: ScanConfiguration & { readonly pipeline: ScanPipelineShape };
  readonly axes: readonly StridedAxis[];
}

const [rowsName, columnsName] = ["rows", "columns"];
const strideName = (position: number): string => `stride${position}`;
const queueName = (name: string): string => `queue_${name}`;
const totalName = (name: string): string => `total_${name}`;
const baseName = (name: string): string => `base_${name}`;
const beforeName = (name: string): string => `before_${name}`;

/** Values for the dimensions of the kernel. */
export function pipelinedDimensions({ axes }: PipelinedScan): { readonly [name: string]: number } {
  const [lead, column] = axes;
  const strides = (lead?.strides ?? []).map(
    (stride, position) => [strideName(position), stride] as const,
  );
  return {
    [rowsName]: lead?.extent ?? 1,
    [columnsName]: column?.extent ?? 1,
    ...Object.fromEntries(strides),
  };
}

const extents = (): readonly [Size, Size] => [
  dim(rowsName),
  // A multiple of the boxes of every format.
  dim(columnsName, { multipleOf: 16 }),
];

function arraySpec({ axes }: PipelinedScan, { dtype }: ScanArray, position: number): TensorSpec {
  const [rows, columns] = extents();
  const [lead] = axes;
  const box = inBox(dtype);
  const boxes = cdiv(columns, box);
  const stride: Size =
    lead?.extent === 1 ? box : alignedDimension(strideName(position), lead?.strides[position] ?? 1);
  return tensor(dtype, [rows, boxes, box], { strides: [stride, box, 1] });
}

export function pipelinedScanKernel(scan: PipelinedScan): KernelDefinition {
  const { rule, configuration } = scan;
  const { columns, workers, pipeline } = configuration;
  const sets = pipeline.lookahead + 1;
  const named = (role: ScanArray["role"]) =>
    Object.fromEntries(
      rule.arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, arraySpec(scan, each, position)]] : [],
      ),
    );
  const inputStages = inputsOf(rule).map(({ name, dtype }): readonly [string, ScratchSpec] => [
    queueName(name),
    smem(dtype, [pipeline.stages, columns / inBox(dtype), inBox(dtype)]),
  ]);
  const shared = Object.entries(rule.state).flatMap(
    ([name, { dtype }]): (readonly [string, ScratchSpec])[] => [
      [totalName(name), smem(dtype, [sets, threads])],
      // The exclusive prefix of each thread, and the identity in front; in reverse, behind.
      [baseName(name), smem(dtype, [sets, threads + 1])],
      [beforeName(name), smem(dtype, [sets, 1])],
    ],
  );
  const [rows, extent] = extents();
  return kernel(
    {
      name: "scan_tma_pipelined",
      grid: { row: rows, worker: workers },
      ...{ threads: ["scan", "exchange"], warps: pipelineWarps },
      inputs: named("input"),
      outputs: named("output"),
      inouts: {
        [mailboxName]: tensor(
          dtypes.u64,
          aggregatesMailboxShape(rule, [rows, extent], configuration, 0),
        ),
      },
      scratch: {
        ...Object.fromEntries([...inputStages, ...shared]),
        loaded: barrier({ count: pipeline.stages, arrivals: inputStages.length }),
        scanned: barrier({ count: pipeline.stages }),
        aggregated: barrier({ count: sets }),
        prefixed: barrier({ count: sets, arrivals: 2 }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const block = new ScanPipeline(scan, argument);
      const on = (thread: string, body: () => void): void => {
        (argument[thread] as (body: () => void) => void)(body);
      };
      on("scan", () => {
        block.scan();
      });
      on("exchange", () => {
        warps((warp) => {
          const roles = [
            () => {
              block.copy();
            },
            () => {
              block.publish();
            },
            () => {
              block.receive();
            },
          ];
          for (const [number, body] of roles.entries()) when(warp.eq(number), body);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** The body of the kernel, for one block. */
class ScanPipeline {
  readonly #scan: PipelinedScan;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #row: Scalar<"i32">;
  readonly #worker: Scalar<"i32">;
  readonly #pieces: Scalar<"i32">;
  readonly #waves: Scalar<"i32">;
  readonly #aggregates: AggregateExchange;

  constructor(scan: PipelinedScan, argument: { readonly [name: string]: unknown }) {
    const { rule, configuration } = scan;
    const { columns, workers } = configuration;
    const [, extent] = extents();
    const count = (of: Size): Scalar<"i32"> => constant(dtypes.i32, 0).add(of);
    this.#scan = scan;
    this.#argument = argument;
    this.#row = argument["row"] as Scalar<"i32">;
    this.#worker = argument["worker"] as Scalar<"i32">;
    this.#pieces = count(cdiv(extent, columns));
    this.#waves = count(cdiv(extent, columns * workers));
    const mailbox = (argument[mailboxName] as Ref<"u64">).at(this.#row);
    this.#aggregates = { rule, configuration, mailbox, worker: this.#worker };
  }

  get #stages(): ReturnType<typeof ring> {
    return ring(this.#scan.configuration.pipeline.stages);
  }

  get #sets(): ReturnType<typeof ring> {
    return ring(this.#scan.configuration.pipeline.lookahead + 1);
  }

  #barrier(
    name: "loaded" | "scanned" | "aggregated" | "prefixed",
    { slot }: RingPosition,
  ): Barrier {
    return (this.#argument[name] as Barrier).at(slot);
  }

  /** The scanning threads: sums of one wave, then results of an earlier one. */
  scan(): void {
    const { lookahead } = this.#scan.configuration.pipeline;
    const first = { slot: this.#stages.start(), set: this.#sets.start() };
    const next = ({ slot, set }: typeof first): typeof first => ({
      slot: this.#stages.next(slot),
      set: this.#sets.next(set),
    });
    const ahead = loop({ to: this.#waves.minimum(lookahead), carry: first }, (wave, at) => {
      this.#total(wave, at.slot, at.set);
      return next(at);
    });
    loop({ to: this.#waves, carry: { ahead, at: first } }, (wave, carry) => {
      const later = wave.add(lookahead);
      when(later.lt(this.#waves), () => {
        this.#total(later, carry.ahead.slot, carry.ahead.set);
      });
      this.#results(wave, carry.at.slot, carry.at.set);
      return { ahead: next(carry.ahead), at: next(carry.at) };
    });
  }

  /** The sum of the elements of each thread. */
  #total(wave: Scalar<"i32">, slot: RingPosition, set: RingPosition): void {
    this.#barrier("loaded", slot).wait({ parity: slot.phase });
    const totals = this.#scan.rule.total(this.#elements(wave, slot));
    this.#put(totalName, set, totals, threads);
    this.#barrier("aggregated", set).arrive();
  }

  /** Results of a piece, in its stage. */
  #results(wave: Scalar<"i32">, slot: RingPosition, set: RingPosition): void {
    const { rule } = this.#scan;
    const prefixed = this.#barrier("prefixed", set);
    prefixed.wait({ parity: set.phase });
    const bases = this.#get(baseName, set, [threads, 1], rule.reverse ? 1 : 0);
    const before = rule.merge(this.#get(beforeName, set, [1, 1]), bases);
    const results = rule.finish(rule.merge(before, rule.running(this.#elements(wave, slot))));
    for (const [name, input] of stagesOfResults(rule) ?? []) {
      const result = results[name];
      if (result === undefined) continue;
      const window = (this.#argument[queueName(input)] as Ref).at(slot.slot);
      window.store(
        result
          .broadcastTo([threads, this.#each])
          .reshape([this.#scan.configuration.columns / inBox(result.dtype), inBox(result.dtype)]),
      );
    }
    commitShared();
    this.#barrier("scanned", slot).arrive();
  }

  /** Elements of a thread. */
  get #each(): number {
    return this.#scan.configuration.columns / threads;
  }

  /** A piece in registers, neighbouring elements by each thread. Past the end it may hold anything: nothing follows it. */
  #elements(wave: Scalar<"i32">, { slot }: RingPosition): ReduceTiles {
    const { rule } = this.#scan;
    const layout = `(${bitNames("L", 5)} ${bitNames("W", Math.log2(pipelineWarps))} | ${bitNames("R", Math.log2(this.#each))})`;
    const tiles = inputsOf(rule).map(({ name }): readonly [string, Tile] => [
      name,
      (this.#argument[queueName(name)] as Ref)
        .at(slot)
        .load()
        .reshape([threads, this.#each])
        .layoutCast(layout),
    ]);
    const lifted = eachTile(rule.lift(Object.fromEntries(tiles)), (tile) =>
      tile.broadcastTo([threads, this.#each]),
    );
    if (!rule.reverse) return lifted;
    const [, extent] = extents();
    const at = iota(dtypes.i32, [threads, this.#each], { axis: 0 })
      .mul(this.#each)
      .add(iota(dtypes.i32, [threads, this.#each], { axis: 1 }))
      .add(this.#piece(wave).mul(this.#scan.configuration.columns));
    return masked(rule, at.lt(extent), lifted);
  }

  /** The index of this block's piece of a wave; past the last piece, the number of pieces. */
  #piece(wave: Scalar<"i32">): Scalar<"i32"> {
    const { rule, configuration } = this.#scan;
    const number = wave.mul(configuration.workers).add(this.#worker);
    // From the end, the first piece is the last.
    const piece = rule.reverse ? this.#pieces.sub(1).sub(number) : number;
    return number.lt(this.#pieces).select(piece, this.#pieces).maximum(0);
  }

  /** Loads pieces ahead and stores results. A stage is refilled once its results have left it. */
  copy(): void {
    const { pipeline } = this.#scan.configuration;
    loop({ to: this.#waves.minimum(pipeline.stages) }, (wave) => {
      this.#load(wave, wave);
    });
    const carry = { at: this.#stages.start(), last: this.#stages.start() };
    loop({ to: this.#waves, carry }, (wave, { at, last }) => {
      this.#barrier("scanned", at).wait({ parity: at.phase });
      for (const [name, input] of stagesOfResults(this.#scan.rule) ?? [])
        copyAsync((this.#argument[queueName(input)] as Ref).at(at.slot), this.#window(name, wave));
      commitGroup();
      // The results of the last wave have left their stage by now, or soon.
      const following = wave.add(pipeline.stages - 1);
      when(wave.gt(0).and(following.lt(this.#waves)), () => {
        waitGroup(1, { read: true });
        this.#load(following, last.slot);
      });
      return { at: this.#stages.next(at), last: at };
    });
    waitGroup();
  }

  #load(wave: Scalar<"i32">, stage: Scalar<"i32">): void {
    for (const { name } of inputsOf(this.#scan.rule))
      copyAsync(this.#window(name, wave), (this.#argument[queueName(name)] as Ref).at(stage), {
        barrier: (this.#argument["loaded"] as Barrier).at(stage),
      });
  }

  #window(name: string, wave: Scalar<"i32">): Ref {
    const ref = this.#argument[name] as Ref;
    const box = Number(ref.shape[2]);
    const boxes = this.#scan.configuration.columns / box;
    const first = this.#piece(wave).mul(boxes).maximum(0);
    return ref.at(this.#row, slice(first, boxes), slice(0, box));
  }

  /** Publishes the aggregate of each wave, and gives every thread its prefix within the block. */
  publish(): void {
    const { rule, configuration } = this.#scan;
    const { lookahead } = configuration.pipeline;
    const end = rule.reverse ? threads : 0;
    for (const [name, tile] of Object.entries(identityState(rule, lookahead + 1)))
      (this.#argument[baseName(name)] as Ref)
        .at(slice(0, lookahead + 1), slice(end, 1))
        .store(tile);
    loop({ to: this.#waves, carry: this.#sets.start() }, (wave, set) => {
      this.#barrier("aggregated", set).wait({ parity: set.phase });
      // Neighbouring sums by each thread, which combines its own before it exchanges with others.
      const layout = `( | ${bitNames("R", Math.log2(threads / 32))} ${bitNames("L", 5)})`;
      const totals = eachTile(this.#get(totalName, set, [1, threads]), (tile) =>
        tile.layoutCast(layout),
      );
      publishAggregate(this.#aggregates, wave, rule.total(totals));
      const running = rule.running(totals);
      this.#put(baseName, set, running, threads, rule.reverse ? 0 : 1);
      this.#barrier("prefixed", set).arrive();
      return this.#sets.next(set);
    });
  }

  /** Receives the prefix of the block's piece of each wave. */
  receive(): void {
    const { rule } = this.#scan;
    const carry = { set: this.#sets.start(), before: { ...identityState(rule, 1) } };
    loop({ to: this.#waves, carry }, (wave, { set, before }) => {
      // Before this block has published, nothing is delayed by waiting; and by then threads have read the prefix that was here.
      this.#barrier("aggregated", set).wait({ parity: set.phase });
      const prefix = receivePrefix(this.#aggregates, wave, noAggregates(this.#aggregates), before);
      this.#put(beforeName, set, prefix.here, 1);
      this.#barrier("prefixed", set).arrive();
      return { set: this.#sets.next(set), before: { ...prefix.next } };
    });
  }

  /** Stores the states of a set in shared memory; `named` gives the buffer of each. */
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
