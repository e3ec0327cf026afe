/**
 * A running combination along few, long rows, in one pass over memory: every element is read once and written once. The
 * blocks of a row run at the same time and go through it in waves, one piece each. A block combines its piece, tells its total,
 * and needs nothing but the totals of the wave to know what comes before; while they arrive it works on its piece of
 * the next wave:
 *
 *   wave 0    block 0: piece 0     block 1: piece 1     block 2: piece 2      totals ──▶ all blocks
 *   wave 1    block 0: piece 3     block 1: piece 4     block 2: piece 5      totals ──▶ all blocks
 *
 *   a block   load 1 · combine 0 · tell 0 · ask 0 · load 2 · combine 1 · tell 1 · hear 0 · store 0 · ask 1 · load 3 · …
 *
 * `block-aggregates.ts` has how totals are told.
 */
import { dtypes } from "../../formats/dtype.ts";
import { tensor, cdiv, constant, iota, kernel, loop } from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { widestAccess } from "../support/sizes.ts";
import type { StridedForm } from "../support/strided.ts";
import { eachTile, loadedPiece, nothing, only, scanArrays, storePiece } from "./scan-kernel.ts";
import type { ScanArguments, ScanConfiguration, ScanRule } from "./scan-kernel.ts";
import { toldName } from "../support/mailbox.ts";
import { ask, hear, nothingHeard, tell, toldShape } from "./block-aggregates.ts";
import type { Teller } from "./block-aggregates.ts";

/** Warps of a block, and blocks of a processor: while one waits, another works. */
export const sharedWarps = 16;
export const sharedBlocks = 1;

/** Bytes of a piece that a lane has, as it is combined. */
const bytesPerLane = 64;

/** Pieces that wait in registers for what comes before them, so that a block may be so many waves behind before others wait. */
export const slack = 2;

/** Elements of a piece. */
export function sharedColumns({ state }: Pick<ScanRule, "state">): number {
  const bits = Object.values(state).reduce((sum, { dtype }) => sum + dtype.bits, 0);
  let columns = 32 * sharedWarps;
  while (columns * 2 * bits <= 32 * sharedWarps * bytesPerLane * 8) columns *= 2;
  return columns;
}

/** What a block works with. */
interface Work extends Teller {
  readonly form: StridedForm;
  readonly configuration: ScanConfiguration;
  readonly argument: ScanArguments;
  readonly starts: readonly Index[];
  /** Pieces of a row. */
  readonly pieces: Scalar<"i32">;
}

/** Where the piece of a wave begins; past the last one, where one would follow it, which has no elements. */
function placeOf(work: Work, wave: Scalar<"i32">): readonly Index[] {
  const { rule, configuration, worker, pieces, starts } = work;
  const number = wave.mul(configuration.workers).add(worker);
  // From the end, the first piece is the last.
  const piece = rule.reverse ? pieces.sub(1).sub(number) : number;
  const own = number.lt(pieces).select(piece, pieces).maximum(0).minimum(pieces);
  return [...starts, own.mul(configuration.columns)];
}

function windowSizes({ form, configuration }: Work): readonly number[] {
  return form.axes.map((_, axis) => (axis === form.axes.length - 1 ? configuration.columns : 1));
}

/** The piece of a wave, which past the last one is nothing. */
function load(work: Work, wave: Scalar<"i32">): ReduceTiles {
  const { rule, form, argument } = work;
  return loadedPiece(rule, form, argument, placeOf(work, wave), windowSizes(work));
}

/** A piece combined: every element with those before it, and all of them. */
interface Combined {
  readonly running: ReduceTiles;
  readonly total: ReduceTiles;
}

/**
 * A piece is combined in stretches that the lanes of a warp go along together, as wide as memory is accessed: within
 * each of them first, then with the totals of those before, which is all that warps have to tell each other.
 */
function combine({ rule, configuration }: Work, piece: ReduceTiles): Combined {
  const widest = (8 * widestAccess) / Math.min(...rule.arrays.map(({ dtype }) => dtype.bits));
  const width = Math.min(configuration.columns / sharedWarps, 32 * widest);
  const stretches = configuration.columns / width;
  const layout = stretchLayout(stretches, width);
  const tiles = eachTile(piece, (tile) => tile.reshape([stretches, width]).layoutCast(layout));
  const totals = eachTile(rule.total(tiles), (tile) => tile.reshape([1, stretches]));
  const [own, others] = [0, 1].map((axis) =>
    iota(dtypes.i32, axis === 0 ? [stretches, 1] : [1, stretches], { axis }),
  ) as [Tile<"i32">, Tile<"i32">];
  const isBefore = rule.reverse ? others.gt(own) : others.lt(own);
  const spread = eachTile(totals, (tile) =>
    tile.broadcastTo([stretches, stretches]).layoutCast(spreadLayout(stretches)),
  );
  const before = rule.total(only(rule, isBefore, spread));
  const running = rule.merge(before, rule.running(tiles));
  return {
    running: eachTile(running, (tile) => tile.reshape([1, configuration.columns])),
    total: rule.total(totals),
  };
}

function bitNames(name: string, count: number, from = 0): readonly string[] {
  return Array.from({ length: count }, (_, index) => `${name}${from + index}`);
}

/** A warp has stretches side by side, in registers; its lanes have as much of each as memory is accessed by. */
function stretchLayout(stretches: number, width: number): string {
  const inLane = Math.log2(width / 32);
  return `(${stretchesOfWarps(stretches, inLane)} | ${bitNames("R", inLane).join(" ")} ${lanesOfWarp})`;
}

/** The same stretches by all stretches, which lanes share. */
function spreadLayout(stretches: number): string {
  const inLane = Math.max(0, Math.log2(stretches) - 5);
  const across = [...bitNames("L", Math.min(5, Math.log2(stretches))), ...bitNames("R", inLane)];
  return `(${stretchesOfWarps(stretches, inLane)} | ${across.join(" ")})`;
}

const lanesOfWarp = bitNames("L", 5).join(" ");

function stretchesOfWarps(stretches: number, from: number): string {
  const each = bitNames("R", Math.log2(stretches / sharedWarps), from);
  return [...each, ...bitNames("W", Math.log2(sharedWarps))].join(" ");
}

/** Pieces that wait, one that is loaded, and what comes before the wave. */
type Carry = {
  readonly pending: readonly ReduceTiles[];
  readonly loaded: ReduceTiles;
  readonly before: ReduceTiles;
};

function runWaves(work: Work, waves: Scalar<"i32">): void {
  const { rule, form, argument } = work;
  const zero = constant(dtypes.i32, 0);
  const loaded = Array.from({ length: slack + 1 }, (_, wave) => load(work, zero.add(wave)));
  const pending = loaded.slice(0, slack).map((piece, wave) => {
    const { running, total } = combine(work, piece);
    tell(work, zero.add(wave), total);
    return { ...running };
  });
  const carry: Carry = {
    pending,
    loaded: { ...loaded[slack] },
    before: { ...nothing(rule, 1) },
  };
  // Past the last wave pieces have no elements; telling their totals costs less than not telling them.
  loop({ to: waves, carry }, (wave, { pending: [oldest, ...others], loaded: piece, before }) => {
    // Asked now, heard when the next piece is combined.
    const asked = ask(work, wave, nothingHeard(work));
    const following = load(work, wave.add(slack + 1));
    const { running, total } = combine(work, piece);
    tell(work, wave.add(slack), total);
    const heard = hear(work, wave, asked, before);
    const state = rule.merge(heard.here, oldest ?? running);
    storePiece(rule, form, argument, placeOf(work, wave), windowSizes(work), state);
    return {
      pending: [...others, { ...running }],
      loaded: { ...following },
      before: { ...heard.next },
    };
  });
}

export function sharedScanKernel(
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
      name: "scan_shared",
      grid: {
        ...Object.fromEntries(leads.map((axis) => [`block${axis}`, form.extents[axis] ?? 1])),
        worker: workers,
      },
      ...{ warps: sharedWarps, resident: sharedBlocks },
      inputs: scanArrays(rule, form, "input"),
      outputs: scanArrays(rule, form, "output"),
      inouts: {
        [toldName]: tensor(dtypes.u64, toldShape(rule, form.extents, configuration, slack)),
      },
    },
    (given) => {
      const argument = given as unknown as ScanArguments;
      const starts = leads.map((axis) => argument[`block${axis}`] as Scalar<"i32">);
      const count = (of: Size) => constant(dtypes.i32, 0).add(of as never);
      runWaves(
        {
          ...{ rule, form, configuration, argument, starts },
          told: (argument[toldName] as Ref<"u64">).at(...starts),
          worker: argument["worker"] as Scalar<"i32">,
          pieces: count(cdiv(extent, columns)),
        },
        count(cdiv(extent, columns * workers)),
      );
    },
  ) as unknown as KernelDefinition;
}
