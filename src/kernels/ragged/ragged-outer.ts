/**
 * `raggedOuter`: aᵀ · b over the rows of every group, [g, k, n]. It is the derivative of a `raggedDot` by its matrices:
 *
 *   out = raggedDot(a, b)      dB = raggedOuter(a, dOut)      a group without rows gives 0
 */
import { dtypes } from "../../formats/dtype.ts";
import type { DType, DTypeName } from "../../formats/dtype.ts";
import { libraryOperation } from "../../device/operation.ts";
import type { Operation, PlannedLaunch } from "../../device/operation.ts";
import { evaluateSize, sameSize, shapeText } from "../../ir/size.ts";
import { tensor, dim } from "../../lang/index.ts";
import type { TensorSpec, Empty } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import type { Location } from "../../support/location.ts";
import type { Target } from "../../targets/target.ts";
import type { PlainConfiguration, ProductSizes } from "../matmul/configuration.ts";
import { problemOf } from "../matmul/matmul.ts";
import { launched } from "../matmul/launch-arguments.ts";
import type { Accumulation, MatmulPrecision, MatmulProblem } from "../matmul/problem.ts";
import { givenArray, refused, requireFields, requireRows } from "../support/arguments.ts";
import type { Fields, GivenArray } from "../support/arguments.ts";
import { outerKernel } from "./plain.ts";
import { groupSizesOf } from "./ragged-dot.ts";
import {
  groupStartsKernel,
  warpSpecializedOuterKernel,
  warpSpecializedOuterProblem,
} from "./warp-specialized-outer.ts";
import type { WarpSpecializedOuter } from "./warp-specialized-outer.ts";

export type OuterConfiguration = PlainConfiguration | WarpSpecializedOuter;

/** What `raggedOuter` is made for. */
export interface RaggedOuterSpec<A extends DTypeName, B extends DTypeName, Out extends DTypeName> {
  /** [m, k] and [m, n]: rows of all groups, one group after the other. */
  readonly a: GivenArray<A>;
  /** [m, n]: rows of all groups, in the order of those of a. */
  readonly b: GivenArray<B>;
  /** [g]: rows of each group. i32 by default. */
  readonly groupSizes?: GivenArray<"i32">;
  /** The format of the result; that of the operands by default, bf16 of FP8, i32 of integers. */
  readonly out?: DType<Out>;
  /** How f32 is multiplied; for f32 alone, and always said. */
  readonly precision?: MatmulPrecision;
  /** How FP8 is summed; for FP8 alone, and always said. */
  readonly accumulation?: Accumulation;
}

const fields: Fields = {
  a: "array",
  b: "array",
  groupSizes: "array",
  out: "format",
  precision: "choice",
  accumulation: "choice",
};

/** The operation that `raggedOuter` makes. */
export type RaggedOuter<
  A extends DTypeName,
  B extends DTypeName,
  Out extends DTypeName,
> = Operation<
  {
    readonly a: TensorSpec<A>;
    readonly b: TensorSpec<B>;
    readonly groupSizes: TensorSpec<"i32">;
  },
  { readonly out: TensorSpec<Out> },
  Empty,
  OuterConfiguration
>;

/** The products of the rows of two arrays, added up group by group. */
export function raggedOuter<A extends DTypeName, B extends DTypeName, Out extends DTypeName = A>(
  spec: RaggedOuterSpec<A, B, Out>,
): RaggedOuter<A, B, Out> {
  const location = captureLocation();
  requireFields("raggedOuter", spec, fields, location);
  const { problem, groups } = outerProblem(spec, location);
  const groupSizes = groupSizesOf("raggedOuter", spec.groupSizes, groups, location);
  const { k: m, m: k, n } = problem.sizes;
  return libraryOperation(
    {
      name: "ragged_outer",
      inputs: { a: tensor(problem.a.dtype, [m, k]), b: problem.b, groupSizes },
      outputs: { out: tensor(problem.out.dtype, [groups, k, n]) },
      plan: (dimensions, target) => {
        const values = new Map(Object.entries(dimensions));
        const [rows, height, width, g] = [m, k, n, groups].map((size) =>
          evaluateSize(size, values),
        );
        const sizes = { m: rows ?? 0, k: height ?? 0, n: width ?? 0, batch: g ?? 0 };
        const slow = warpSpecializedOuterProblem(problem, sizes, target);
        const isEmpty = sizes.k * sizes.n * sizes.batch === 0;
        return {
          ...(slow === undefined
            ? warpSpecializedPlan(problem, sizes, target)
            : plainPlan(problem, sizes)),
          source: "heuristic" as const,
          notes: slow === undefined ? [] : [`the plain kernel is used: ${slow}`],
          ...(isEmpty && { launches: [] }),
        };
      },
    },
    spec,
  ) as unknown as RaggedOuter<A, B, Out>;
}

type Launches = {
  readonly configuration: OuterConfiguration;
  readonly launches: () => readonly PlannedLaunch[];
};

const named = (...names: readonly string[]): PlannedLaunch["arguments"] =>
  Object.fromEntries(names.map((name) => [name, { argument: name }]));

function plainPlan(problem: MatmulProblem, sizes: ProductSizes): Launches {
  const configuration = configurationOf(problem);
  return {
    configuration,
    launches: () => [
      launched(
        outerKernel(problem, configuration, sizes),
        named("a", "b", "groupSizes", "out"),
        dimensionsOf(sizes),
      ),
    ],
  };
}

/** One launch finds where groups begin, and the next one multiplies. */
function warpSpecializedPlan(problem: MatmulProblem, sizes: ProductSizes, target: Target) {
  const configuration: WarpSpecializedOuter = {
    kernel: "warp-specialized",
    columns: sizes.n > 128 ? 256 : 128,
  };
  const tiles = sizes.batch * Math.ceil(sizes.k / 128) * Math.ceil(sizes.n / configuration.columns);
  const dimensions = { ...dimensionsOf(sizes), workers: Math.min(tiles, target.processors) };
  return {
    configuration,
    scratch: { starts: { dtype: dtypes.i32, shape: [sizes.batch] } },
    launches: () => [
      launched(groupStartsKernel(problem), named("a", "groupSizes", "starts"), {
        ...{ rows: sizes.m, width: sizes.k, g: sizes.batch },
      }),
      launched(
        warpSpecializedOuterKernel(problem, configuration, sizes),
        named("a", "b", "groupSizes", "starts", "out"),
        dimensions,
      ),
    ],
  };
}

/** As the product aᵀ · b has them. */
function dimensionsOf({ m, n, k, batch }: ProductSizes) {
  return { m: k, n, k: m, g: batch };
}

/** Tiles that fit in registers for every format. */
function configurationOf({ a, accumulator }: MatmulProblem): PlainConfiguration {
  if (accumulator.bits === 64)
    return { kernel: "plain", rows: 64, columns: 32, depth: 16, splitK: 1 };
  const depth = a.dtype.bits >= 32 ? 16 : a.dtype.bits === 16 ? 32 : 64;
  return { kernel: "plain", rows: 64, columns: 64, depth, splitK: 1 };
}

/** The product aᵀ · b that it is over all rows: k by m times m by n. */
function outerProblem(
  spec: RaggedOuterSpec<DTypeName, DTypeName, DTypeName>,
  location: Location,
): { readonly problem: MatmulProblem; readonly groups: TensorSpec["shape"][number] } {
  const [m, n, k, g] = [dim("m"), dim("n"), dim("k"), dim("g")];
  const a = givenArray("a", "raggedOuter", spec.a, [m, k], location);
  const b = givenArray("b", "raggedOuter", spec.b, [m, n], location);
  for (const [name, operand] of Object.entries({ a, b })) {
    requireRows(name, "raggedOuter", operand, location);
    if (operand.shape.length !== 2)
      throw refused(
        "TW9902",
        `${name} of raggedOuter has ${operand.shape.length} axes`,
        "a of [m, k], b of [m, n]",
        `${operand.shape.length} axes`,
        location,
      );
  }
  const [rows = 0, columns = 0] = a.shape;
  if (!sameSize(rows, b.shape[0] ?? 0))
    throw refused(
      "TW9902",
      "the operands of raggedOuter have different rows",
      "a of [m, k], b of [m, n]",
      `a of ${shapeText(a.shape)} and b of ${shapeText(b.shape)}`,
      location,
    );
  const transposed = tensor(a.dtype, [columns, rows], { strides: [1, columns] });
  const { groupSizes, ...others } = spec;
  const problem = problemOf("raggedOuter", { ...others, a: transposed, b }, location);
  const given = groupSizes !== undefined && "shape" in groupSizes ? groupSizes.shape[0] : undefined;
  return { problem, groups: given ?? g };
}
