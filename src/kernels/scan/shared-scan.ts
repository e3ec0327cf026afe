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
import {
  cdiv,
  constant,
  gmem,
  iota,
  kernel,
  loop,
  semaphore,
  slice,
  when,
} from "../../lang/index.ts";
import type { Index, KernelDefinition, Ref, Scalar, Semaphore, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import { powerOfTwoFrom } from "../support/sizes.ts";
import { storeWhole } from "../support/strided.ts";
import type { StridedForm } from "../support/strided.ts";
import { loadedPiece, nothing } from "./scan-kernel.ts";
import type { ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** Warps of a block: so many that one block keeps a processor busy. */
export const sharedWarps = 16;

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

function pieceOf(
  { rule, configuration, worker, pieces }: Work,
  wave: Scalar<"i32">,
): Scalar<"i32"> {
  const number = wave.mul(configuration.workers).add(worker);
  // From the end, the first piece is the last.
  return rule.reverse ? pieces.sub(1).sub(number) : number;
}

function windowSizes({ form, configuration }: Work): readonly number[] {
  return form.axes.map((_, axis) => (axis === form.axes.length - 1 ? configuration.columns : 1));
}

/** The piece of a wave; past the last piece, whatever lies before the first one or after the last is nothing. */
function load(work: Work, wave: Scalar<"i32">): Tile {
  const piece = pieceOf(work, wave);
  const place = [...work.starts, piece.mul(work.configuration.columns)];
  const tile = loadedPiece(work.rule, work.form, work.x, place, windowSizes(work));
  return work.rule.reverse ? piece.ge(0).select(tile, nothing(work.rule, 1)) : tile;
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
  const piece = pieceOf(work, wave);
  const write = (): void => {
    const place = [...work.starts, piece.mul(configuration.columns)];
    const window = form.window(out, 1, place, windowSizes(work));
    storeWhole(window, result.cast(rule.out), [1, configuration.columns]);
  };
  // The window of a piece before the first would be clipped, but not every access knows that.
  if (rule.reverse) when(piece.ge(0), write);
  else write();
}

function runWaves(work: Work, waves: Scalar<"i32">): void {
  const { rule } = work;
  const zero = constant(dtypes.i32, 0);
  const first = load(work, zero);
  tell(work, zero, rule.total(first));
  const carry = {
    running: rule.running(first),
    loaded: load(work, zero.add(1)),
    before: nothing(rule, 1),
  };
  const end = loop({ to: waves.sub(1), carry }, (wave, { running, loaded, before }) => {
    const following = load(work, wave.add(2));
    tell(work, wave.add(1), rule.total(loaded));
    const heard = hear(work, wave, before);
    store(work, wave, rule.merge(heard.here, running));
    return { running: rule.running(loaded), loaded: following, before: heard.next };
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
