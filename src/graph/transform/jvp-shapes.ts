/** Derivatives of ops that move elements, of products, reductions, windows and sorting. */
import type { GraphBuilder } from "../infer/builder.ts";
import { combinerKind } from "../ops/combiner.ts";
import type { distributionOps } from "../ops/distribution.ts";
import type { GraphOp, GraphValue } from "../ops/node.ts";
import type { productOps } from "../ops/products.ts";
import type { reductionOps } from "../ops/reductions.ts";
import type { shapeOps } from "../ops/shapes.ts";
import type { testingOps } from "../ops/testing.ts";
import { tensorType } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import {
  broadcastInDim,
  compare,
  convert,
  divide,
  reshape,
  splatOf,
  sum,
  typeOfValue,
} from "./arithmetic.ts";
import type { JvpContext, JvpRule, JvpRules, Tangent } from "./context.ts";
import { convolutionMap } from "./convolution-transpose-rules.ts";
import { expandGradient, expandInference, expandTraining } from "./expand/batch-norm.ts";
import { expandMap, expandReduce, expandReduceWindow } from "./expand/folds.ts";
import { expandMultiplying, expandReplacing } from "./expand/scatter.ts";
import { fourierRule } from "./jvp-complex.ts";
import { choleskyRule, solveRule } from "./jvp-solves.ts";
import {
  broadcasting,
  concatenation,
  dynamicSlicing,
  dynamicUpdating,
  gathering,
  padding,
  permutation,
  required,
  reshaping,
  reversal,
  scaling,
  slicing,
  summation,
} from "./maps.ts";
import type { LinearMap } from "./linear.ts";
import { dotMap, range } from "./product-transpose-rules.ts";
import { collectiveJvp } from "./collectives.ts";
import { refused, zero } from "./nondifferentiable.ts";
import { through } from "./jvp-by-decomposition.ts";
import { scatterAdding } from "./scatter-transpose-rules.ts";
import { picking, placing, windowSumming } from "./window-transpose-rules.ts";

type OneOperand = GraphOp<"stablehlo.reshape" | "stablehlo.transpose" | "stablehlo.slice">;

/** The rule of an op that is linear in its one operand. */
function linear<
  Op extends
    | OneOperand
    | GraphOp<"stablehlo.broadcast_in_dim" | "stablehlo.reverse" | "stablehlo.broadcast">,
>(map: (op: Op, from: TensorType, to: TensorType) => LinearMap) {
  return (op: Op, context: JvpContext): readonly Tangent[] => {
    const { operand } = op.operands;
    const to = typeOfValue(required(op.results[0]));
    return [context.map(context.tangent(operand), () => map(op, typeOfValue(operand), to))];
  };
}

/** Applies a map to those tangents that are there. */
function several(
  context: JvpContext,
  tangents: readonly Tangent[],
  map: (active: readonly boolean[]) => LinearMap,
): readonly Tangent[] {
  const present = tangents.filter((each) => each !== undefined);
  if (present.length === 0) return [undefined];
  return context.mode.linear(map(tangents.map((each) => each !== undefined)), present);
}

const padRule: JvpRule<"stablehlo.pad"> = (op, context) => {
  const { operand, padding_value: value } = op.operands;
  const {
    edge_padding_low: low,
    edge_padding_high: high,
    interior_padding: interior,
  } = op.attributes;
  const to = typeOfValue(required(op.results[0]));
  const tangents = [context.tangent(operand), context.tangent(value)];
  return several(context, tangents, ([first = false, second = false]) =>
    padding(typeOfValue(operand), to, { low, high, interior }, { operand: first, value: second }),
  );
};

const concatenateRule: JvpRule<"stablehlo.concatenate"> = (op, context) => {
  const { inputs } = op.operands;
  const to = typeOfValue(required(op.results[0]));
  const tangents = inputs.map((value) => context.tangent(value));
  return several(context, tangents, (active) =>
    concatenation(inputs.map(typeOfValue), active, to, op.attributes.dimension),
  );
};

const dynamicSliceRule: JvpRule<"stablehlo.dynamic_slice"> = (op, context) => {
  const { operand, start_indices: starts } = op.operands;
  const to = typeOfValue(required(op.results[0]));
  return [
    context.map(context.tangent(operand), () => dynamicSlicing(typeOfValue(operand), to, starts)),
  ];
};

const dynamicUpdateRule: JvpRule<"stablehlo.dynamic_update_slice"> = (op, context) => {
  const { operand, update, start_indices: starts } = op.operands;
  const tangents = [context.tangent(operand), context.tangent(update)];
  return several(context, tangents, ([first = false, second = false]) =>
    dynamicUpdating(typeOfValue(operand), typeOfValue(update), starts, {
      operand: first,
      update: second,
    }),
  );
};

const gatherRule: JvpRule<"stablehlo.gather"> = (op, context) => {
  const { operand, start_indices: indices } = op.operands;
  const {
    dimension_numbers: numbers,
    slice_sizes: sizes,
    indices_are_sorted: sorted,
  } = op.attributes;
  const to = typeOfValue(required(op.results[0]));
  return [
    context.map(context.tangent(operand), () =>
      gathering(typeOfValue(operand), to, indices, numbers, sizes, sorted),
    ),
  ];
};

/** A scatter that adds, replaces, or multiplies where no element is met twice. */
const scatterRule: JvpRule<"stablehlo.scatter"> = (op, context) => {
  const { inputs, updates, scatter_indices: indices } = op.operands;
  const [operand, ...others] = inputs;
  const [update] = updates;
  if (others.length > 0 || operand === undefined || update === undefined)
    return refused(op, context);
  const region = op.regions.update_computation;
  if (region.ops.length === 0 && region.results[0] === region.parameters[1])
    return through(op, context, (builder) => expandReplacing(op, builder));
  const kind = combinerKind(region);
  if (kind === "stablehlo.multiply" && op.attributes.unique_indices)
    return through(op, context, (builder) => expandMultiplying(op, builder));
  if (kind !== "stablehlo.add") return refused(op, context);
  const {
    scatter_dimension_numbers: numbers,
    indices_are_sorted: sorted,
    unique_indices: unique,
  } = op.attributes;
  const place = {
    operand: typeOfValue(operand),
    update: typeOfValue(update),
    indices,
    numbers,
    sorted,
    unique,
  };
  const tangents = [context.tangent(operand), context.tangent(update)];
  return several(context, tangents, ([first = false, second = false]) =>
    scatterAdding(place, { operand: first, update: second }),
  );
};

export const shapeJvp: JvpRules<keyof typeof shapeOps> = {
  "stablehlo.constant": zero,
  "stablehlo.iota": zero,
  "stablehlo.broadcast_in_dim": linear<GraphOp<"stablehlo.broadcast_in_dim">>((op, from, to) =>
    broadcasting(from, to, op.attributes.broadcast_dimensions),
  ),
  "stablehlo.broadcast": linear<GraphOp<"stablehlo.broadcast">>((op, from, to) =>
    broadcasting(from, to, range(op.attributes.broadcast_sizes.length, from.shape.length)),
  ),
  "stablehlo.reshape": linear<GraphOp<"stablehlo.reshape">>((_, from, to) => reshaping(from, to)),
  "stablehlo.transpose": linear<GraphOp<"stablehlo.transpose">>((op, _, to) =>
    permutation(to, op.attributes.permutation),
  ),
  "stablehlo.reverse": linear<GraphOp<"stablehlo.reverse">>((op, _, to) =>
    reversal(to, op.attributes.dimensions),
  ),
  "stablehlo.slice": linear<GraphOp<"stablehlo.slice">>((op, from, to) => {
    const { start_indices: starts, limit_indices: limits, strides } = op.attributes;
    return slicing(from, to, starts, limits, strides);
  }),
  "stablehlo.concatenate": concatenateRule,
  "stablehlo.pad": padRule,
  "stablehlo.dynamic_slice": dynamicSliceRule,
  "stablehlo.dynamic_update_slice": dynamicUpdateRule,
  "stablehlo.gather": gatherRule,
  "stablehlo.scatter": scatterRule,
  "stablehlo.get_dimension_size": zero,
  "stablehlo.dynamic_iota": zero,
  "stablehlo.dynamic_broadcast_in_dim": refused,
  "stablehlo.dynamic_reshape": refused,
  "stablehlo.real_dynamic_slice": refused,
  "stablehlo.dynamic_pad": refused,
  "stablehlo.dynamic_gather": refused,
  "stablehlo.set_dimension_size": refused,
  "stablehlo.torch_index_select": refused,
};

const dotRule: JvpRule<"stablehlo.dot_general"> = (op, context) => {
  const { lhs, rhs } = op.operands;
  const to = typeOfValue(required(op.results[0]));
  return [
    context.sum([
      context.map(context.tangent(lhs), () => dotMap("lhs", lhs, rhs, to, op.attributes)),
      context.map(context.tangent(rhs), () => dotMap("rhs", lhs, rhs, to, op.attributes)),
    ]),
  ];
};

const convolutionRule: JvpRule<"stablehlo.convolution"> = (op, context) => {
  const { lhs, rhs } = op.operands;
  if (op.attributes.window_reversal?.includes(true) === true)
    return through(op, context, (builder) => {
      const { kernel_spatial_dimensions: spatial } = op.attributes.dimension_numbers;
      const dimensions = spatial.filter((_, i) => op.attributes.window_reversal?.[i] === true);
      const turned = builder.one("stablehlo.reverse", { operand: rhs }, { dimensions });
      return builder.add(
        "stablehlo.convolution",
        { lhs, rhs: turned },
        { ...op.attributes, window_reversal: undefined },
        { types: op.results.map(({ type }) => type) },
      );
    });
  const to = typeOfValue(required(op.results[0]));
  return [
    context.sum([
      context.map(context.tangent(lhs), () => convolutionMap("lhs", lhs, rhs, to, op.attributes)),
      context.map(context.tangent(rhs), () => convolutionMap("rhs", lhs, rhs, to, op.attributes)),
    ]),
  ];
};

export const productJvp: JvpRules<keyof typeof productOps> = {
  "stablehlo.dot_general": dotRule,
  "stablehlo.convolution": convolutionRule,
  "stablehlo.rng_bit_generator": zero,
  "stablehlo.rng": zero,
  "stablehlo.dot": (op, context) =>
    through(op, context, (builder) => {
      const { lhs, rhs } = op.operands;
      const dot_dimension_numbers = {
        lhs_batching_dimensions: [],
        rhs_batching_dimensions: [],
        lhs_contracting_dimensions: [typeOfValue(lhs).shape.length - 1],
        rhs_contracting_dimensions: [0],
      };
      const { precision_config } = op.attributes;
      const types = op.results.map(({ type }) => type);
      const attributes = { dot_dimension_numbers, precision_config };
      return builder.add("stablehlo.dot_general", { lhs, rhs }, attributes, { types });
    }),
  "stablehlo.einsum": refused,
  "stablehlo.unary_einsum": refused,
  "stablehlo.dynamic_conv": refused,
  "stablehlo.fft": fourierRule,
  "stablehlo.cholesky": choleskyRule,
  "stablehlo.triangular_solve": solveRule,
  "stablehlo.batch_norm_inference": (op, context) =>
    through(op, context, (builder) => expandInference(op, builder)),
  "stablehlo.batch_norm_training": (op, context) =>
    through(op, context, (builder) => expandTraining(op, builder)),
  "stablehlo.batch_norm_grad": (op, context) =>
    through(op, context, (builder) => expandGradient(op, builder)),
};

/** Equal shares for the elements that are the extreme, as JAX has them. */
function extremeWeights(
  builder: GraphBuilder,
  operand: GraphValue,
  result: GraphValue,
  axes: readonly number[],
): GraphValue {
  const { shape, element } = typeOfValue(operand);
  const kept = range(0, shape.length).filter((axis) => !axes.includes(axis));
  const spread = (value: GraphValue): GraphValue => broadcastInDim(builder, value, shape, kept);
  const hits = convert(builder, compare(builder, "EQ", operand, spread(result)), element);
  return divide(builder, hits, spread(sum(builder, hits, axes)));
}

const reduceRule: JvpRule<"stablehlo.reduce"> = (op, context) => {
  const { inputs, init_values: inits } = op.operands;
  const [operand, ...others] = inputs;
  const kind = combinerKind(op.regions.body);
  const pairwise = (): readonly Tangent[] =>
    through(op, context, (builder) => expandReduce(op, builder));
  const initHasTangent = inits.some((value) => context.hasTangent(value));
  if (operand === undefined || others.length > 0 || initHasTangent) return pairwise();
  const tangent = context.tangent(operand);
  const result = required(op.results[0]);
  const from = typeOfValue(operand);
  const to = typeOfValue(result);
  const { dimensions } = op.attributes;
  if (kind === "stablehlo.add")
    return [context.map(tangent, () => summation(from, to, dimensions))];
  if (kind !== "stablehlo.maximum" && kind !== "stablehlo.minimum") return pairwise();
  const weighted = context.map(tangent, () =>
    scaling(extremeWeights(context.builder, operand, result, dimensions)),
  );
  return [context.map(weighted, () => summation(from, to, dimensions))];
};

const directions = { "stablehlo.maximum": "GE", "stablehlo.minimum": "LE" } as const;

function isPlain(dilations: readonly number[] | undefined): boolean {
  return dilations === undefined || dilations.every((each) => each === 1);
}

const reduceWindowRule: JvpRule<"stablehlo.reduce_window"> = (op, context) => {
  const { inputs, init_values: inits } = op.operands;
  const [operand, ...others] = inputs;
  const [init] = inits;
  const kind = combinerKind(op.regions.body);
  const placewise = (): readonly Tangent[] =>
    through(op, context, (builder) => expandReduceWindow(op, builder));
  if (operand === undefined || init === undefined || others.length > 0 || context.hasTangent(init))
    return placewise();
  const tangent = context.tangent(operand);
  const { attributes } = op;
  const result = typeOfValue(required(op.results[0]));
  if (kind === "stablehlo.add")
    return [context.map(tangent, () => windowSumming(typeOfValue(operand), result, attributes))];
  const plain = isPlain(attributes.base_dilations) && isPlain(attributes.window_dilations);
  if ((kind !== "stablehlo.maximum" && kind !== "stablehlo.minimum") || !plain) return placewise();
  const place = { operand, init, result, attributes, direction: directions[kind] };
  return [context.map(tangent, () => picking(place))];
};

/** Linear in the source; the places do not change with the operand. */
const selectAndScatterRule: JvpRule<"stablehlo.select_and_scatter"> = (op, context) => {
  const { operand, source, init_value: init } = op.operands;
  const [comparison] = op.regions.select.ops;
  const direction =
    comparison?.kind === "stablehlo.compare" && op.regions.select.ops.length === 1
      ? comparison.attributes.comparison_direction
      : undefined;
  const adds = combinerKind(op.regions.scatter) === "stablehlo.add";
  if ((direction !== "GE" && direction !== "LE") || !adds || context.hasTangent(init))
    return refused(op, context);
  const { window_strides, padding: widths } = op.attributes;
  const rank = typeOfValue(operand).shape.length;
  const window_dimensions = op.attributes.window_dimensions ?? range(0, rank).map(() => 1);
  return [
    context.map(context.tangent(source), () => {
      const attributes = { window_dimensions, window_strides, padding: widths };
      const worst = direction === "GE" ? -Infinity : Infinity;
      const scalar = tensorType(typeOfValue(operand).element, []);
      const edge = splatOf(context.builder, scalar, worst);
      return placing({ operand, init: edge, result: typeOfValue(source), attributes, direction });
    }),
  ];
};

export const reductionJvp: JvpRules<Exclude<keyof typeof reductionOps, "stablehlo.sort">> = {
  "stablehlo.reduce": reduceRule,
  "stablehlo.reduce_window": reduceWindowRule,
  "stablehlo.select_and_scatter": selectAndScatterRule,
  "stablehlo.map": (op, context) => through(op, context, (builder) => expandMap(op, builder)),
};

/** Elements of an axis at given indices, other axes alike. */
export function alongAxis(
  builder: GraphBuilder,
  from: TensorType,
  to: TensorType,
  indices: GraphValue,
  axis: number,
): LinearMap {
  const { shape } = typeOfValue(indices);
  const others = range(0, shape.length).filter((each) => each !== axis);
  const numbers = {
    offset_dims: [],
    collapsed_slice_dims: [axis],
    operand_batching_dims: others,
    start_indices_batching_dims: others,
    start_index_map: [axis],
    index_vector_dim: shape.length,
  };
  const column = reshape(builder, indices, [...shape, 1]);
  return gathering(
    from,
    to,
    column,
    numbers,
    from.shape.map(() => 1),
    false,
  );
}

export const topKRule: JvpRule<"chlo.top_k"> = (op, context) => {
  const { operand } = op.operands;
  const [values, indices] = op.results.map(required);
  const axis = typeOfValue(operand).shape.length - 1;
  const to = typeOfValue(required(values));
  const tangent = context.map(context.tangent(operand), () =>
    alongAxis(context.builder, typeOfValue(operand), to, required(indices), axis),
  );
  return [tangent, undefined];
};

export const distributionJvp: JvpRules<keyof typeof distributionOps> = {
  "stablehlo.replica_id": zero,
  "stablehlo.partition_id": zero,
  "stablehlo.after_all": zero,
  "stablehlo.create_token": zero,
  ...collectiveJvp,
  "stablehlo.cross-replica-sum": refused,
  "stablehlo.send": refused,
  "stablehlo.recv": refused,
  "stablehlo.infeed": zero,
  "stablehlo.outfeed": zero,
  "stablehlo.async_start": refused,
  "stablehlo.async_done": refused,
};

export const testingJvp: JvpRules<keyof typeof testingOps> = {
  "check.expect_eq": zero,
  "check.expect_eq_const": zero,
  "check.expect_almost_eq": zero,
  "check.expect_almost_eq_const": zero,
  "check.expect_close": zero,
  "check.expect_serialized_eq": zero,
  "interpreter.run_parallel": refused,
  "interpreter.print": refused,
  "interpreter.probe": refused,
};
