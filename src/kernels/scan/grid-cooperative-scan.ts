/**
 * A grid-cooperative scan of few, long rows, in a single pass over memory: every element is read once and written once. The blocks
 * of a row run at the same time and go through it in waves, one piece each. A block scans its piece and publishes its aggregate; the
 * aggregates of the wave are all that it needs for its exclusive prefix. While they arrive it scans its piece of the next wave:
 *
 *   wave 0    block 0: piece 0     block 1: piece 1     block 2: piece 2      aggregates ──▶ all blocks
 *   wave 1    block 0: piece 3     block 1: piece 4     block 2: piece 5      aggregates ──▶ all blocks
 *
 *   a block   load 1 · scan 0 · publish 0 · poll 0 · load 2 · scan 1 · publish 1 · receive 0 · store 0 · poll 1 · load 3 · …
 *
 * The exchange itself is in `block-aggregates.ts`.
 */
import { dtypes } from "../../formats/dtype.ts";
import { tensor, cdiv, constant, iota, kernel, loop } from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { widestAccess } from "../support/sizes.ts";
import type { StridedForm } from "../support/strided.ts";
import {
  eachTile,
  loadedPiece,
  identityState,
  masked,
  scanArrays,
  storePiece,
} from "./scan-kernel.ts";
import type { ScanArguments, ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import { mailboxName } from "../support/mailbox.ts";
import {
  aggregatesMailboxShape,
  noAggregates,
  pollAggregates,
  publishAggregate,
  receivePrefix,
} from "./block-aggregates.ts";
import type { AggregateExchange } from "./block-aggregates.ts";

/** Warps of a block, and blocks of a processor. */
export const cooperativeWarps = 16;
export const cooperativeBlocks = 1;

/** Bytes of a piece in the registers of a thread, in the format of the state. */
const bytesPerThread = 64;

/** Scanned pieces that wait in registers for their prefix: how many waves a block may be behind before others wait for it. */
export const lookahead = 2;

/** Elements of a piece. */
export function cooperativeColumns({ state }: Pick<ScanRule, "state">): number {
  const bits = Object.values(state).reduce((sum, { dtype }) => sum + dtype.bits, 0);
  let columns = 32 * cooperativeWarps;
  while (columns * 2 * bits <= 32 * cooperativeWarps * bytesPerThread * 8) columns *= 2;
  return columns;
}

/** What the functions of a block share. */
interface ScanContext extends AggregateExchange {
  readonly form: StridedForm;
  readonly configuration: ScanConfiguration;
  readonly argument: ScanArguments;
  readonly starts: readonly Index[];
  /** Pieces of a row. */
  readonly pieces: Scalar<"i32">;
}

/** Where the piece of a wave begins; past the last one, where one would follow it, which has no elements. */
function placeOf(context: ScanContext, wave: Scalar<"i32">): readonly Index[] {
  const { rule, configuration, worker, pieces, starts } = context;
  const number = wave.mul(configuration.workers).add(worker);
  // From the end, the first piece is the last.
  const piece = rule.reverse ? pieces.sub(1).sub(number) : number;
  const own = number.lt(pieces).select(piece, pieces).maximum(0).minimum(pieces);
  return [...starts, own.mul(configuration.columns)];
}

function windowSizes({ form, configuration }: ScanContext): readonly number[] {
  return form.axes.map((_, axis) => (axis === form.axes.length - 1 ? configuration.columns : 1));
}

/** The piece of a wave; past the last one, it is empty. */
function load(context: ScanContext, wave: Scalar<"i32">): ReduceTiles {
  const { rule, form, argument } = context;
  return loadedPiece(rule, form, argument, placeOf(context, wave), windowSizes(context));
}

/** A scanned piece: its inclusive scan, and its aggregate. */
interface ScannedPiece {
  readonly running: ReduceTiles;
  readonly total: ReduceTiles;
}

/**
 * Scans a piece by segments of one warp each, whose threads access memory at full width: first within every segment, then with the
 * aggregates of the segments before, which is all that warps exchange.
 */
function scanPiece({ rule, configuration }: ScanContext, piece: ReduceTiles): ScannedPiece {
  const widest = (8 * widestAccess) / Math.min(...rule.arrays.map(({ dtype }) => dtype.bits));
  const width = Math.min(configuration.columns / cooperativeWarps, 32 * widest);
  const segments = configuration.columns / width;
  const layout = segmentLayout(segments, width);
  const tiles = eachTile(piece, (tile) => tile.reshape([segments, width]).layoutCast(layout));
  const totals = eachTile(rule.total(tiles), (tile) => tile.reshape([1, segments]));
  const [own, others] = [0, 1].map((axis) =>
    iota(dtypes.i32, axis === 0 ? [segments, 1] : [1, segments], { axis }),
  ) as [Tile<"i32">, Tile<"i32">];
  const isBefore = rule.reverse ? others.gt(own) : others.lt(own);
  const spread = eachTile(totals, (tile) =>
    tile.broadcastTo([segments, segments]).layoutCast(spreadLayout(segments)),
  );
  const before = rule.total(masked(rule, isBefore, spread));
  const running = rule.merge(before, rule.running(tiles));
  return {
    running: eachTile(running, (tile) => tile.reshape([1, configuration.columns])),
    total: rule.total(totals),
  };
}

function bitNames(name: string, count: number, from = 0): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${name}${from + index}`);
}

/** Neighbouring segments belong to a warp, in registers; its threads hold one vector of each. */
function segmentLayout(segments: number, width: number): string {
  const inLane = Math.log2(width / 32);
  return `(${segmentsOfWarps(segments, inLane)} | ${bitNames("R", inLane).join(" ")} ${lanesOfWarp})`;
}

/** Segments by all segments, spread over threads. */
function spreadLayout(segments: number): string {
  const inLane = Math.max(0, Math.log2(segments) - 5);
  const across = [...bitNames("L", Math.min(5, Math.log2(segments))), ...bitNames("R", inLane)];
  return `(${segmentsOfWarps(segments, inLane)} | ${across.join(" ")})`;
}

const lanesOfWarp = bitNames("L", 5).join(" ");

function segmentsOfWarps(segments: number, from: number): string {
  const each = bitNames("R", Math.log2(segments / cooperativeWarps), from);
  return [...each, ...bitNames("W", Math.log2(cooperativeWarps))].join(" ");
}

/** Scanned pieces that wait, the piece that is loaded, and the prefix of the wave. */
type Carry = {
  readonly pending: readonly ReduceTiles[];
  readonly loaded: ReduceTiles;
  readonly before: ReduceTiles;
};

function runWaves(context: ScanContext, waves: Scalar<"i32">): void {
  const { rule, form, argument } = context;
  const zero = constant(dtypes.i32, 0);
  const loaded = Array.from({ length: lookahead + 1 }, (_, wave) => load(context, zero.add(wave)));
  const pending = loaded.slice(0, lookahead).map((piece, wave) => {
    const { running, total } = scanPiece(context, piece);
    publishAggregate(context, zero.add(wave), total);
    return { ...running };
  });
  const carry: Carry = {
    pending,
    loaded: { ...loaded[lookahead] },
    before: { ...identityState(rule, 1) },
  };
  // Past the last wave pieces are empty; publishing their aggregates is cheaper than a condition.
  loop({ to: waves, carry }, (wave, { pending: [oldest, ...others], loaded: piece, before }) => {
    // Polled now, received after the next piece is scanned.
    const polled = pollAggregates(context, wave, noAggregates(context));
    const following = load(context, wave.add(lookahead + 1));
    const { running, total } = scanPiece(context, piece);
    publishAggregate(context, wave.add(lookahead), total);
    const prefix = receivePrefix(context, wave, polled, before);
    const state = rule.merge(prefix.here, oldest ?? running);
    storePiece(rule, form, argument, placeOf(context, wave), windowSizes(context), state);
    return {
      pending: [...others, { ...running }],
      loaded: { ...following },
      before: { ...prefix.next },
    };
  });
}

export function gridCooperativeScanKernel(
  rule: ScanRule,
  form: StridedForm,
  configuration: ScanConfiguration,
): KernelDefinition {
  const { columns, workers } = configuration;
  const last = form.axes.length - 1;
  const leads = form.axes.slice(0, -1).map((_, axis) => axis);
  const extent = form.extents[last] ?? 1;
  return kernel(
    {
      name: "scan_grid_cooperative",
      grid: {
        ...Object.fromEntries(leads.map((axis) => [`block${axis}`, form.extents[axis] ?? 1])),
        worker: workers,
      },
      ...{ warps: cooperativeWarps, minBlocksPerMultiprocessor: cooperativeBlocks },
      inputs: scanArrays(rule, form, "input"),
      outputs: scanArrays(rule, form, "output"),
      inouts: {
        [mailboxName]: tensor(
          dtypes.u64,
          aggregatesMailboxShape(rule, form.extents, configuration, lookahead),
        ),
      },
    },
    (given) => {
      const argument = given as unknown as ScanArguments;
      const starts = leads.map((axis) => argument[`block${axis}`] as Scalar<"i32">);
      const count = (of: Size) => constant(dtypes.i32, 0).add(of as never);
      runWaves(
        {
          ...{ rule, form, configuration, argument, starts },
          mailbox: (argument[mailboxName] as Ref<"u64">).at(...starts),
          worker: argument["worker"] as Scalar<"i32">,
          pieces: count(cdiv(extent, columns)),
        },
        count(cdiv(extent, columns * workers)),
      );
    },
  ) as unknown as KernelDefinition;
}
