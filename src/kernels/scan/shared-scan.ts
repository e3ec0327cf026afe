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
 * All blocks add the totals of all waves in one order, so results repeat bit for bit on GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import { cdiv, constant, gmem, iota, kernel, loop, semaphore, slice } from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Semaphore, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import { powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";
import { loadedPiece, nothing } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** Warps of a block: so many that one block keeps a processor busy. */
export const sharedWarps = 16;

/** Bytes of a piece that a lane has, as it is combined: three pieces are in registers at a time. */
const bytesPerLane = 64;

/** Elements of a piece. */
export function sharedColumns({ state }: Pick<ScanRule, "state">): number {
  return (32 * sharedWarps * bytesPerLane * 8) / state.bits;
}

/** What a block works with. */
interface Work {
  readonly rule: ScanRule;
  readonly form: StridedForm;
  readonly configuration: ScanConfiguration;
  readonly x: Ref;
  readonly out: Ref;
  /** The totals of this row, [waves, workers], and how many of each wave are there. */
  readonly totals: Ref;
  readonly told: (wave: Scalar<"i32">) => Semaphore;
  readonly starts: readonly Index[];
  readonly worker: Scalar<"i32">;
  /** Pieces of a row. */
  readonly pieces: Scalar<"i32">;
}

/** The piece of a wave; past the last one, the one that would follow it, which has no elements. */
function pieceOf(
  { rule, configuration, worker, pieces }: Work,
  wave: Scalar<"i32">,
): Scalar<"i32"> {
  const number = wave.mul(configuration.workers).add(worker);
  // From the end, the first piece is the last.
  const piece = rule.reverse ? pieces.sub(1).sub(number) : number;
  return number.lt(pieces).select(piece, pieces).maximum(0).minimum(pieces);
}

function windowSizes({ form, configuration }: Work): readonly number[] {
  return form.axes.map((_, axis) => (axis === form.axes.length - 1 ? configuration.columns : 1));
}

/** The piece of a wave, which past the last one is nothing. */
function load(work: Work, wave: Scalar<"i32">): Tile {
  const place = [...work.starts, pieceOf(work, wave).mul(work.configuration.columns)];
  return loadedPiece(work.rule, work.form, work.x, place, windowSizes(work));
}

/** A piece combined: every element with those before it, and all of them. */
interface Combined {
  readonly running: Tile;
  readonly total: Tile;
}

/**
 * A piece is combined in stretches that lanes go along together, as wide as memory is accessed: within each of
 * them first, then with the totals of those before.
 */
function combine({ rule, configuration }: Work, piece: Tile): Combined {
  const widest = (8 * widestAccess) / Math.min(rule.input.bits, rule.out.bits);
  const width = Math.min(configuration.columns, 32 * sharedWarps * widest);
  const stretches = configuration.columns / width;
  const tile = piece.reshape([stretches, width]).layoutCast(stretchLayout(stretches, width));
  const totals = rule.total(tile).reshape([1, stretches]);
  const [own, others] = [0, 1].map((axis) =>
    iota(dtypes.i32, axis === 0 ? [stretches, 1] : [1, stretches], axis),
  ) as [Tile<"i32">, Tile<"i32">];
  const isBefore = rule.reverse ? others.gt(own) : others.lt(own);
  const before = rule.total(isBefore.select(totals, nothing(rule, 1)));
  const running = rule.merge(before, rule.running(tile));
  return { running: running.reshape([1, configuration.columns]), total: rule.total(totals) };
}

/** Lanes side by side along each stretch, with as much of it as memory is accessed by; stretches lie in registers. */
function stretchLayout(stretches: number, width: number): string {
  const inLane = Math.log2(width / (32 * sharedWarps));
  const bits = (name: string, count: number, from = 0): readonly string[] =>
    Array.from({ length: count }, (_, index) => `${name}${from + index}`);
  const across = [...bits("R", inLane), ...bits("L", 5), ...bits("W", Math.log2(sharedWarps))];
  return `(${bits("R", Math.log2(stretches), inLane).join(" ")} | ${across.join(" ")})`;
}

/** Tells the total of a piece. */
function tell({ totals, told, worker }: Work, wave: Scalar<"i32">, total: Tile): void {
  totals.at(slice(wave, 1), slice(worker, 1)).store(total);
  told(wave).signal();
}

/** What comes before this block's piece of a wave, and what comes before the next wave. */
function hear(
  { rule, configuration, totals, told, worker }: Work,
  wave: Scalar<"i32">,
  before: Tile,
): { readonly here: Tile; readonly next: Tile } {
  const { workers } = configuration;
  const width = powerOfTwoFrom(workers);
  told(wave).wait(workers);
  const all = totals.at(slice(wave, 1), slice(0, width)).load();
  const numbers = iota(dtypes.i32, [1, width], 1);
  const only = (isIn: Tile<"bool">): Tile =>
    rule.merge(before, rule.total(isIn.select(all, nothing(rule, 1))));
  return { here: only(numbers.lt(worker)), next: only(numbers.lt(workers)) };
}

function store(work: Work, wave: Scalar<"i32">, result: Tile): void {
  const { rule, form, configuration, out } = work;
  const place = [...work.starts, pieceOf(work, wave).mul(configuration.columns)];
  const window = form.window(out, 1, place, windowSizes(work));
  storeWhole(window, result.cast(rule.out), [1, configuration.columns]);
}

function runWaves(work: Work, waves: Scalar<"i32">): void {
  const { rule } = work;
  const zero = constant(dtypes.i32, 0);
  const { running: first, total } = combine(work, load(work, zero));
  tell(work, zero, total);
  const carry = { running: first, loaded: load(work, zero.add(1)), before: nothing(rule, 1) };
  const end = loop({ to: waves.sub(1), carry }, (wave, { running, loaded, before }) => {
    const following = load(work, wave.add(2));
    const next = combine(work, loaded);
    tell(work, wave.add(1), next.total);
    const heard = hear(work, wave, before);
    store(work, wave, rule.merge(heard.here, running));
    return { running: next.running, loaded: following, before: heard.next };
  });
  const last = waves.sub(1);
  store(work, last, rule.merge(hear(work, last, end.before).here, end.running));
}

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
      inputs: { x: form.spec(0, rule.input) },
      outputs: { out: form.spec(1, rule.out) },
      scratch: {
        totals: gmem(rule.state, [...extents, waves, workers]),
        told: semaphore([...extents, waves]),
      },
    },
    (given) => {
      const argument = given as unknown as { readonly [name: string]: unknown };
      const starts = leads.map((axis) => argument[`block${axis}`] as Scalar<"i32">);
      const told = argument["told"] as Semaphore;
      const count = (of: Size) => constant(dtypes.i32, 0).add(of as never);
      runWaves(
        {
          ...{ rule, form, configuration, starts },
          x: argument["x"] as Ref,
          out: argument["out"] as Ref,
          totals: (argument["totals"] as Ref).at(...starts),
          told: (wave) => told.at(...starts, wave),
          worker: argument["worker"] as Scalar<"i32">,
          pieces: count(cdiv(extent, columns)),
        },
        count(waves),
      );
    },
  ) as unknown as KernelDefinition;
}
