/**
 * Sorts by the library. It sorts by whole numbers, stably, and moves any number of arrays along; every sort whose comparator is an
 * order by keys (`order.ts`) becomes such sorts over keys (`keys.ts`).
 *
 *   sort(x, y) by JAX's order of floats  ─▶  key = word of x;  sort(key, x, y) by key alone
 *   sort by words w1, w2                 ─▶  by w2 first, w1 along with the operands; then by w1
 *
 * Short rows, and comparators that are no order by keys, are sorted by ranks (`ranks.ts`).
 */
import { sort } from "../../../kernels/sort/sort.ts";
import type { Operation } from "../../../device/operation.ts";
import { tensor, dim } from "../../../lang/index.ts";
import type { TensorSpec } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { appliedComparison } from "../../ops/combiner.ts";
import { elements, isIntegerElement } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { sizeOf, tensorType } from "../../ops/types.ts";
import { typeOfValue } from "../../transform/arithmetic.ts";
import type { LibraryCall } from "../library.ts";
import { refuse } from "../lowering.ts";
import type { Lowering } from "../lowering.ts";
import { dtypeOf, hasOtherCodes } from "../storage.ts";
import { sortWords } from "./keys.ts";
import { orderOfComparator } from "./order.ts";
import { rankSteps } from "./ranks.ts";

type Sort = GraphOp<"stablehlo.sort">;

/** Rows shorter than this are sorted as fast by ranks, unless there are many of them. */
export const leastSorted = 128;
const leastOfMany = 16;
const manyElements = 2 ** 17;

function axisOf({ operands, attributes }: Sort): number {
  const [first] = operands.inputs;
  const rank = first === undefined ? 1 : typeOfValue(first).shape.length;
  return attributes.dimension < 0 ? attributes.dimension + rank : attributes.dimension;
}

/** The operands as the library sees them: rows along an axis, with what lies within each place. */
function viewOf(op: Sort): { readonly [N in "outer" | "length" | "inner"]: number } {
  const [first] = op.operands.inputs;
  const shape = first === undefined ? [] : typeOfValue(first).shape;
  const axis = axisOf(op);
  return {
    outer: sizeOf(shape.slice(0, axis)),
    length: shape[axis] ?? 1,
    inner: sizeOf(shape.slice(axis + 1)),
  };
}

function isWorthwhile(op: Sort): boolean {
  const { outer, length, inner } = viewOf(op);
  const isMany = length >= leastOfMany && outer * length * inner >= manyElements;
  return (length >= leastSorted || isMany) && outer * inner > 0;
}

/** How the library sorts by the first operand, where the comparator asks that alone. */
function ownOrder(op: Sort): { readonly isDescending: boolean } | undefined {
  const [first] = op.operands.inputs;
  const direction = appliedComparison(op.regions.comparator);
  if (first === undefined || (direction !== "LT" && direction !== "GT")) return undefined;
  const { element } = typeOfValue(first);
  if (!isIntegerElement(element) || elements[element].bits < 8) return undefined;
  return { isDescending: direction === "GT" };
}

/** The same by words that the library sorts by. */
function expandSort(op: Sort, builder: GraphBuilder): readonly GraphValue[] {
  const order = orderOfComparator(op.regions.comparator);
  if (order === undefined) throw new Error("the sort has an order by keys");
  const { inputs } = op.operands;
  let values: readonly GraphValue[] = [...sortWords(builder, order, inputs), ...inputs];
  for (let word = values.length - inputs.length; word > 0; word--) {
    // The word of least weight stands before the operands; sorted by, it is not needed any more.
    const [key, ...others] = [
      values[word - 1],
      ...values.slice(0, word - 1),
      ...values.slice(word),
    ];
    const sorted = sortedBy(builder, [key, ...others] as readonly GraphValue[], axisOf(op));
    values = sorted.slice(1);
  }
  return values;
}

/** Operands in the order of the first of them, which is one of words. */
function sortedBy(
  builder: GraphBuilder,
  inputs: readonly GraphValue[],
  dimension: number,
): readonly GraphValue[] {
  const scalars = inputs.flatMap((value) => {
    const scalar = tensorType(typeOfValue(value).element, []);
    return [scalar, scalar];
  });
  const comparator = builder.region(scalars, (inner, [lhs, rhs]) => [
    inner.one(
      "stablehlo.compare",
      { lhs: lhs as GraphValue, rhs: rhs as GraphValue },
      { comparison_direction: "LT", compare_type: "UNSIGNED" },
    ),
  ]);
  const attributes = { dimension, is_stable: true };
  return builder.add("stablehlo.sort", { inputs }, attributes, { regions: { comparator } });
}

const operations = new Map<string, Operation>();

/** One operation for all sorts of the same formats, whatever their sizes: their kernels are shared. */
function operationOf(op: Sort, isDescending: boolean, isInner: boolean): Operation {
  const dtypes = op.operands.inputs.map((value) => dtypeOf(value));
  const key = [isDescending, isInner, ...dtypes.map(({ name }) => name)].join();
  const known = operations.get(key);
  if (known !== undefined) return known;
  const [outer, length, inner] = [dim("outer"), dim("length"), dim("inner")];
  const shape = isInner ? [outer, length, inner] : [outer, length];
  const [x, ...others] = dtypes.map((dtype) => tensor(dtype, shape));
  const payloads = Object.fromEntries(others.map((spec, i) => [`part${i}`, spec as TensorSpec]));
  const made = sort({
    x: x as TensorSpec,
    axis: 1,
    descending: isDescending,
    payloads,
  }) as unknown as Operation;
  operations.set(key, made);
  return made;
}

function librarySort(op: Sort): LibraryCall {
  const order = ownOrder(op);
  if (order === undefined) throw new Error("the library sorts by the first operand");
  const { outer, length, inner } = viewOf(op);
  const isInner = inner > 1;
  const shape = isInner ? [outer, length, inner] : [outer, length];
  const name = (place: number): string => (place === 0 ? "x" : `part${place - 1}`);
  const sorted = (place: number): string => (place === 0 ? "out" : `sortedPart${place - 1}`);
  return {
    operation: operationOf(op, order.isDescending, isInner),
    inputs: op.operands.inputs.map((value, i) => ({ name: name(i), value, shape })),
    outputs: op.results.map((_, i) => ({ name: sorted(i), shape })),
  };
}

export const sortLowering: Lowering<"stablehlo.sort"> = {
  form: "choose",
  by: (op) => {
    const others = op.operands.inputs
      .map((value) => typeOfValue(value).element)
      .find(hasOtherCodes);
    if (others !== undefined)
      return refuse(`sorts work on codes, which ${others} has others; convert it to bf16`);
    if (isWorthwhile(op)) {
      if (ownOrder(op) !== undefined) return { form: "library", call: librarySort };
      if (orderOfComparator(op.regions.comparator) !== undefined)
        return { form: "expand", to: expandSort };
    }
    return { form: "steps", steps: rankSteps };
  },
};
