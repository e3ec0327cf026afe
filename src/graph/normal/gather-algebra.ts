/**
 * Products beside gathers and scatters of rows, done on the side with fewer rows. A graph network with 200,000 edges and 20,000 nodes multiplies
 * nodes, and messages between them need no memory:
 *
 *   scatter_add(M · B, t)             scatter_add(M, t) · B                rows of the result instead of rows of M
 *   Mᵀ · gather(y, t)                 scatter_add(M, t)ᵀ · y               where few rows are gathered many times
 *   gather(x, s) · B                  gather(x · B, s)
 *
 * What is out of bounds stays so: a gather clamps, a scatter drops, and a gather whose rows out of bounds are filled with zeros is the transpose of
 * a scatter. The first two sum in another order, and 0 · ∞ of a row that is filled is not computed.
 */
import { combinerKind } from "../ops/combiner.ts";
import { elements } from "../ops/elements.ts";
import type { AnyGraphOp, GraphOp, GraphValue } from "../ops/node.ts";
import { splatValue } from "../ops/small-floats.ts";
import { tensorType } from "../ops/types.ts";
import { combiner, splatOf, typeOfValue, zerosOf } from "../transform/arithmetic.ts";
import type { Place, Rewrite } from "./rewriting.ts";

type Product = GraphOp<"stablehlo.dot_general">;
type Gather = GraphOp<"stablehlo.gather">;

/** So many times fewer rows have to be multiplied to be worth another scatter. */
const fewerRows = 2;

/** Elements of which a sum of rounded products is not more exact than a product of rounded sums. */
function isWide(value: GraphValue): boolean {
  const { kind, bits } = elements[typeOfValue(value).element];
  return (kind === "float" && bits >= 32) || kind === "signed" || kind === "unsigned";
}

function splatNumber(value: GraphValue, place: Place): number | undefined {
  const op = place.definition(value);
  if (op?.kind === "stablehlo.broadcast_in_dim") return splatNumber(op.operands.operand, place);
  if (op?.kind !== "stablehlo.constant" || "kind" in op.attributes.value) return undefined;
  const number = splatValue(op.attributes.value);
  return number === undefined ? undefined : Number(number);
}

function isZero(value: GraphValue, place: Place): boolean {
  return Object.is(splatNumber(value, place), 0);
}

/** A gather of rows of a matrix: [n, d] of [rows, d] by [n, 1]. */
function isRowGather({ operands, attributes }: Gather): boolean {
  const { shape } = typeOfValue(operands.operand);
  const numbers = attributes.dimension_numbers;
  return (
    shape.length === 2 &&
    typeOfValue(operands.start_indices).shape.length === 2 &&
    numbers.index_vector_dim === 1 &&
    numbers.start_index_map.join() === "0" &&
    numbers.collapsed_slice_dims.join() === "0" &&
    numbers.offset_dims.join() === "1" &&
    attributes.slice_sizes[1] === shape[1]
  );
}

/** Rows that were gathered: of what, by which indices, and whether rows out of bounds are zeros instead of the nearest ones. */
interface GatheredRows {
  readonly rows: GraphValue;
  readonly indices: GraphValue;
  readonly isFilled: boolean;
}

function gatheredRows(value: GraphValue, place: Place): GatheredRows | undefined {
  const op = place.definition(value);
  if (op?.kind === "stablehlo.gather" && isRowGather(op))
    return { rows: op.operands.operand, indices: op.operands.start_indices, isFilled: false };
  if (op?.kind !== "stablehlo.select") return undefined;
  const inner = gatheredRows(op.operands.on_true, place);
  if (inner === undefined || inner.isFilled || !isZero(op.operands.on_false, place))
    return undefined;
  const [extent = 0] = typeOfValue(inner.rows).shape;
  return isBoundsOf(op.operands.pred, inner.indices, extent, place)
    ? { ...inner, isFilled: true }
    : undefined;
}

/** Whether truth values say for each row that its index is from 0 to extent − 1, as JAX asks it. */
function isBoundsOf(pred: GraphValue, indices: GraphValue, extent: number, place: Place): boolean {
  const spread = place.definition(pred);
  if (spread?.kind !== "stablehlo.broadcast_in_dim") return false;
  if (spread.attributes.broadcast_dimensions[0] !== 0) return false;
  const all = place.definition(spread.operands.operand);
  const asked = alongVector(all, place) ?? spread.operands.operand;
  const both = place.definition(asked);
  if (both?.kind !== "stablehlo.and") return false;
  const bounds = [both.operands.lhs, both.operands.rhs].map((each) => {
    const op = place.definition(each);
    if (op?.kind !== "stablehlo.compare" || op.operands.lhs !== indices) return undefined;
    const number = splatNumber(op.operands.rhs, place);
    return number === undefined ? undefined : `${op.attributes.comparison_direction} ${number}`;
  });
  return bounds.includes("GE 0") && bounds.includes(`LE ${extent - 1}`);
}

/** What a conjunction over the one component of index vectors, or a reshape, is of. */
function alongVector(op: AnyGraphOp | undefined, place: Place): GraphValue | undefined {
  if (op?.kind === "stablehlo.reshape") return op.operands.operand;
  if (op?.kind !== "stablehlo.reduce") return undefined;
  const [input, ...others] = op.operands.inputs;
  const [init] = op.operands.init_values;
  const isAnd = combinerKind(op.regions.body) === "stablehlo.and";
  if (input === undefined || init === undefined || others.length > 0 || !isAnd) return undefined;
  const isVector = op.attributes.dimensions.join() === "1" && splatNumber(init, place) === 1;
  return isVector && typeOfValue(input).shape[1] === 1 ? input : undefined;
}

/** A product of rows with a matrix: [n, d] · [d, e], whichever way the matrix lies. */
function isRowProduct({ operands, attributes }: Product): boolean {
  const numbers = attributes.dot_dimension_numbers;
  return (
    typeOfValue(operands.lhs).shape.length === 2 &&
    typeOfValue(operands.rhs).shape.length === 2 &&
    numbers.lhs_batching_dimensions.length === 0 &&
    numbers.lhs_contracting_dimensions.join() === "1" &&
    numbers.rhs_contracting_dimensions.length === 1
  );
}

function hasOneElement(op: Product): boolean {
  const [result] = op.results;
  const values = [op.operands.lhs, op.operands.rhs, ...(result === undefined ? [] : [result])];
  const [first] = values.map((value) => typeOfValue(value).element);
  return values.every((value) => typeOfValue(value).element === first && isWide(value));
}

function rowCount(value: GraphValue): number {
  return typeOfValue(value).shape[0] ?? 0;
}

/** Rows added up by their indices, from zeros on. */
function scatterAdded(
  place: Place,
  rows: number,
  indices: GraphValue,
  updates: GraphValue,
): GraphValue {
  const { element, shape } = typeOfValue(updates);
  const { builder } = place;
  const zeros = zerosOf(builder, tensorType(element, [rows, ...shape.slice(1)]));
  return builder.one(
    "stablehlo.scatter",
    { inputs: [zeros], scatter_indices: indices, updates: [updates] },
    {
      scatter_dimension_numbers: {
        update_window_dims: [1],
        inserted_window_dims: [0],
        input_batching_dims: [],
        scatter_indices_batching_dims: [],
        scatter_dims_to_operand_dims: [0],
        index_vector_dim: 1,
      },
      indices_are_sorted: false,
      unique_indices: false,
    },
    { regions: { update_computation: combiner(builder, element, "stablehlo.add") } },
  );
}

/** What sums of rows of a matrix are made of: [rows, d] by [n, 1] of [n, d]. */
function summedRows(op: AnyGraphOp) {
  if (op.kind !== "stablehlo.scatter") return undefined;
  const [operand, ...others] = op.operands.inputs;
  const [updates] = op.operands.updates;
  const indices = op.operands.scatter_indices;
  if (operand === undefined || updates === undefined || others.length > 0) return undefined;
  const numbers = op.attributes.scatter_dimension_numbers;
  const isOfRows =
    typeOfValue(operand).shape.length === 2 &&
    typeOfValue(indices).shape.length === 2 &&
    numbers.index_vector_dim === 1 &&
    numbers.scatter_dims_to_operand_dims.join() === "0" &&
    numbers.inserted_window_dims.join() === "0" &&
    numbers.update_window_dims.join() === "1" &&
    typeOfValue(operand).shape[1] === typeOfValue(updates).shape[1];
  const isSum = combinerKind(op.regions.update_computation) === "stablehlo.add";
  return isOfRows && isSum ? { operand, updates, indices } : undefined;
}

const productOfScatteredRows: Rewrite = (op, place) => {
  const found = summedRows(op);
  if (found === undefined) return undefined;
  const { operand, updates, indices } = found;
  if (!isZero(operand, place) || place.uses(updates) !== 1) return undefined;
  const product = place.definition(updates);
  if (product?.kind !== "stablehlo.dot_general") return undefined;
  if (!isRowProduct(product) || !hasOneElement(product)) return undefined;
  const { lhs, rhs } = product.operands;
  const [width = 0, columns = 0] = [typeOfValue(lhs).shape[1], typeOfValue(updates).shape[1]];
  const [result] = op.results;
  const isFewer = rowCount(operand) * fewerRows <= rowCount(lhs) && width <= fewerRows * columns;
  if (result === undefined || !isFewer) return undefined;
  const sums = scatterAdded(place, rowCount(operand), indices, lhs);
  return place.builder.one("stablehlo.dot_general", { lhs: sums, rhs }, product.attributes, {
    types: [typeOfValue(result)],
  });
};

const productOverGatheredRows: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.dot_general" || !hasOneElement(op)) return undefined;
  const { lhs, rhs } = op.operands;
  const numbers = op.attributes.dot_dimension_numbers;
  const [result] = op.results;
  const isOverRows =
    numbers.lhs_batching_dimensions.length === 0 &&
    numbers.lhs_contracting_dimensions.join() === "0" &&
    numbers.rhs_contracting_dimensions.join() === "0" &&
    [lhs, rhs].every((value) => typeOfValue(value).shape.length === 2);
  if (result === undefined || !isOverRows) return undefined;
  const sides = [lhs, rhs].map((value) => {
    const found = gatheredRows(value, place);
    const isFewer = found !== undefined && rowCount(found.rows) * fewerRows <= rowCount(value);
    return isFewer ? found : undefined;
  });
  // What is filled needs no clamp, and its scatter is that of the other direction.
  const side = sides.findIndex((each) => each?.isFilled === true);
  const at = side < 0 ? sides.findIndex((each) => each !== undefined) : side;
  const found = sides[at];
  if (found === undefined) return undefined;
  const rows = rowCount(found.rows);
  const indices = found.isFilled ? found.indices : clampedIndices(found.indices, rows, place);
  const sums = scatterAdded(place, rows, indices, at === 0 ? rhs : lhs);
  const operands = at === 0 ? { lhs: found.rows, rhs: sums } : { lhs: sums, rhs: found.rows };
  const { builder } = place;
  return builder.one("stablehlo.dot_general", operands, op.attributes, {
    types: [typeOfValue(result)],
  });
};

function clampedIndices(indices: GraphValue, rows: number, place: Place): GraphValue {
  const { element } = typeOfValue(indices);
  const limit = (number: number): GraphValue =>
    splatOf(place.builder, tensorType(element, []), number);
  return place.builder.one(
    "stablehlo.clamp",
    { min: limit(0), operand: indices, max: limit(rows - 1) },
    {},
  );
}

const productOfGatheredRows: Rewrite = (op, place) => {
  if (op.kind !== "stablehlo.dot_general" || !isRowProduct(op)) return undefined;
  const { lhs, rhs } = op.operands;
  const gather = place.definition(lhs);
  const [result] = op.results;
  if (gather?.kind !== "stablehlo.gather" || !isRowGather(gather) || result === undefined)
    return undefined;
  const { operand, start_indices: indices } = gather.operands;
  const columns = typeOfValue(result).shape[1] ?? 0;
  const isFewer = rowCount(operand) * fewerRows <= rowCount(lhs);
  if (!isFewer || rowCount(operand) === 0) return undefined;
  const { builder } = place;
  const type = typeOfValue(result);
  const product = builder.one("stablehlo.dot_general", { lhs: operand, rhs }, op.attributes, {
    types: [{ ...type, shape: [rowCount(operand), columns] }],
  });
  return builder.one(
    "stablehlo.gather",
    { operand: product, start_indices: indices },
    { ...gather.attributes, slice_sizes: [1, columns] },
  );
};

/** Sums before products; what is left goes before gathers afterwards. */
export const scatteredProducts = {
  "product of scattered rows": productOfScatteredRows,
  "product over gathered rows": productOverGatheredRows,
};

export const gatheredProducts = { "product of gathered rows": productOfGatheredRows };
