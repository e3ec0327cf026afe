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
 * A total is told in words of 64 bits, half of which say that it is there. Whoever finds such a word has all of it, so that no
 * fence is needed, which would wait until what was stored before has reached memory.
 *
 * All blocks combine the totals of all waves in one order, so results repeat bit for bit on GPUs with as many processors.
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import {
  array,
  cdiv,
  constant,
  full,
  iota,
  kernel,
  loop,
  slice,
  whileLoop,
  zeros,
} from "../../lang/index.ts";
import type { Index, KernelDefinition, LaunchSize, Ref, Scalar, Tile } from "../../lang/index.ts";
import type { Size } from "../../ir/size.ts";
import type { ReduceTiles, StatePart } from "../reduce/reducer.ts";
import { powerOfTwoFrom, widestAccess } from "../support/sizes.ts";
import type { StridedForm } from "../support/strided.ts";
import { eachTile, loadedPiece, nothing, only, scanArrays, storePiece } from "./scan-kernel.ts";
import type { ScanArguments, ScanConfiguration, ScanRule } from "./scan-kernel.ts";

/** Warps of a block, and blocks of a processor: while one waits, another works. */
export const sharedWarps = 16;
export const sharedBlocks = 1;

/** Bytes of a piece that a lane has, as it is combined. */
const bytesPerLane = 64;

/** Pieces that wait in registers for what comes before them, so that a block may be so many waves behind before others wait. */
const slack = 2;

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
  /** The words that blocks of this row tell each other, [waves, words of a state, workers]. */
  readonly told: Ref<"u64">;
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
    iota(dtypes.i32, axis === 0 ? [stretches, 1] : [1, stretches], axis),
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

/** A number of the state as words that can be told: 32 bits each, and above them that they are there. */
const isThere = 2 ** 32;

/** Words of a number. */
function wordsOf({ dtype }: StatePart): number {
  return Math.ceil(dtype.bits / 32);
}

/** How many words a state has. */
function wordCount({ state }: Pick<ScanRule, "state">): number {
  return Object.values(state).reduce((sum, part) => sum + wordsOf(part), 0);
}

/** How many words of a wave lie side by side. */
function wordsOfWave({ workers }: Pick<ScanConfiguration, "workers">): number {
  return powerOfTwoFrom(workers);
}

const unsigned = { 8: dtypes.u8, 16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64 } as const;

function unsignedOf({ dtype }: StatePart): DType {
  const found = Object.entries(unsigned).find(([bits]) => Number(bits) === dtype.bits);
  if (found === undefined) throw new Error(`no words of ${dtype.name}`);
  return found[1];
}

/** Tells the total of a piece: whoever sees a word sees all of it, so that nothing else has to be ordered. */
function tell({ rule, told, worker }: Work, wave: Scalar<"i32">, total: ReduceTiles): void {
  let word = 0;
  for (const [name, part] of Object.entries(rule.state)) {
    const bits = (total[name] as Tile)
      .bitcast(unsignedOf(part))
      .cast(dtypes.u64)
      .reshape([1]) as Tile<"u64">;
    for (let each = 0; each < wordsOf(part); each += 1) {
      const own = wordsOf(part) === 1 ? bits : bits.shr(32 * each).and(isThere - 1);
      told.at(wave, word, slice(worker, 1)).atomicAdd(own.add(isThere));
      word += 1;
    }
  }
}

/** Words of a wave, and which of them are still to be told. */
interface Words {
  readonly words: Tile<"u64">;
  readonly open: Tile<"bool">;
}

/** What has been told of a wave beside what was known before. */
function ask({ told }: Work, wave: Scalar<"i32">, { words, open }: Words): Words {
  const found = told.at(wave).atomicAdd(zeros(dtypes.u64, words.shape), { where: open });
  return { words: words.or(found), open: open.and(found.eq(0)) };
}

function nothingTold({ rule, configuration }: Work): Words {
  const shape = [wordCount(rule), wordsOfWave(configuration)];
  return {
    words: zeros(dtypes.u64, shape),
    open: iota(dtypes.i32, shape, 1).lt(configuration.workers),
  };
}

/** What comes before this block's piece of a wave, and what comes before the next wave. */
function hear(
  work: Work,
  wave: Scalar<"i32">,
  asked: Words,
  before: ReduceTiles,
): { readonly here: ReduceTiles; readonly next: ReduceTiles } {
  const { rule, configuration, worker } = work;
  const { workers } = configuration;
  const { words } = whileLoop(
    { ...asked },
    ({ open }) => open.reduce("or"),
    (known) => ({ ...ask(work, wave, known) }),
  );
  const width = wordsOfWave(configuration);
  const numbers = iota(dtypes.i32, [2, width], 1);
  const isHere = iota(dtypes.i32, [2, 1], 0).eq(0);
  const isIn = numbers.lt(
    isHere.select(full(dtypes.i32, [1, 1], 0).add(worker), full(dtypes.i32, [1, 1], workers)),
  );
  const both = rule.together(only(rule, isIn, statesOf(rule, words)));
  const of = (row: number): ReduceTiles =>
    rule.merge(
      before,
      eachTile(both, (tile) => tile.slice([row, 0], [1, 1])),
    );
  return { here: of(0), next: of(1) };
}

/** States as their words tell them. */
function statesOf({ state }: ScanRule, words: Tile<"u64">): ReduceTiles {
  const width = words.shape[1] ?? 1;
  let word = 0;
  return Object.fromEntries(
    Object.entries(state).map(([name, part]) => {
      const parts = Array.from({ length: wordsOf(part) }, (_, each) =>
        words
          .slice([word + each, 0], [1, width])
          .and(isThere - 1)
          .shl(32 * each),
      );
      word += parts.length;
      const bits = parts.reduce((low, high) => low.or(high));
      return [name, bits.cast(unsignedOf(part)).bitcast(part.dtype) as Tile];
    }),
  );
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
    const asked = ask(work, wave, nothingTold(work));
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

/** What blocks tell each other is called this, beside the arrays of the kernel. */
export const toldName = "told_by_blocks";

/** Its shape, which is 0 at first: rows, waves, words of a state, words of a wave. */
export function toldShape(
  rule: Pick<ScanRule, "state">,
  extents: readonly Size[],
  configuration: ScanConfiguration,
): readonly Size[] {
  const { columns, workers } = configuration;
  const waves = cdiv(extents.at(-1) ?? 1, columns * workers);
  const told = typeof waves === "number" ? waves + slack : (waves as LaunchSize).add(slack);
  return [...extents.slice(0, -1), told, wordCount(rule), wordsOfWave(configuration)];
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
      inouts: { [toldName]: array(dtypes.u64, toldShape(rule, form.extents, configuration)) },
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
