/**
 * Long rows that blocks all over the GPU share: each block has the same columns of every row of its group, a piece of each row, which
 * comes through a queue in shared memory. What belongs to columns stays in registers, and statistics travel while lanes work
 * on other rows, so that nobody waits for them:
 *
 *   lanes      what each has measured of row 6      of row 7       of row 8      …   each as soon as its piece is there
 *              ·                                     results: row 0  row 1         …   each as soon as its statistics are known
 *   a warp     puts together what lanes have measured, and tells all blocks of the row
 *   a warp     hears what all of them have told, and puts it together
 *   a warp     copies the next pieces into places that lanes have read
 *
 * A piece stays in its place of the queue until results are made of it, and lanes read it twice, so that no registers hold it. Each warp
 * has the same share of every piece and never meets the others: where all of them did, before each measurement and each result,
 * softmax of 512 × 262144 took 163 µs instead of 135. A cluster
 * would tell sooner, but is placed within a group of processors, which holds few large ones.
 *
 * Every merge has a fixed order, so results repeat bit for bit.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { Operation, Planned } from "../../device/operation.ts";
import {
  tensor,
  barrier,
  commitShared,
  constant,
  kernel,
  loop,
  ring,
  slice,
  smem,
  warps,
  when,
} from "../../lang/index.ts";
import type {
  Barrier,
  KernelDefinition,
  Ref,
  RingPosition,
  Scalar,
  ScratchSpec,
  WindowIndex,
} from "../../lang/index.ts";
import { lanesPerWarp } from "../../targets/target.ts";
import type { Target } from "../../targets/target.ts";
import { fill } from "../elementwise/cast.ts";
import { composed } from "../support/compose.ts";
import type { StridedAxis } from "../support/strided.ts";
import { heardStates, nothingTold, tellWords, toldName } from "../support/mailbox.ts";
import { isElement } from "./choose-pipelined-rows.ts";
import type { ToldQueueConfiguration } from "./choose-pipelined-rows.ts";
import {
  QueueBlock,
  arraySpec,
  extentsOf,
  ownName,
  queueName,
  statisticName,
} from "./row-pipeline.ts";
import type { QueuedForm } from "./row-pipeline.ts";
import { queuedForm, queuedLaunch } from "./tma-pipelined-rows.ts";
import type { RowOp, RowTiles, Statistics } from "./row-op.ts";
import { toldShape, toldState } from "./row-statistics.ts";

interface ToldForm extends QueuedForm {
  readonly configuration: ToldQueueConfiguration;
}

/** The rows, after what blocks tell has been cleared. */
export function planToldQueue(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: ToldQueueConfiguration,
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<ToldQueueConfiguration> {
  const { blocks } = configuration;
  const queued = queuedForm(op, axes, configuration);
  // No box is shared by two warps.
  const box = Math.min(queued.box, configuration.columns / configuration.warps);
  const form: ToldForm = { ...queued, configuration, box };
  const launch = () => {
    const made = queuedLaunch(form, axes, kernels, () => toldQueueKernel(form));
    return [{ ...made, arguments: { ...made.arguments, [toldName]: { argument: toldName } } }];
  };
  const shape = toldShape(op, [axes[0]?.extent ?? 1], blocks) as readonly number[];
  const cleared = {
    operation: fill({ out: tensor(dtypes.u64, shape), value: 0 }) as unknown as Operation,
    dimensions: {},
    arrays: { out: toldName },
  };
  const { launches, scratch } = composed([cleared, launch], target);
  return {
    configuration,
    source: "heuristic",
    launches,
    scratch: { ...scratch, [toldName]: { dtype: dtypes.u64, shape } },
  };
}

function toldQueueKernel(form: ToldForm): KernelDefinition {
  const { op, configuration, box } = form;
  const { blocks, workers, slots, columns, slack } = configuration;
  const lanes = lanesPerWarp * configuration.warps;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, arraySpec(form, each, position)]] : [],
      ),
    );
  const elements = op.arrays.filter(isElement);
  const queues = elements.map(({ name, dtype }): readonly [string, ScratchSpec] => [
    queueName(name),
    smem(dtype, [slots, columns / box, box]),
  ]);
  const shared = op.statistics.flatMap((name): (readonly [string, ScratchSpec])[] => [
    [ownName(name), smem(op.compute, [slack + 1, lanes])],
    [statisticName(name), smem(op.compute, [slack + 1, 1])],
  ]);
  const { height } = extentsOf(form);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers, part: blocks },
      ...{ threads: ["work", "serve"], warps: configuration.warps },
      inputs: named("input"),
      outputs: named("output"),
      inouts: { [toldName]: tensor(dtypes.u64, toldShape(op, [height], blocks)) },
      scratch: {
        ...Object.fromEntries([...queues, ...shared]),
        brought: barrier({ count: slots, arrivals: elements.length }),
        read: barrier({ count: slots, arrivals: configuration.warps }),
        measured: barrier({ count: slack + 1, arrivals: configuration.warps }),
        known: barrier({ count: slack + 1, arrivals: 2 }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const on = (thread: string, body: () => void): void => {
        (argument[thread] as (body: () => void) => void)(body);
      };
      on("work", () => {
        warps((warp) => {
          new ToldBlock(form, argument, warp).work();
        });
      });
      on("serve", () => {
        warps((warp) => {
          const block = new ToldBlock(form, argument);
          const serving = [() => block.bring(), () => block.tell(), () => block.hear()];
          for (const [number, body] of serving.entries()) when(warp.eq(number), body);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** Where a row is: its place of the queue, and that of its statistics. */
interface Place {
  readonly [name: string]: RingPosition;
  readonly slot: RingPosition;
  readonly set: RingPosition;
}

/** The body of the kernel: of a warp that works, or of those that serve. */
class ToldBlock {
  readonly #form: ToldForm;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #block: QueueBlock;
  readonly #warp: Scalar<"i32"> | undefined;
  readonly #part: Scalar<"i32">;
  readonly #count: Scalar<"i32">;
  readonly #turns: Scalar<"i32">;

  constructor(
    form: ToldForm,
    argument: { readonly [name: string]: unknown },
    warp?: Scalar<"i32">,
  ) {
    const { workers } = form.configuration;
    this.#form = form;
    this.#argument = argument;
    this.#warp = warp;
    this.#block = new QueueBlock(form, argument, warp);
    this.#part = argument["part"] as Scalar<"i32">;
    const { height } = extentsOf(form);
    this.#count = constant(dtypes.i32, 0).add(height as never);
    this.#turns = this.#count
      .sub(argument["worker"] as Scalar<"i32">)
      .add(workers - 1)
      .div(workers);
  }

  get #slots(): ReturnType<typeof ring> {
    return ring(this.#form.configuration.slots);
  }

  get #sets(): ReturnType<typeof ring> {
    return ring(this.#form.configuration.slack + 1);
  }

  #barrier(name: "brought" | "read" | "measured" | "known", { slot }: RingPosition): Barrier {
    return (this.#argument[name] as Barrier).at(slot);
  }

  /** A warp that works: it measures its share of one row, then makes results of an earlier one. */
  work(): void {
    const { slack } = this.#form.configuration;
    const zero = constant(dtypes.i32, 0);
    const kept = this.#block.columnTiles(zero);
    const first: Place = { slot: this.#slots.start(), set: this.#sets.start() };
    const next = ({ slot, set }: Place): Place => ({
      slot: this.#slots.next(slot),
      set: this.#sets.next(set),
    });
    // What belongs to a row is asked for a turn before it is needed.
    const ofRow = (turn: Scalar<"i32">): RowTiles => this.#block.rowTiles(turn, this.#count);
    const start = { at: first, measured: ofRow(zero) };
    const ahead = loop(
      { to: this.#turns.minimum(slack), carry: start },
      (turn, { at, measured }) => {
        const following = ofRow(turn.add(1));
        this.#measure(at, { ...measured, ...kept });
        return { at: next(at), measured: following };
      },
    );
    loop({ to: this.#turns, carry: { ahead, at: first, made: ofRow(zero) } }, (turn, carry) => {
      const later = turn.add(slack);
      const following = { measured: ofRow(later.add(1)), made: ofRow(turn.add(1)) };
      when(later.lt(this.#turns), () => {
        this.#measure(carry.ahead.at, { ...carry.ahead.measured, ...kept });
      });
      this.#results(turn, carry.at, carry.made, kept);
      return {
        ahead: { at: next(carry.ahead.at), measured: following.measured },
        at: next(carry.at),
        made: following.made,
      };
    });
  }

  /** What each lane measures of what it has of a piece. */
  #measure(at: Place, beside: RowTiles): void {
    const { op } = this.#form;
    this.#block.brought(at.slot);
    const piece = this.#block.piece(constant(dtypes.i32, 0));
    const own = op.measure({ ...beside, ...this.#block.queuedTiles(at.slot.slot) }, piece);
    const first = (this.#warp ?? constant(dtypes.i32, 0)).mul(lanesPerWarp);
    this.#put(ownName, [at.set.slot, slice(first, lanesPerWarp)], own, lanesPerWarp);
    this.#barrier("measured", at.set).arrive();
  }

  #results(turn: Scalar<"i32">, at: Place, ofRow: RowTiles, kept: RowTiles): void {
    const { op } = this.#form;
    const index = constant(dtypes.i32, 0);
    const tiles = { ...ofRow, ...kept, ...this.#block.queuedTiles(at.slot.slot) };
    this.#barrier("known", at.set).wait({ parity: at.set.phase });
    const statistics = this.#get(statisticName, at.set, 1);
    const results = op.results(tiles, statistics, this.#block.piece(index));
    commitShared();
    this.#barrier("read", at.slot).arrive();
    this.#block.storePiece(turn, index, results);
    this.#block.storeRow(turn, ofRow, statistics);
  }

  /** Copies pieces in, the first ones at once and others as places have been read. */
  bring(): void {
    const { slots } = this.#form.configuration;
    const index = constant(dtypes.i32, 0);
    loop({ to: this.#turns.minimum(slots) }, (turn) => {
      this.#block.bring(turn, index, turn);
    });
    loop({ from: slots, to: this.#turns, carry: this.#slots.start() }, (turn, at) => {
      this.#barrier("read", at).wait({ parity: at.phase });
      this.#block.bring(turn, index, at.slot);
      return this.#slots.next(at);
    });
  }

  /** Tells what lanes have measured of each row. */
  tell(): void {
    const { op, configuration } = this.#form;
    loop({ to: this.#turns, carry: this.#sets.start() }, (turn, set) => {
      this.#barrier("measured", set).wait({ parity: set.phase });
      const own = op.join(this.#get(ownName, set, lanesPerWarp * configuration.warps));
      tellWords(toldState(op), this.#words(turn), this.#part, own);
      // Lanes may measure into this place again.
      this.#barrier("known", set).arrive();
      return this.#sets.next(set);
    });
  }

  /** Hears the statistics of each row. */
  hear(): void {
    const { op, configuration } = this.#form;
    const { blocks } = configuration;
    const state = toldState(op);
    loop({ to: this.#turns, carry: this.#sets.start() }, (turn, set) => {
      // Nothing can be missed before this block has told its own; and by then lanes have read what was heard in this place last.
      this.#barrier("measured", set).wait({ parity: set.phase });
      const all = heardStates(state, this.#words(turn), nothingTold(state, blocks));
      const parts = Object.entries(all).map(([name, tile]) => [
        name,
        tile.slice([0, 0], [1, blocks]).reshape([blocks, 1]),
      ]);
      this.#put(statisticName, [set.slot], op.join(Object.fromEntries(parts) as Statistics), 1);
      this.#barrier("known", set).arrive();
      return this.#sets.next(set);
    });
  }

  #words(turn: Scalar<"i32">): Ref<"u64"> {
    return (this.#argument[toldName] as Ref<"u64">).at(this.#block.row(turn));
  }

  /** Statistics of a row in shared memory, by the name that they have there. */
  #put(
    named: (name: string) => string,
    place: readonly WindowIndex[],
    values: Statistics,
    count: number,
  ): void {
    for (const name of this.#form.op.statistics)
      (this.#argument[named(name)] as Ref)
        .at(...place)
        .store((values[name] as Statistics[string]).broadcastTo([count, 1]).reshape([count]));
  }

  #get(named: (name: string) => string, { slot }: RingPosition, count: number): Statistics {
    return Object.fromEntries(
      this.#form.op.statistics.map((name) => [
        name,
        (this.#argument[named(name)] as Ref).at(slot).load().reshape([count, 1]),
      ]),
    );
  }
}
