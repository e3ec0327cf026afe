/** Elementwise ops on whole tensors: a function of scalars at every place. */
import { operandsOf } from "../ops/index.ts";
import type { AnyGraphOp, GraphOp } from "../ops/index.ts";
import { countOf, emptyTensor } from "./datum.ts";
import type { Tensor } from "./datum.ts";
import { scalarFunction } from "./elementwise/index.ts";
import type { ScalarKind } from "./elementwise/index.ts";
import { unsupported } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { reader, writer } from "./scalars.ts";
import type { Reader, Scalar } from "./scalars.ts";

/** Reads an operand at every place of the result; one of a single element has it everywhere. */
function readerFor(operand: Tensor, count: number): Reader {
  const read = reader(operand);
  if (countOf(operand) === count) return read;
  const only = read(0);
  return () => only;
}

export function evaluateElementwise(op: GraphOp<ScalarKind>, frame: Frame): readonly Tensor[] {
  const any = op as AnyGraphOp;
  const operands = frame.tensors(operandsOf(any));
  const result = emptyTensor(frame.result(any));
  const types = { operands: operands.map(({ element }) => element), result: result.element };
  const compute = scalarFunction(op, types);
  if (compute === undefined)
    throw unsupported(any, `it is not defined for elements of ${types.operands.join(", ")}`);
  const count = countOf(result);
  const [first, second, third] = operands.map((operand) => readerFor(operand, count));
  const write = writer(result.element, result.lanes);
  if (first === undefined) throw new Error(`${op.kind} has no operands`);
  if (second === undefined) for (let i = 0; i < count; i++) write(i, compute(first(i)));
  else if (third === undefined)
    for (let i = 0; i < count; i++) write(i, compute(first(i), second(i)));
  else for (let i = 0; i < count; i++) write(i, compute(first(i), second(i), third(i)));
  return [result];
}

/** A function of scalars at every place of tensors of one shape. */
export function mapTensors(
  result: Tensor,
  compute: (...operands: Scalar[]) => Scalar,
  operands: readonly Tensor[],
): Tensor {
  const readers = operands.map(reader);
  const write = writer(result.element, result.lanes);
  const count = countOf(result);
  for (let i = 0; i < count; i++) write(i, compute(...readers.map((read) => read(i))));
  return result;
}
