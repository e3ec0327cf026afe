/**
 * Operands that the persistent kernel cannot read as they are: it copies them first, into a form that it reads, in a launch
 * of its own. That takes as long as reading and writing them once, which is little beside what the product gains:
 *
 *   rows of 2001 bf16          rows of 2048: TMA takes rows that begin at multiples of 16 bytes, best of 128
 *   bytes by columns           by rows: tensor cores read them along k alone
 *   f32 as bf16x6              three matrices of bf16, whose sum they are
 *
 * f32 as tf32 TMA rounds by itself, and what of it lies along rows of tiles may lie across k (`register-operand.ts`). Transposing b
 * took 38 µs of the 407 that 4096³ took on an H200.
 */
import type { DType } from "../../../formats/dtype.ts";
import { dtypes } from "../../../formats/dtype.ts";
import {
  tensor,
  cdiv,
  constant,
  dim,
  kernel,
  launchNextKernel,
  slice,
  splitTile,
  waitForPreviousKernel,
  when,
} from "../../../lang/index.ts";
import type {
  TensorSpec,
  KernelDefinition,
  LaunchSize,
  Ref,
  Scalar,
  Tile,
} from "../../../lang/index.ts";
import type { ProductSizes } from "../configuration.ts";
import { aligned } from "../dimensions.ts";
import { isHeld } from "../mainloop/register-operand.ts";
import type { TileSides } from "../mainloop/register-operand.ts";
import type { MatmulProblem } from "../problem.ts";
import type { Recipe } from "../f32-emulation.ts";
import { ownMatrix, rowAlignment, viewCount, viewSpec } from "../views.ts";
import type { MatrixView } from "../views.ts";

export interface Preparation {
  readonly name: "a" | "b";
  /** What makes it necessary, in words for a note. */
  readonly reason: string;
  /** The format and the number of the matrices that are made. */
  readonly dtype: DType;
  readonly split: Recipe["split"];
  readonly parts: number;
  /** Whether rows become columns. */
  readonly transposes: boolean;
  /** Rows and columns as they lie, those of all batches. */
  readonly rows: number;
  readonly columns: number;
  /** Matrices of a batch, which are transposed one by one. */
  readonly batch: number;
  /** How they lie where they are part of a larger array. */
  readonly view: MatrixView | undefined;
  /** Elements from one row of what is made to the next. */
  readonly pitch: number;
}

/** What has to be done with an operand; undefined where nothing has. */
function preparationOf(
  problem: MatmulProblem,
  recipe: Recipe,
  name: "a" | "b",
  { m, n, k, batch: all }: ProductSizes,
  tiles: TileSides,
): Preparation | undefined {
  // Lanes read it as it is; what TMA cannot copy is left to the plain kernel.
  if (problem.prologues[name] !== undefined) return undefined;
  // Sparse weights are stored as they are read.
  if (problem.sparse && name === "b") return undefined;
  const extent = name === "a" ? m : n;
  const isAlongK = problem.major[name] === "k";
  const dtype = recipe[name];
  const unit = 128 / dtype.bits;
  const transposes = recipe.alongK && !isAlongK && !isHeld(problem, recipe, name, tiles);
  const along = transposes || isAlongK ? k : extent;
  const padded = Math.ceil(along / unit) * unit;
  const view = problem.views?.[name];
  const isAligned = view === undefined ? padded === along : rowAlignment(view, along) % unit === 0;
  const reason = reasonOf(name, along, isAlongK ? "k" : problem.major[name], {
    transposes,
    split: recipe.split,
    ...{ padded, isAligned, isView: view !== undefined },
  });
  if (reason === undefined) return undefined;
  const [rows, columns] = isAlongK ? [extent, k] : [k, extent];
  return {
    ...{ name, reason, dtype, transposes, rows, columns },
    ...{ split: recipe.split, parts: recipe.parts },
    batch: view !== undefined ? viewCount(view) : problem.batched[name] ? all : 1,
    view,
    // Rows that begin at multiples of 128 bytes lie in one line of the cache each.
    pitch: Math.ceil(along / (8 * unit)) * 8 * unit,
  };
}

/** What was done with the operands before the product. */
export interface Prepared {
  readonly a: Preparation | undefined;
  readonly b: Preparation | undefined;
}

export function preparationsOf(
  problem: MatmulProblem,
  recipe: Recipe,
  sizes: ProductSizes,
  tiles: TileSides,
): Prepared {
  return {
    a: preparationOf(problem, recipe, "a", sizes, tiles),
    b: preparationOf(problem, recipe, "b", sizes, tiles),
  };
}

function reasonOf(
  name: "a" | "b",
  along: number,
  axis: "m" | "n" | "k",
  {
    transposes,
    split,
    padded,
    isAligned,
    isView,
  }: {
    readonly transposes: boolean;
    readonly split: Recipe["split"];
    /** Elements along the axis that would be taken as they are. */
    readonly padded: number;
    /** Whether rows begin where TMA can read them. */
    readonly isAligned: boolean;
    readonly isView: boolean;
  },
): string | undefined {
  if (split !== undefined && split !== "tf32")
    return `${name} is split into parts, as ${split} says`;
  if (transposes) return `${name} is transposed: tensor cores read it along k alone`;
  if (!isAligned && isView)
    return `the strides of ${name} keep TMA from it, and it is copied first: make them multiples of 16 bytes`;
  if (!isAligned)
    return `${axis} = ${along} keeps TMA from ${name}, which is copied first: pad it to ${padded}`;
  return undefined;
}

const blockColumns = 64;

/** Rows of a block: half as many of what becomes three parts by rows, for which registers would not suffice. */
function blockRowsOf({ parts, transposes }: Preparation): number {
  return parts > 2 && !transposes ? 16 : 32;
}

/**
 * How lanes have a block of elements of 32 bits that is transposed: four along its rows as it is read, and four along what is written,
 * so that each lane moves 16 bytes at once, and exchanges them through shared memory in between. By what a block alone
 * costs, lanes would have what they write, and read it element by element.
 */
const asRead = "(L4 W0 W1 R2 R3 | R0 R1 L0 L1 L2 L3)";
const asWritten = "(L3 L4 W0 W1 R2 R3 | R0 R1 L0 L1 L2)";

/** An operand that is prepared: as it lies, [batch, rows, columns], and as [parts, batch, rows or columns, pitch]. */
interface Copied {
  readonly preparation: Preparation;
  readonly batch: LaunchSize;
  readonly rows: LaunchSize;
  readonly columns: LaunchSize;
  readonly source: TensorSpec;
  readonly target: TensorSpec;
}

function copiedOf(source: DType, preparation: Preparation): Copied {
  const { name, dtype, parts, transposes } = preparation;
  const batch = dim(`batch_${name}`);
  const rows = aligned(`rows_${name}`, preparation.rows);
  const columns = aligned(`columns_${name}`, preparation.columns);
  const pitch = dim(`pitch_${name}`, { multipleOf: 1024 / dtype.bits });
  const [height, width] = transposes ? [columns, rows] : [rows, columns];
  return {
    ...{ preparation, batch, rows, columns },
    source:
      preparation.view === undefined
        ? tensor(source, [batch, rows, columns])
        : viewSpec(source, name, preparation.view, rows, columns),
    target: tensor(dtype, [parts, batch, height, width], {
      strides: [batch.mul(height).mul(pitch), height.mul(pitch), pitch, 1],
    }),
  };
}

/** Copies operands, all of them in one launch: blocks of one need not wait for those of another. */
export function prepareKernel(
  operands: readonly { readonly source: DType; readonly preparation: Preparation }[],
): KernelDefinition {
  const copied = operands.map(({ source, preparation }) => copiedOf(source, preparation));
  const blocks = copied.map(({ preparation, batch, rows, columns }) =>
    batch.mul(cdiv(rows, blockRowsOf(preparation))).mul(cdiv(columns, blockColumns)),
  );
  const named = <T>(of: (each: Copied) => T, kind: "x" | "y"): { readonly [name: string]: T } =>
    Object.fromEntries(copied.map((each) => [`${kind}_${each.preparation.name}`, of(each)]));
  return kernel(
    {
      name: "matmul_prepare",
      grid: { index: blocks.reduce((sum, each) => sum.add(each)) },
      inputs: named(({ source }) => source, "x"),
      outputs: named(({ target }) => target, "y"),
    },
    (argument) => {
      waitForPreviousKernel();
      launchNextKernel();
      const refs = argument as unknown as { readonly [name: string]: Ref };
      const copyFrom = (turn: number, index: Scalar<"i32">): void => {
        const [each, count] = [copied[turn], blocks[turn]];
        if (each === undefined || count === undefined) return;
        const isLast = turn === copied.length - 1;
        const copy = (): void => {
          copyBlock(each, refs, index);
        };
        if (isLast) copy();
        else
          when(index.lt(count), copy, () => {
            copyFrom(turn + 1, index.sub(count));
          });
      };
      copyFrom(0, argument.index);
    },
  ) as unknown as KernelDefinition;
}

/** Copies a block, which is the one of this number in its operand. */
function copyBlock(
  { preparation, rows, columns, source }: Copied,
  refs: { readonly [name: string]: Ref },
  index: Scalar<"i32">,
): void {
  const { name, split, transposes } = preparation;
  const [x, y] = [refs[`x_${name}`], refs[`y_${name}`]];
  if (x === undefined || y === undefined) throw new Error(`the kernel has no operand ${name}`);
  const zero = constant(dtypes.i32, 0);
  const blockRows = blockRowsOf(preparation);
  const [high, wide] = [zero.add(cdiv(rows, blockRows)), zero.add(cdiv(columns, blockColumns))];
  const above = index.div(wide);
  const [layer, i, j] = [above.div(high), above.rem(high), index.rem(wide)];
  const down = slice(i.mul(blockRows), blockRows);
  const along = slice(j.mul(blockColumns), blockColumns);
  const byFours = transposes && source.dtype.bits === 32 && preparation.columns % 4 === 0;
  const { view } = preparation;
  const whole = view === undefined ? x.at(layer) : ownMatrix(x, view, layer);
  const loaded: Tile = whole.at(down, along).load();
  const read = byFours ? loaded.layoutCast(asRead) : loaded;
  const made = split === undefined ? [read] : splitTile(read as Tile<"f32">, split);
  for (const [part, tile] of made.entries()) {
    const matrix = y.at(part, layer);
    const transposed = tile.transpose();
    if (transposes)
      matrix.at(along, down).store(byFours ? transposed.layoutCast(asWritten) : transposed);
    else matrix.at(down, along).store(tile);
  }
}
