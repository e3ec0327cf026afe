/**
 * A running combination along few, long rows, in one pass over memory: every element is read once and written once. The
 * blocks of a row run at the same time and go through it in waves, one piece each. A block combines its piece, tells its total,
 * and needs nothing but the totals of the wave to know what comes before; while they arrive it works on its piece of
 * the next wave:
 *
 *   wave 0    block 0: piece 0     block 1: piece 1     block 2: piece 2      totals ──▶ all blocks
 *   wave 1    block 0: piece 3     block 1: piece 4     block 2: piece 5      totals ──▶ all blocks
 *
 *   a block   load 1 · combine 0 · tell 0 · load 2 · combine 1 · tell 1 · hear 0 · store 0 · load 3 · combine 2 · …
 *
 * All blocks combine the totals of all waves in one order, so results repeat bit for bit on GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import { cdiv, constant, gmem, iota, kernel, loop, semaphore, slice } from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Semaphore, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles } from "../reduce/reducer.ts";
import { powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedForm } from "../support/strided.ts";
import { eachTile, loadedPiece, nothing, only, scanArrays, storePiece } from "./scan-kernel.ts";
import type { ScanArguments, ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** Warps of a block: so many that one block keeps a processor busy. */
export const sharedWarps = 16;

/** Bytes of a piece that a lane has, as it is combined: three pieces are in registers at a time. */
const bytesPerLane = 64;

/** Elements of a piece. */
export function sharedColumns({ state }: Pick<ScanRule, "state">): number {
  const bits = Object.values(state).reduce((sum, { dtype }) => sum + dtype.bits, 0);
  let columns = 32 * sharedWarps;
  while (columns * 2 * bits <= 32 * sharedWarps * bytesPerLane * 8) columns *= 2;
  return columns;
}

/** What a block works with. */
interface Work {
  readonly rule: ScanRule;
  readonly form: StridedForm;
  readonly configuration: ScanConfiguration;
  readonly argument: ScanArguments;
  /** The totals of this row by part of the state, [waves, workers], and how many of each wave are there. */
  readonly totals: { readonly [name: string]: Ref };
  readonly told: (wave: Scalar<"i32">) => Semaphore;
  readonly starts: readonly Index[];
  readonly worker: Scalar<"i32">;
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
 * A piece is combined in stretches that lanes go along together, as wide as memory is accessed: within each of
 * them first, then with the totals of those before.
 */
function combine({ rule, configuration }: Work, piece: ReduceTiles): Combined {
  const widest = (8 * widestAccess) / Math.min(...rule.arrays.map(({ dtype }) => dtype.bits));
  const width = Math.min(configuration.columns, 32 * sharedWarps * widest);
  const stretches = configuration.columns / width;
  const layout = stretchLayout(stretches, width);
  const tiles = eachTile(piece, (tile) => tile.reshape([stretches, width]).layoutCast(layout));
  const totals = eachTile(rule.total(tiles), (tile) => tile.reshape([1, stretches]));
  const [own, others] = [0, 1].map((axis) =>
    iota(dtypes.i32, axis === 0 ? [stretches, 1] : [1, stretches], axis),
  ) as [Tile<"i32">, Tile<"i32">];
  const isBefore = rule.reverse ? others.gt(own) : others.lt(own);
  const spread = eachTile(totals, (tile) => tile.broadcastTo([stretches, stretches]));
  const before = rule.total(only(rule, isBefore, spread));
  const running = rule.merge(before, rule.running(tiles));
  return {
    running: eachTile(running, (tile) => tile.reshape([1, configuration.columns])),
    total: rule.total(totals),
  };
}

/** Lanes side by side along each stretch, with as much of it as memory is accessed by; stretches lie in registers. */
function stretchLayout(stretches: number, width: number): string {
  const inLane = Math.log2(width / (32 * sharedWarps));
  const bitNames = (name: string, count: number, from = 0): readonly string[] =>
    Array.from({ length: count }, (_, index) => `${name}${from + index}`);
  const across = [
    ...bitNames("R", inLane),
    ...bitNames("L", 5),
    ...bitNames("W", Math.log2(sharedWarps)),
  ];
  return `(${bitNames("R", Math.log2(stretches), inLane).join(" ")} | ${across.join(" ")})`;
}

/** Tells the total of a piece. */
function tell({ totals, told, worker }: Work, wave: Scalar<"i32">, total: ReduceTiles): void {
  for (const [name, tile] of Object.entries(total))
    totals[name]?.at(slice(wave, 1), slice(worker, 1)).store(tile);
  told(wave).signal();
}

/** What comes before this block's piece of a wave, and what comes before the next wave. */
function hear(
  { rule, configuration, totals, told, worker }: Work,
  wave: Scalar<"i32">,
  before: ReduceTiles,
): { readonly here: ReduceTiles; readonly next: ReduceTiles } {
  const { workers } = configuration;
  const width = powerOfTwoFrom(workers);
  told(wave).wait(workers);
  const all = eachTile(totals, (ref) => ref.at(slice(wave, 1), slice(0, width)).load());
  const numbers = iota(dtypes.i32, [1, width], 1);
  const of = (isIn: Tile<"bool">): ReduceTiles =>
    rule.merge(before, rule.together(only(rule, isIn, all)));
  return { here: of(numbers.lt(worker)), next: of(numbers.lt(workers)) };
}

function runWaves(work: Work, waves: Scalar<"i32">): void {
  const { rule, form, argument } = work;
  const zero = constant(dtypes.i32, 0);
  const store = (wave: Scalar<"i32">, state: ReduceTiles): void => {
    storePiece(rule, form, argument, placeOf(work, wave), windowSizes(work), state);
  };
  const { running: first, total } = combine(work, load(work, zero));
  tell(work, zero, total);
  const carry = {
    running: { ...first },
    loaded: { ...load(work, zero.add(1)) },
    before: { ...nothing(rule, 1) },
  };
  const end = loop({ to: waves.sub(1), carry }, (wave, { running, loaded, before }) => {
    const following = load(work, wave.add(2));
    const next = combine(work, loaded);
    tell(work, wave.add(1), next.total);
    const heard = hear(work, wave, before);
    store(wave, rule.merge(heard.here, running));
    return {
      running: { ...next.running },
      loaded: { ...following },
      before: { ...heard.next },
    };
  });
  const last = waves.sub(1);
  store(last, rule.merge(hear(work, last, end.before).here, end.running));
}

/** What the total of a part of the state is called, beside the arrays of the kernel. */
const totalName = (name: string): string => `total_of_${name}`;

export function sharedScanKernel(
  rule: ScanRule,
  form: StridedForm,
  configuration: ScanConfiguration,
): KernelDefinition {
  const { columns, workers } = configuration;
  const last = form.axes.length - 1;
  const leads = form.axes.slice(0, -1).map((_, axis) => axis);
  const extents: readonly Size[] = leads.map((axis) => form.extents[axis] ?? 1);
  const extent = form.extents[last] ?? 1;
  const waves = cdiv(extent, columns * workers);
  return kernel(
    {
      name: "scan_shared",
      grid: {
        ...Object.fromEntries(leads.map((axis) => [`block${axis}`, extents[axis] ?? 1])),
        worker: workers,
      },
      warps: sharedWarps,
      inputs: scanArrays(rule, form, "input"),
      outputs: scanArrays(rule, form, "output"),
      scratch: {
        ...Object.fromEntries(
          Object.entries(rule.state).map(([name, { dtype }]) => [
            totalName(name),
            gmem(dtype, [...extents, waves, workers]),
          ]),
        ),
        told: semaphore([...extents, waves]),
      },
    },
    (given) => {
      const argument = given as unknown as ScanArguments;
      const starts = leads.map((axis) => argument[`block${axis}`] as Scalar<"i32">);
      const told = argument["told"] as Semaphore;
      const count = (of: Size) => constant(dtypes.i32, 0).add(of as never);
      runWaves(
        {
          ...{ rule, form, configuration, argument, starts },
          totals: Object.fromEntries(
            Object.keys(rule.state).map((name) => [
              name,
              (argument[totalName(name)] as Ref).at(...starts),
            ]),
          ),
          told: (wave) => told.at(...starts, wave),
          worker: argument["worker"] as Scalar<"i32">,
          pieces: count(cdiv(extent, columns)),
        },
        count(waves),
      );
    },
  ) as unknown as KernelDefinition;
}
