/**
 * The product on any GPU, of any formats, sizes and strides: a block makes a tile, reading operands straight from
 * memory, where windows beyond the edges read as zero. Slower than the persistent kernel, and never refused.
 */
import { tensor, cdiv, constant, dim, dot, kernel, loop, slice, zeros } from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar, TensorSpec, Tile } from "../../lang/index.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Size } from "../../ir/size.ts";
import type { Location } from "../../support/location.ts";
import type { PlainConfiguration, ProductSizes } from "./configuration.ts";
import { addScaled, blockScaleInputs, partScales, scaledDepth } from "./block-scales.ts";
import type { StepScales } from "./block-scales.ts";
import { alignedDimensions } from "./dimensions.ts";
import { finished, inputSpecs } from "./epilogue/epilogue.ts";
import { parameterName } from "./user-array-names.ts";
import { outputSpecs } from "./epilogue/outputs.ts";
import type { MatmulProblem } from "./problem.ts";
import { viewMatrix, viewSpec } from "./views.ts";
import {
  computedOperand,
  inputWindow,
  overhangs,
  prologueSpecs,
  storedDepth,
} from "./prologue/prologue.ts";
import type { InputPlace, Prologue } from "./prologue/prologue.ts";

/** An operand as it lies: rows and columns, or columns and rows. */
function operandSpec(
  { batched, views, ...problem }: MatmulProblem,
  batch: Size,
  name: "a" | "b",
  [first, second]: readonly [Size, Size],
): TensorSpec {
  const { dtype } = problem[name];
  const view = views?.[name];
  if (view !== undefined) return viewSpec(dtype, name, view, first, second);
  return tensor(dtype, [...(batched[name] ? [batch] : []), first, second]);
}

/** The matrix of an operand that belongs to one of the batch. */
function operandMatrix(
  { batched, views }: MatmulProblem,
  name: "a" | "b",
  operand: Ref,
  batch: Scalar<"i32">,
): Ref {
  const view = views?.[name];
  if (view !== undefined) return viewMatrix(operand, view, batch);
  return batched[name] ? operand.at(batch) : operand;
}

export function plainKernel(
  problem: MatmulProblem,
  { rows, columns, depth, splitK }: PlainConfiguration,
  sizes: ProductSizes,
  location: Location,
): KernelDefinition {
  const dimensions = alignedDimensions(sizes);
  const { batch, m, n, k } = dimensions;
  const { major } = problem;
  const { a: ofRows, b: ofColumns } = problem.prologues;
  const prologues = [ofRows, ofColumns].filter((each) => each !== undefined);
  const [depthOfA, depthOfB] = [storedDepth(ofRows, k), storedDepth(ofColumns, k)];
  const { views } = problem;
  const outView = splitK === 1 ? views?.out : undefined;
  const layersOut = problem.sizes.batch === undefined && splitK === 1 ? [] : [dim("layers")];
  const output = splitK === 1 ? problem.out.dtype : problem.accumulator;
  return kernel(
    {
      name: "matmul_plain",
      grid: { layer: layersOut[0] ?? 1, i: cdiv(m, rows), j: cdiv(n, columns) },
      inputs: {
        a: operandSpec(problem, batch, "a", major.a === "k" ? [m, depthOfA] : [depthOfA, m]),
        b: operandSpec(problem, batch, "b", major.b === "n" ? [depthOfB, n] : [n, depthOfB]),
        ...(splitK === 1 ? inputSpecs(problem, dimensions, location) : {}),
        ...blockScaleInputs(problem, dimensions),
        ...prologues.reduce((all, each) => ({ ...all, ...prologueSpecs(each, dimensions) }), {}),
      },
      outputs: {
        out:
          outView === undefined
            ? tensor(output, [...layersOut, m, n])
            : viewSpec(output, "out", outView, m, n),
        ...(splitK === 1 && outputSpecs(problem, dimensions, { rows, columns })),
      },
    },
    (argument) => {
      const { layer, i, j, a, b, out } = argument;
      const zero = constant(dtypes.i32, 0);
      const inBatch = splitK === 1 ? layer : layer.div(splitK);
      const ofA = operandMatrix(problem, "a", a, inBatch);
      const ofB = operandMatrix(problem, "b", b, inBatch);
      const [top, left] = [i.mul(rows), j.mul(columns)];
      const [down, across] = [slice(top, rows), slice(left, columns)];
      const allSteps = zero.add(cdiv(k, depth));
      const each = splitK === 1 ? allSteps : allSteps.add(splitK - 1).div(splitK);
      const from = splitK === 1 ? zero : layer.sub(inBatch.mul(splitK)).mul(each).minimum(allSteps);
      const steps = splitK === 1 ? allSteps : each.minimum(allSteps.sub(from));
      const start: Tile = zeros(problem.accumulator, [rows, columns]);
      const sums: Tile = loop({ to: steps, carry: start }, (step, accumulator) => {
        const start = from.add(step).mul(depth);
        const along = slice(start, depth);
        const storedA: Tile =
          major.a === "k" ? ofA.at(down, along).load() : ofA.at(along, down).transpose().load();
        const storedB: Tile =
          major.b === "n" ? ofB.at(along, across).load() : ofB.at(across, along).transpose().load();
        const at = {
          ...{ argument, depth, sizes, rest: zero.add(k).sub(start), location },
          ...{ batch: inBatch, along: start },
        };
        const left_ = multipliedPart(ofRows, storedA, { ...at, start: top, count: rows });
        const right = multipliedPart(ofColumns, storedB, { ...at, start: left, count: columns });
        const block = at.along.div(scaledDepth);
        const scales = (operand: "a" | "b", start: Scalar<"i32">, count: number) =>
          partScales(problem, argument, { operand, batch: inBatch, start, count }, block);
        const ofStep = { rows: scales("a", top, rows), columns: scales("b", left, columns) };
        return addStep(problem, accumulator, left_, right, ofStep);
      });
      const piece = { batch: inBatch, top, left, rows, columns };
      const done =
        splitK === 1
          ? finished(sums, piece, problem, argument as never, location, dimensions)
          : sums;
      const whole: Ref = layersOut.length === 0 ? out : out.at(layer);
      const target = outView === undefined ? whole : viewMatrix(out, outView, inBatch);
      target.at(down, across).store(done);
    },
  ) as unknown as KernelDefinition;
}

/** Sums with the product of a step: those that are promoted are added in f32, step by step. */
export function addStep(
  { accumulator: dtype, precision, accumulation }: MatmulProblem,
  sums: Tile,
  left: Tile,
  right: Tile,
  scales: StepScales,
): Tile {
  const said = precision === undefined ? {} : { precision };
  if (accumulation !== "promoted")
    return dot(left, right, { accumulator: sums, dtype, accumulation: "fast", ...said });
  const product = dot(left, right, { dtype: dtypes.f32, accumulation: "fast" });
  return addScaled(sums as Tile<"f32">, product, scales) as Tile;
}

/** Where a part of an operand lies, and where its prologue finds the further inputs. */
interface PartPlace extends InputPlace {
  readonly argument: object;
  /** How much of k it has, and how much is left. */
  readonly depth: number;
  readonly rest: Scalar<"i32">;
  readonly sizes: ProductSizes;
  readonly location: Location;
}

/** A part of an operand as it is multiplied: as it is stored, or as the prologue makes it. */
export function multipliedPart(
  prologue: Prologue | undefined,
  stored: Tile,
  place: PartPlace,
): Tile {
  const { argument, depth, rest, sizes, location } = place;
  if (prologue === undefined) return stored;
  const inputs = inputTiles(prologue, argument, place);
  const left = overhangs(prologue, sizes.k, depth) ? rest : undefined;
  return computedOperand(prologue, stored, inputs, left, location);
}

/** What belongs to some rows or columns of each input of a prologue. */
function inputTiles(
  { inputs }: Prologue,
  argument: object,
  place: InputPlace,
): ReadonlyMap<string, Tile> {
  return new Map(
    inputs.map((input) => {
      const all = requireInput(argument, parameterName(input.name));
      return [input.name, inputWindow(input, all, place).load()];
    }),
  );
}

function requireInput(argument: object, name: string): Ref {
  const found = (argument as { readonly [name: string]: Ref | undefined })[name];
  if (found === undefined) throw new Error(`the kernel has no argument ${name}`);
  return found;
}
