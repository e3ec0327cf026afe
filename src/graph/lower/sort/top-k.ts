/**
 * The largest elements of rows, by the library: of words in the total order of the elements (`keys.ts`), which give the elements back.
 * Short rows are sorted whole.
 */
import { topK } from "../../../kernels/sort/top-k.ts";
import type { Operation } from "../../../device/operation.ts";
import { tensor, dim } from "../../../lang/index.ts";
import type { GraphBuilder } from "../../infer/builder.ts";
import { elements, isFloatElement } from "../../ops/elements.ts";
import type { GraphOp, GraphValue } from "../../ops/node.ts";
import { isTensor, sizeOf, tensorType } from "../../ops/types.ts";
import { convert, iota, typeOfValue } from "../../transform/arithmetic.ts";
import type { LibraryCall } from "../library.ts";
import { refuse } from "../lowering.ts";
import type { Lowering } from "../lowering.ts";
import { dtypeOf, hasOtherCodes, tensorTypeOf } from "../storage.ts";
import { numbersOfWords, wordsOf } from "./keys.ts";
import { leastSorted } from "./lowering.ts";

type TopK = GraphOp<"chlo.top_k">;

function isWorthwhile({ operands, attributes }: TopK): boolean {
  const { shape } = typeOfValue(operands.operand);
  const length = shape.at(-1) ?? 0;
  return length >= leastSorted && attributes.k >= 1 && sizeOf(shape) > 0;
}

/** Whether the elements are words as they are. */
function isOfWords({ operands }: TopK): boolean {
  const { kind, bits } = elements[typeOfValue(operands.operand).element];
  return kind === "unsigned" && bits >= 8;
}

function byWords({ operands, attributes, results }: TopK, builder: GraphBuilder) {
  const { operand } = operands;
  const [values, indices] = builder.add(
    "chlo.top_k",
    { operand: wordsOf(builder, operand, "total") },
    attributes,
  );
  const [, declared] = results;
  if (values === undefined || indices === undefined || declared === undefined)
    throw new Error("the largest elements have places");
  return [
    numbersOfWords(builder, values, typeOfValue(operand).element),
    convert(builder, indices, typeOfValue(declared).element),
  ];
}

const operations = new Map<string, Operation>();

/** One operation for all rows of a format, whatever their length: their kernels are shared. */
function operationOf(op: TopK): Operation {
  const { k } = op.attributes;
  const dtype = dtypeOf(op.operands.operand);
  const key = [dtype.name, k].join();
  const known = operations.get(key);
  if (known !== undefined) return known;
  const made = topK({ x: tensor(dtype, [dim("rows"), dim("length")]), k }) as unknown as Operation;
  operations.set(key, made);
  return made;
}

function libraryTopK(op: TopK): LibraryCall {
  const { shape } = typeOfValue(op.operands.operand);
  const [rows, length, { k }] = [sizeOf(shape.slice(0, -1)), shape.at(-1) ?? 0, op.attributes];
  return {
    operation: operationOf(op),
    inputs: [{ name: "x", value: op.operands.operand, shape: [rows, length] }],
    outputs: [
      { name: "values", shape: [rows, k] },
      { name: "indices", shape: [rows, k] },
    ],
  };
}

/** A sort, of floats in their total order, largest first, that carries indices along; ties keep their order. */
function largest(
  builder: GraphBuilder,
  operand: GraphValue,
  types: readonly GraphValue[],
): readonly GraphValue[] {
  const { shape, element } = typeOfValue(operand);
  const last = shape.length - 1;
  const indices = iota(builder, tensorType("i32", shape), last);
  const scalar = tensorType(element, []);
  const index = tensorType("i32", []);
  const comparator = builder.region([scalar, scalar, index, index], (inner, [lhs, rhs]) => [
    inner.one(
      "stablehlo.compare",
      { lhs: lhs as GraphValue, rhs: rhs as GraphValue },
      {
        comparison_direction: "GT",
        ...(isFloatElement(element) && { compare_type: "TOTALORDER" }),
      },
    ),
  ]);
  const sorted = builder.add(
    "stablehlo.sort",
    { inputs: [operand, indices] },
    { dimension: last, is_stable: true },
    { regions: { comparator } },
  );
  return sorted.map((value, i) => {
    const wanted = types[i];
    const limits = wanted === undefined || !isTensor(wanted.type) ? shape : wanted.type.shape;
    const cut = builder.one(
      "stablehlo.slice",
      { operand: value },
      {
        start_indices: shape.map(() => 0),
        limit_indices: limits,
        strides: shape.map(() => 1),
      },
    );
    return wanted === undefined ? cut : convert(builder, cut, typeOfValue(wanted).element);
  });
}

function bySort({ operands, results }: TopK, builder: GraphBuilder): readonly GraphValue[] {
  return largest(builder, operands.operand, results);
}

export const topKLowering: Lowering<"chlo.top_k"> = {
  form: "choose",
  by: (op) => {
    const { element } = tensorTypeOf(op.operands.operand);
    if (hasOtherCodes(element))
      return refuse(`it works on codes, which ${element} has others; convert it to bf16`);
    if (!isWorthwhile(op)) return { form: "expand", to: bySort };
    return isOfWords(op) ? { form: "library", call: libraryTopK } : { form: "expand", to: byWords };
  },
};
