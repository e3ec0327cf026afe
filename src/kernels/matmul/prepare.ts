/**
 * Operands that the persistent kernel cannot read as they are: it copies them first, into a form that it reads, in a launch
 * of its own. That takes as long as reading and writing them once, which is little beside what the product gains:
 *
 *   rows of 2001 bf16          rows of 2048: the copy engine takes rows that begin at multiples of 16 bytes, best of 128
 *   bytes by columns           by rows: tensor cores read them along k alone
 *   f32 as bf16x6              three matrices of bf16, whose sum they are
 *
 * f32 as tf32 the copy engine rounds by itself. Turning b takes 50 µs of the 384 that 4096³ takes on an H200; held in registers, as
 * rows of a turned product, b would need none, but each product is then waited for, which took 523.
 */
import type { DType } from "../../formats/dtype.ts";
import {
  array,
  cdiv,
  dim,
  kernel,
  launchNextKernel,
  slice,
  splitTile,
  waitForPreviousKernel,
} from "../../lang/index.ts";
import type { KernelDefinition, Tile } from "../../lang/index.ts";
import type { ProductSizes } from "./configuration.ts";
import type { MatmulProblem } from "./problem.ts";
import type { Recipe } from "./recipe.ts";

export interface Preparation {
  readonly name: "a" | "b";
  /** What makes it necessary, in words for a note. */
  readonly reason: string;
  /** The format and the number of the matrices that are made. */
  readonly dtype: DType;
  readonly split: Recipe["split"];
  readonly parts: number;
  /** Whether rows become columns. */
  readonly turns: boolean;
  /** Rows and columns as they lie, those of all batches. */
  readonly rows: number;
  readonly columns: number;
  /** Matrices of a batch, which are turned one by one. */
  readonly batch: number;
  /** Elements from one row of what is made to the next. */
  readonly pitch: number;
}

/** What has to be done with an operand; undefined where nothing has. */
function preparationOf(
  problem: MatmulProblem,
  recipe: Recipe,
  name: "a" | "b",
  { m, n, k, batch: all }: ProductSizes,
): Preparation | undefined {
  // Lanes read it as it is; what the copy engine cannot copy is left to the plain kernel.
  if (problem.prologues[name] !== undefined) return undefined;
  // Sparse weights are stored as they are read.
  if (problem.sparse && name === "b") return undefined;
  const extent = name === "a" ? m : n;
  const isAlongK = problem.major[name] === "k";
  const dtype = recipe[name];
  const unit = 128 / dtype.bits;
  const turns = recipe.alongK && !isAlongK;
  const along = turns || isAlongK ? k : extent;
  const padded = Math.ceil(along / unit) * unit;
  const reason = reasonOf(name, along, isAlongK ? "k" : problem.major[name], {
    turns,
    split: recipe.split,
    padded,
  });
  if (reason === undefined) return undefined;
  const [rows, columns] = isAlongK ? [extent, k] : [k, extent];
  return {
    ...{ name, reason, dtype, turns, rows, columns },
    ...{ split: recipe.split, parts: recipe.parts },
    batch: problem.batched[name] ? all : 1,
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
): Prepared {
  return {
    a: preparationOf(problem, recipe, "a", sizes),
    b: preparationOf(problem, recipe, "b", sizes),
  };
}

function reasonOf(
  name: "a" | "b",
  along: number,
  axis: "m" | "n" | "k",
  {
    turns,
    split,
    padded,
  }: {
    readonly turns: boolean;
    readonly split: Recipe["split"];
    /** Elements along the axis that would be taken as they are. */
    readonly padded: number;
  },
): string | undefined {
  if (split !== undefined && split !== "tf32")
    return `${name} is split into parts, as ${split} says`;
  if (turns) return `${name} is turned: tensor cores read it along k alone`;
  if (padded !== along)
    return `${axis} = ${along} keeps the copy engine from ${name}, which is copied first: pad it to ${padded}`;
  return undefined;
}

const [blockRows, blockColumns] = [32, 64];

/** Copies an operand: [batch, rows, columns] as it lies, to [parts, batch, rows or columns, pitch]. */
export function prepareKernel(
  source: DType,
  { dtype, split, parts, turns }: Preparation,
): KernelDefinition {
  const [batch, rows, columns] = [dim("batch"), dim("rows"), dim("columns")];
  const pitch = dim("pitch", { multipleOf: 1024 / dtype.bits });
  const [height, width] = turns ? [columns, rows] : [rows, columns];
  return kernel(
    {
      name: "matmul_prepare",
      grid: { layer: batch, i: cdiv(rows, blockRows), j: cdiv(columns, blockColumns) },
      inputs: { x: array(source, [batch, rows, columns]) },
      outputs: {
        y: array(dtype, [parts, batch, height, width], {
          strides: [batch.mul(height).mul(pitch), height.mul(pitch), pitch, 1],
        }),
      },
    },
    ({ layer, i, j, x, y }) => {
      waitForPreviousKernel();
      launchNextKernel();
      const [down, along] = [
        slice(i.mul(blockRows), blockRows),
        slice(j.mul(blockColumns), blockColumns),
      ];
      const read: Tile = x.at(layer, down, along).load();
      const made = split === undefined ? [read] : splitTile(read as Tile<"f32">, split);
      for (const [part, tile] of made.entries()) {
        const matrix = y.at(part, layer);
        if (turns) matrix.at(along, down).store(tile.transpose() as Tile);
        else matrix.at(down, along).store(tile as Tile);
      }
    },
  ) as unknown as KernelDefinition;
}
