/**
 * Cross-entropy of logits and labels, with the gradient in the same pass: a row is read once, and its gradient written once.
 *
 *   loss        log Σ exp(x) − x[label]
 *   gradient    (softmax(x) − [column = label]) · dLoss
 */
import type { DType, FloatName } from "../../formats/dtype.ts";
import { dtypes } from "../../formats/dtype.ts";
import type { Operation } from "../../device/operation.ts";
import { tensor, assert, dim, full, when, zeros } from "../../lang/index.ts";
import type { TensorSpec, Empty, Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { optionText } from "../../support/options.ts";
import {
  givenArray,
  refused,
  requireFields,
  requireFloat,
  requireShape,
} from "../support/arguments.ts";
import type { Fields, FormatOf, GivenArray } from "../support/arguments.ts";
import { computeFormat, computed, powersBeneath, statistic } from "../support/numbers.ts";
import type { RowConfiguration } from "./row-kernel.ts";
import type { Piece, RowArray, RowOp, LoadedPiece, Statistics } from "./row-op.ts";
import { rowOperation } from "./row-plan.ts";
import { exponentialSums, finite, inRow } from "./softmax.ts";

/** What `crossEntropy` is made for. */
export interface CrossEntropySpec {
  /** A format is an array of [m, n]; classes lie along the last axis. */
  readonly logits: GivenArray<FloatName>;
  /** Whether the gradient to the logits is a result too. */
  readonly gradient?: boolean;
  /** The gradient to each loss, by which the gradient is multiplied; 1 everywhere without it. */
  readonly dLoss?: GivenArray<FloatName>;
  /** A label whose rows have no loss and no gradient. */
  readonly ignored?: number;
}

type GradientOf<S> = S extends {
  readonly gradient: true;
  readonly logits: infer G;
}
  ? { readonly gradient: TensorSpec<FormatOf<G>> }
  : Empty;
type LossGradientOf<S> = S extends {
  readonly dLoss: infer G extends GivenArray;
}
  ? { readonly dLoss: TensorSpec<FormatOf<G>> }
  : Empty;

/** The operation that `crossEntropy` makes. */
export type CrossEntropyOperation<S extends CrossEntropySpec> = Operation<
  {
    readonly logits: TensorSpec<FormatOf<S["logits"]>>;
    readonly labels: TensorSpec<"i32">;
  } & LossGradientOf<S>,
  { readonly loss: TensorSpec<"f32"> } & GradientOf<S>,
  Empty,
  RowConfiguration
>;

const fields: Fields = {
  logits: "array",
  gradient: "flag",
  dLoss: "array",
  ignored: "number",
};

/** Labels are compared with the number of classes in f32, which is exact up to here. */
const mostClasses = 2 ** 24;

/** The loss of every row, and its gradient. A label outside the classes stops the kernel, unless it is the ignored one. */
export function crossEntropy<const S extends CrossEntropySpec>(spec: S): CrossEntropyOperation<S> {
  const location = captureLocation();
  const name = "crossEntropy";
  requireFields(name, spec, fields, location);
  const { ignored } = spec;
  if (ignored !== undefined && !Number.isInteger(ignored))
    throw refused(
      "TW9904",
      `${name} cannot ignore this label`,
      "a whole number",
      optionText(ignored),
      location,
    );
  const logits = givenArray("logits", name, spec.logits, [dim("m"), dim("n")], location);
  requireFloat("logits", name, logits, location);
  const rows = logits.shape.slice(0, -1);
  const compute = computeFormat(logits.dtype);
  const dLoss = spec.dLoss && givenArray("dLoss", name, spec.dLoss, rows, location);
  if (dLoss !== undefined) {
    requireFloat("dLoss", name, dLoss, location);
    requireShape("dLoss", name, dLoss, rows, location);
  }
  const specs: { readonly [name: string]: TensorSpec } = {
    logits,
    labels: tensor(dtypes.i32, rows),
    ...(dLoss && { dLoss }),
    loss: tensor(compute, rows),
    ...(spec.gradient === true && {
      gradient: tensor(logits.dtype, logits.shape),
    }),
  };
  const op = crossEntropyOp(specs, logits.dtype, compute, ignored);
  return rowOperation(
    {
      op,
      specs,
      of: logits,
      axis: logits.shape.length - 1,
      requireLength: (classes) => {
        if (classes > 0 && classes <= mostClasses) return;
        throw refused(
          "TW9902",
          `${name} cannot count its classes`,
          `1 to ${mostClasses} classes`,
          String(classes),
          location,
        );
      },
    },
    spec,
  ) as unknown as CrossEntropyOperation<S>;
}

const roles: { readonly [name: string]: Pick<RowArray, "role" | "per"> } = {
  logits: { role: "input", per: "element" },
  labels: { role: "input", per: "row" },
  dLoss: { role: "input", per: "row" },
  loss: { role: "output", per: "row" },
  gradient: { role: "output", per: "element" },
};

function crossEntropyOp(
  specs: { readonly [name: string]: TensorSpec },
  dtype: DType,
  compute: DType<"f32">,
  ignored: number | undefined,
): RowOp {
  const sums = exponentialSums({ from: dtype, compute, out: dtype }, "logits");
  const arrays = Object.entries(specs).map(([name, spec]): RowArray => {
    const role = roles[name];
    if (role === undefined) throw new Error(`cross-entropy has no ${name}`);
    return { name, dtype: spec.dtype, ...role };
  });
  const labelsOf = (labels: Tile | undefined): Tile<"i32"> => labels as Tile<"i32">;
  /** The value, or 0 for rows whose label is ignored. */
  const counted = (value: Tile<"f32">, labels: Tile | undefined): Tile<"f32"> =>
    ignored === undefined ? value : labelsOf(labels).ne(ignored).select(value, 0);
  const measureAll = (pieces: readonly LoadedPiece[]): Statistics => {
    const measured = sums.measureAll(pieces);
    const { shape } = statistic(measured, "sum");
    const chosen = pieces.map(({ tiles, piece }) =>
      whereLabel(
        labelsOf(tiles["labels"]),
        piece,
        // On elements as loaded, so that their conversions need not stay in registers for this.
        (isLabel) =>
          computed(isLabel.select(tiles["logits"] as Tile, full(dtype, [1, 1], 0)), compute).sum({
            axis: 1,
            keepDims: true,
          }),
        () => zeros(compute, shape),
      ),
    );
    return { ...measured, chosen: chosen.reduce((left, right) => left.add(right)) };
  };
  return {
    name: "cross_entropy",
    arrays,
    compute,
    registerBytes: 224,
    ...(specs["gradient"] !== undefined && formsWithGradient(dtype)),
    statistics: [...sums.statistics, "chosen"],
    measure: (tiles, piece) => measureAll([{ tiles, piece }]),
    // The search for the label separates pieces anyhow.
    measureAll,
    merge: (left, right) => ({
      ...sums.merge(left, right),
      chosen: statistic(left, "chosen").add(statistic(right, "chosen")),
    }),
    mergeAll: (pieces) => ({
      ...sums.mergeAll(pieces),
      chosen: statistic(pieces, "chosen").sum({ axis: 0, keepDims: true }),
    }),
    results: (tiles, statistics, piece) => {
      const { labels, dLoss } = tiles;
      const high = statistic(statistics, "high");
      const one = full(compute, [1, 1], 1);
      // The same expression as in `measure`, so that values in registers are reused.
      const own = computed(inRow(tiles["logits"], piece), compute);
      const { powers, factor } = powersBeneath(own, finite(high), dtype, dtype);
      const power = powers.mul(factor.div(statistic(statistics, "sum")));
      const gradient = whereLabel(
        labelsOf(labels),
        piece,
        (isLabel) => power.sub(isLabel.select(one, full(compute, [1, 1], 0))),
        () => power,
      );
      const scaled = dLoss === undefined ? gradient : gradient.mul(computed(dLoss, compute));
      return { gradient: counted(scaled, labels).cast(dtype) };
    },
    rowResults: ({ labels }, statistics, total) => {
      const own = labelsOf(labels);
      const isClass = own.ge(0).and(own.lt(total.cast(dtypes.i32)));
      assert(
        ignored === undefined ? isClass : isClass.or(own.eq(ignored)),
        "every label of crossEntropy is a class, or the ignored one",
      );
      const loss = statistic(statistics, "sum")
        .log()
        .add(statistic(statistics, "high"))
        .sub(statistic(statistics, "chosen"));
      return { loss: counted(loss, labels) };
    },
  };
}

/** The loss alone takes one evaluation of each element, and is faster with a block for each row. */
function formsWithGradient({ bits }: DType): Pick<RowOp, "isRegisterBound" | "cooperativePieces"> {
  return { isRegisterBound: true, ...(bits <= 16 && { cooperativePieces: 2 }) };
}

/**
 * The result of `then` for the piece that contains the label; of `otherwise` for other pieces, so that a long row is searched in a single
 * piece.
 */
function whereLabel(
  labels: Tile<"i32">,
  piece: Piece,
  then: (isLabel: Tile<"bool">) => Tile<"f32">,
  otherwise: () => Tile<"f32">,
): Tile<"f32"> {
  const search = (): Tile<"f32"> => then(piece.columns().eq(labels));
  if (piece.range === undefined) return search();
  const { from, width } = piece.range;
  const label = labels.max();
  return when(label.ge(from).and(label.lt(from.add(width))), search, otherwise);
}
