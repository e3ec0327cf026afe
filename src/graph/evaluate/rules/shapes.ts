/** Rules of ops that move elements, and of constants. */
import type { GraphRules, GraphValue } from "../../ops/index.ts";
import { reshaped, tensor, tensorOfLiteral } from "../value.ts";
import { promoted } from "../arithmetic.ts";
import type { Tensor } from "../value.ts";
import { unsupported } from "../frame.ts";
import type { Frame, RuleResult } from "../frame.ts";
import { gather, scatter } from "../gather.ts";
import { scalarNumber } from "../scalars.ts";
import * as shapes from "../shapes.ts";
import { constant, dynamic, numbers, one, refuse } from "./shared.ts";

export const shapeRules = {
  "stablehlo.constant": (op, frame) => {
    const { value } = op.attributes;
    if ("kind" in value) throw unsupported(op, "its value is carried as text");
    return [constant(tensorOfLiteral(value), frame)];
  },
  "stablehlo.iota": (op, frame) => one(shapes.iota(frame.result(op), op.attributes.iota_dimension)),
  "stablehlo.dynamic_iota": (op, frame) =>
    one(shapes.iota(frame.result(op), op.attributes.iota_dimension)),
  "stablehlo.broadcast_in_dim": (op, frame) =>
    one(
      shapes.broadcast(
        frame.tensor(op.operands.operand),
        op.attributes.broadcast_dimensions,
        frame.result(op).shape,
      ),
    ),
  "stablehlo.dynamic_broadcast_in_dim": (op, frame) =>
    one(
      shapes.broadcast(
        frame.tensor(op.operands.operand),
        op.attributes.broadcast_dimensions,
        frame.result(op).shape,
      ),
    ),
  "stablehlo.broadcast": (op, frame) => {
    const operand = frame.tensor(op.operands.operand);
    const added = op.attributes.broadcast_sizes.length;
    const axes = operand.shape.map((_, axis) => axis + added);
    return one(shapes.broadcast(operand, axes, frame.result(op).shape));
  },
  "stablehlo.reshape": (op, frame) => [
    reshaped(frame.tensor(op.operands.operand), frame.result(op).shape),
  ],
  "stablehlo.dynamic_reshape": (op, frame) => [
    reshaped(frame.tensor(op.operands.operand), frame.result(op).shape),
  ],
  "stablehlo.transpose": (op, frame) =>
    one(shapes.transpose(frame.tensor(op.operands.operand), op.attributes.permutation)),
  "stablehlo.reverse": (op, frame) =>
    one(shapes.reverse(frame.tensor(op.operands.operand), op.attributes.dimensions)),
  "stablehlo.concatenate": (op, frame) =>
    one(
      shapes.concatenate(
        frame.tensors(op.operands.inputs),
        op.attributes.dimension,
        frame.result(op),
      ),
    ),
  "stablehlo.slice": (op, frame) =>
    one(
      shapes.slice(
        frame.tensor(op.operands.operand),
        op.attributes.start_indices,
        op.attributes.limit_indices,
        op.attributes.strides,
      ),
    ),
  "stablehlo.real_dynamic_slice": ({ operands }, frame) =>
    one(
      shapes.slice(
        frame.tensor(operands.operand),
        numbers(frame.tensor(operands.start_indices)),
        numbers(frame.tensor(operands.limit_indices)),
        numbers(frame.tensor(operands.strides)),
      ),
    ),
  "stablehlo.pad": (op, frame) =>
    one(
      shapes.pad(
        frame.tensor(op.operands.operand),
        frame.tensor(op.operands.padding_value),
        op.attributes.edge_padding_low,
        op.attributes.interior_padding,
        frame.result(op).shape,
      ),
    ),
  "stablehlo.dynamic_pad": (op, frame) =>
    one(
      shapes.pad(
        frame.tensor(op.operands.operand),
        frame.tensor(op.operands.padding_value),
        numbers(frame.tensor(op.operands.edge_padding_low)),
        numbers(frame.tensor(op.operands.interior_padding)),
        frame.result(op).shape,
      ),
    ),
  "stablehlo.dynamic_slice": (op, frame) =>
    one(
      shapes.dynamicSlice(
        frame.tensor(op.operands.operand),
        frame.tensors(op.operands.start_indices).map(scalarNumber),
        op.attributes.slice_sizes,
      ),
    ),
  "stablehlo.dynamic_update_slice": (op, frame) =>
    one(
      shapes.dynamicUpdateSlice(
        frame.tensor(op.operands.operand),
        frame.tensor(op.operands.update),
        frame.tensors(op.operands.start_indices).map(scalarNumber),
      ),
    ),
  "stablehlo.gather": (op, frame) =>
    one(
      gather(
        frame.tensor(op.operands.operand),
        frame.tensor(op.operands.start_indices),
        op.attributes.dimension_numbers,
        op.attributes.slice_sizes,
        frame.result(op).shape,
      ),
    ),
  "stablehlo.dynamic_gather": (op, frame) =>
    one(
      gather(
        frame.tensor(op.operands.operand),
        frame.tensor(op.operands.start_indices),
        op.attributes.dimension_numbers,
        numbers(frame.tensor(op.operands.slice_sizes)),
        frame.result(op).shape,
      ),
    ),
  "stablehlo.scatter": (op, frame) => {
    const wide = (values: readonly GraphValue[]): readonly Tensor[] =>
      frame.tensors(values).map((each, i) => promoted(each, frame.result(op, i).element));
    return scatter(
      wide(op.operands.inputs),
      frame.tensor(op.operands.scatter_indices),
      wide(op.operands.updates),
      op.attributes.scatter_dimension_numbers,
      op.regions.update_computation,
      frame,
      op,
    );
  },
  "stablehlo.get_dimension_size": (op, frame) => {
    const extent = frame.tensor(op.operands.operand).shape[op.attributes.dimension];
    return [tensor("i32", [], Int32Array.of(extent ?? 0))];
  },
  "stablehlo.set_dimension_size": refuse(dynamic),
  "stablehlo.torch_index_select": (op, frame) => {
    const operand = frame.tensor(op.operands.operand);
    const index = frame.tensor(op.operands.index);
    const { dim, batch_dims: batching } = op.attributes;
    const rank = operand.shape.length;
    const batch = Array.from({ length: batching }, (_, axis) => axis);
    const taken = index.shape.length - batching;
    const sizes = operand.shape.map((extent, axis) =>
      axis === dim || axis < batching ? 1 : extent,
    );
    const offsets = Array.from({ length: rank }, (_, axis) => axis).filter(
      (axis) => axis !== dim && axis >= batching,
    );
    const dimensions = {
      offset_dims: offsets.map((axis) => (axis < dim ? axis : axis - 1 + taken)),
      collapsed_slice_dims: [dim],
      operand_batching_dims: batch,
      start_indices_batching_dims: batch,
      start_index_map: [dim],
      index_vector_dim: index.shape.length,
    };
    return one(gather(operand, index, dimensions, sizes, frame.result(op).shape));
  },
} satisfies Partial<GraphRules<[Frame], RuleResult>>;
