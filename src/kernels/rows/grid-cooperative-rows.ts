/**
 * Grid-cooperative rows: many long rows, each shared by co-resident blocks anywhere on the GPU. A block has the same columns of every
 * row of its group, one piece a row. TMA moves pieces through a pipeline in shared memory, per-column inputs stay in registers, and
 * statistics are exchanged through a mailbox in global memory while threads work on other rows:
 *
 *   work       statistics of my elements: row 6      row 7           row 8        …   each as soon as its piece has arrived
 *              ·                                      results: row 0  row 1        …   each as soon as its statistics are known
 *   a warp     merges the statistics of all threads and publishes them
 *   a warp     receives the statistics of all blocks of the row and merges them
 *   a warp     loads the next pieces into free stages, by TMA
 *
 * A piece stays in its stage until its results are made. Threads read it twice, so no registers hold it in between. Each warp has
 * the same share of every piece and never synchronizes with the others: with a barrier before each measurement and each result, softmax of
 * 512 × 262144 took 163 µs instead of 135. A cluster would exchange statistics faster, but large clusters do not fill the GPU.
 *
 * All merges have a fixed order, so results repeat bit for bit.
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
import { receiveAll, nothingReceived, publish, mailboxName } from "../support/mailbox.ts";
import { isElement } from "./choose-pipelined-rows.ts";
import type { GridCooperativeRowsConfiguration } from "./choose-pipelined-rows.ts";
import {
  RowPipeline,
  arraySpec,
  extentsOf,
  ownName,
  queueName,
  statisticName,
} from "./row-pipeline.ts";
import type { PipelinedForm } from "./row-pipeline.ts";
import { pipelinedForm, pipelinedLaunch } from "./tma-pipelined-rows.ts";
import type { RowOp, RowTiles, Statistics } from "./row-op.ts";
import { statisticsMailboxShape, statisticsState } from "./row-statistics.ts";

interface GridCooperativeForm extends PipelinedForm {
  readonly configuration: GridCooperativeRowsConfiguration;
}

/** Clears the mailbox, then launches the rows. */
export function planGridCooperativeRows(
  op: RowOp,
  axes: readonly StridedAxis[],
  configuration: GridCooperativeRowsConfiguration,
  kernels: Map<string, KernelDefinition>,
  target: Target,
): Planned<GridCooperativeRowsConfiguration> {
  const { blocks } = configuration;
  const queued = pipelinedForm(op, axes, configuration);
  // A TMA box belongs to one warp.
  const box = Math.min(queued.box, configuration.columns / configuration.warps);
  const form: GridCooperativeForm = { ...queued, configuration, box };
  const launch = () => {
    const made = pipelinedLaunch(form, axes, kernels, () => gridCooperativeRowsKernel(form));
    return [
      { ...made, arguments: { ...made.arguments, [mailboxName]: { argument: mailboxName } } },
    ];
  };
  const shape = statisticsMailboxShape(op, [axes[0]?.extent ?? 1], blocks) as readonly number[];
  const cleared = {
    operation: fill({ out: tensor(dtypes.u64, shape), value: 0 }) as unknown as Operation,
    dimensions: {},
    arrays: { out: mailboxName },
  };
  const { launches, scratch } = composed([cleared, launch], target);
  return {
    configuration,
    source: "heuristic",
    launches,
    scratch: { ...scratch, [mailboxName]: { dtype: dtypes.u64, shape } },
  };
}

function gridCooperativeRowsKernel(form: GridCooperativeForm): KernelDefinition {
  const { op, configuration, box } = form;
  const { blocks, workers, stages, columns, lookahead } = configuration;
  const threads = lanesPerWarp * configuration.warps;
  const named = (role: "input" | "output") =>
    Object.fromEntries(
      op.arrays.flatMap((each, position) =>
        each.role === role ? [[each.name, arraySpec(form, each, position)]] : [],
      ),
    );
  const elements = op.arrays.filter(isElement);
  const queues = elements.map(({ name, dtype }): readonly [string, ScratchSpec] => [
    queueName(name),
    smem(dtype, [stages, columns / box, box]),
  ]);
  const shared = op.statistics.flatMap((name): (readonly [string, ScratchSpec])[] => [
    [ownName(name), smem(op.compute, [lookahead + 1, threads])],
    [statisticName(name), smem(op.compute, [lookahead + 1, 1])],
  ]);
  const { height } = extentsOf(form);
  return kernel(
    {
      name: op.name,
      grid: { worker: workers, rank: blocks },
      ...{ threads: ["work", "exchange"], warps: configuration.warps },
      inputs: named("input"),
      outputs: named("output"),
      inouts: { [mailboxName]: tensor(dtypes.u64, statisticsMailboxShape(op, [height], blocks)) },
      scratch: {
        ...Object.fromEntries([...queues, ...shared]),
        loaded: barrier({ count: stages, arrivals: elements.length }),
        released: barrier({ count: stages, arrivals: configuration.warps }),
        measured: barrier({ count: lookahead + 1, arrivals: configuration.warps }),
        ready: barrier({ count: lookahead + 1, arrivals: 2 }),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const on = (thread: string, body: () => void): void => {
        (argument[thread] as (body: () => void) => void)(body);
      };
      on("work", () => {
        warps((warp) => {
          new GridCooperativeBlock(form, argument, warp).work();
        });
      });
      on("exchange", () => {
        warps((warp) => {
          const block = new GridCooperativeBlock(form, argument);
          const roles = [() => block.load(), () => block.publish(), () => block.receive()];
          for (const [number, body] of roles.entries()) when(warp.eq(number), body);
        });
      });
    },
  ) as unknown as KernelDefinition;
}

/** Where a row is in the pipeline: its stage, and the set of its statistics. */
interface RowPosition {
  readonly [name: string]: RingPosition;
  readonly stage: RingPosition;
  readonly set: RingPosition;
}

/** The body of the kernel: of a warp that works, or of the warps that load and exchange. */
class GridCooperativeBlock {
  readonly #form: GridCooperativeForm;
  readonly #argument: { readonly [name: string]: unknown };
  readonly #pipeline: RowPipeline;
  readonly #warp: Scalar<"i32"> | undefined;
  readonly #rank: Scalar<"i32">;
  readonly #count: Scalar<"i32">;
  readonly #iterations: Scalar<"i32">;

  constructor(
    form: GridCooperativeForm,
    argument: { readonly [name: string]: unknown },
    warp?: Scalar<"i32">,
  ) {
    const { workers } = form.configuration;
    this.#form = form;
    this.#argument = argument;
    this.#warp = warp;
    this.#pipeline = new RowPipeline(form, argument, warp);
    this.#rank = argument["rank"] as Scalar<"i32">;
    const { height } = extentsOf(form);
    this.#count = constant(dtypes.i32, 0).add(height as never);
    this.#iterations = this.#count
      .sub(argument["worker"] as Scalar<"i32">)
      .add(workers - 1)
      .div(workers);
  }

  get #stages(): ReturnType<typeof ring> {
    return ring(this.#form.configuration.stages);
  }

  get #sets(): ReturnType<typeof ring> {
    return ring(this.#form.configuration.lookahead + 1);
  }

  #barrier(name: "loaded" | "released" | "measured" | "ready", { slot }: RingPosition): Barrier {
    return (this.#argument[name] as Barrier).at(slot);
  }

  /** A working warp: it measures its share of one row, then makes the results of an earlier one. */
  work(): void {
    const { lookahead } = this.#form.configuration;
    const zero = constant(dtypes.i32, 0);
    const columnTiles = this.#pipeline.columnTiles(zero);
    const first: RowPosition = { stage: this.#stages.start(), set: this.#sets.start() };
    const next = ({ stage, set }: RowPosition): RowPosition => ({
      stage: this.#stages.next(stage),
      set: this.#sets.next(set),
    });
    // Per-row inputs are loaded an iteration before they are needed.
    const ofRow = (iteration: Scalar<"i32">): RowTiles =>
      this.#pipeline.rowTiles(iteration, this.#count);
    const start = { at: first, measured: ofRow(zero) };
    const ahead = loop(
      { to: this.#iterations.minimum(lookahead), carry: start },
      (iteration, { at, measured }) => {
        const following = ofRow(iteration.add(1));
        this.#measure(at, { ...measured, ...columnTiles });
        return { at: next(at), measured: following };
      },
    );
    loop(
      { to: this.#iterations, carry: { ahead, at: first, made: ofRow(zero) } },
      (iteration, carry) => {
        const later = iteration.add(lookahead);
        const following = { measured: ofRow(later.add(1)), made: ofRow(iteration.add(1)) };
        when(later.lt(this.#iterations), () => {
          this.#measure(carry.ahead.at, { ...carry.ahead.measured, ...columnTiles });
        });
        this.#results(iteration, carry.at, carry.made, columnTiles);
        return {
          ahead: { at: next(carry.ahead.at), measured: following.measured },
          at: next(carry.at),
          made: following.made,
        };
      },
    );
  }

  /** The statistics of the elements of each thread. */
  #measure(at: RowPosition, beside: RowTiles): void {
    const { op } = this.#form;
    this.#pipeline.waitLoaded(at.stage);
    const piece = this.#pipeline.piece(constant(dtypes.i32, 0));
    const own = op.measure({ ...beside, ...this.#pipeline.stageTiles(at.stage.slot) }, piece);
    const first = (this.#warp ?? constant(dtypes.i32, 0)).mul(lanesPerWarp);
    this.#put(ownName, [at.set.slot, slice(first, lanesPerWarp)], own, lanesPerWarp);
    this.#barrier("measured", at.set).arrive();
  }

  #results(
    iteration: Scalar<"i32">,
    at: RowPosition,
    ofRow: RowTiles,
    columnTiles: RowTiles,
  ): void {
    const { op } = this.#form;
    const index = constant(dtypes.i32, 0);
    const tiles = { ...ofRow, ...columnTiles, ...this.#pipeline.stageTiles(at.stage.slot) };
    this.#barrier("ready", at.set).wait({ parity: at.set.phase });
    const statistics = this.#get(statisticName, at.set, 1);
    const results = op.results(tiles, statistics, this.#pipeline.piece(index));
    commitShared();
    this.#barrier("released", at.stage).arrive();
    this.#pipeline.storePiece(iteration, index, results);
    this.#pipeline.storeRow(iteration, ofRow, statistics);
  }

  /** Loads pieces: the first ones at once, the others as stages are released. */
  load(): void {
    const { stages } = this.#form.configuration;
    const index = constant(dtypes.i32, 0);
    loop({ to: this.#iterations.minimum(stages) }, (iteration) => {
      this.#pipeline.load(iteration, index, iteration);
    });
    loop({ from: stages, to: this.#iterations, carry: this.#stages.start() }, (iteration, at) => {
      this.#barrier("released", at).wait({ parity: at.phase });
      this.#pipeline.load(iteration, index, at.slot);
      return this.#stages.next(at);
    });
  }

  /** Publishes the statistics that the threads of this block have of each row. */
  publish(): void {
    const { op, configuration } = this.#form;
    loop({ to: this.#iterations, carry: this.#sets.start() }, (iteration, set) => {
      this.#barrier("measured", set).wait({ parity: set.phase });
      const own = op.mergeAll(this.#get(ownName, set, lanesPerWarp * configuration.warps));
      publish(statisticsState(op), this.#mailbox(iteration), this.#rank, own);
      // Threads may overwrite the set now.
      this.#barrier("ready", set).arrive();
      return this.#sets.next(set);
    });
  }

  /** Receives the statistics of each row. */
  receive(): void {
    const { op, configuration } = this.#form;
    const { blocks } = configuration;
    const state = statisticsState(op);
    loop({ to: this.#iterations, carry: this.#sets.start() }, (iteration, set) => {
      // Before this block has published, nothing is delayed by waiting; and by then threads have read the statistics that were here.
      this.#barrier("measured", set).wait({ parity: set.phase });
      const all = receiveAll(state, this.#mailbox(iteration), nothingReceived(state, blocks));
      const received = Object.entries(all).map(([name, tile]) => [
        name,
        tile.slice([0, 0], [1, blocks]).reshape([blocks, 1]),
      ]);
      this.#put(
        statisticName,
        [set.slot],
        op.mergeAll(Object.fromEntries(received) as Statistics),
        1,
      );
      this.#barrier("ready", set).arrive();
      return this.#sets.next(set);
    });
  }

  #mailbox(iteration: Scalar<"i32">): Ref<"u64"> {
    return (this.#argument[mailboxName] as Ref<"u64">).at(this.#pipeline.row(iteration));
  }

  /** Stores statistics of a row in shared memory; `named` gives the buffer of each. */
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
