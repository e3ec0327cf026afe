/** Elementwise ops on whole tensors: a function of scalars at every place. */
import { operandsOf } from "../ops/index.ts";
import type { AnyGraphOp, GraphOp } from "../ops/index.ts";
import { countOf, emptyTensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import type { ScalarKind } from "./elementwise/index.ts";
import { atOnce, pause, unsupported } from "./frame.ts";
import type { Frame, Steps } from "./frame.ts";
import {
  isNumberElement,
  numbersOf,
  reader,
  readNumbers,
  writeNumbers,
  writer,
} from "./scalars.ts";
import type { Reader, Scalar } from "./scalars.ts";

export function* evaluateElementwise(
  op: GraphOp<ScalarKind>,
  frame: Frame,
): Steps<readonly Tensor[]> {
  const any = op as AnyGraphOp;
  const operands = frame.tensors(operandsOf(any));
  const result = emptyTensor(frame.result(any));
  const types = { operands: operands.map(({ element }) => element), result: result.element };
  const compute = frame.session.arithmetic.scalarFunction(op, types);
  if (compute === undefined)
    throw unsupported(any, `it is not defined for elements of ${types.operands.join(", ")}`);
  return [yield* mapInPieces(result, compute, operands)];
}

/** A function of scalars at every place of tensors; one of a single element has it everywhere. */
export function* mapInPieces(
  result: Tensor,
  compute: (...operands: Scalar[]) => Scalar,
  operands: readonly Tensor[],
): Steps<Tensor> {
  if ([result, ...operands].every(({ element }) => isNumberElement(element)))
    yield* mapNumbers(result, compute as (...operands: number[]) => number, operands);
  else yield* mapScalars(result, compute, operands);
  return result;
}

/** The same at once. */
export function mapTensors(
  result: Tensor,
  compute: (...operands: Scalar[]) => Scalar,
  operands: readonly Tensor[],
): Tensor {
  atOnce(mapInPieces(result, compute, operands));
  return result;
}

/** Elements that are computed at once. */
const block = 1 << 13;

/** Numbers go through arrays of f64, a block at a time: the loop sees neither formats nor single elements. */
function* mapNumbers(
  result: Tensor,
  compute: (...operands: number[]) => number,
  operands: readonly Tensor[],
): Steps<void> {
  const count = countOf(result);
  const buffers = operands.map(() => new Float64Array(Math.min(block, count)));
  const spread = operands.map((operand) => countOf(operand) !== count);
  for (const [i, operand] of operands.entries())
    if (spread[i] === true && count > 0) buffers[i]?.fill(numbersOf(operand)[0] as number);
  const results = new Float64Array(Math.min(block, count));
  for (let start = 0; start < count; start += block) {
    const length = Math.min(block, count - start);
    for (const [i, operand] of operands.entries())
      if (spread[i] === false)
        readNumbers(operand, start, (buffers[i] as Float64Array).subarray(0, length));
    const [first = results, second, third, ...others] = buffers;
    if (second === undefined)
      for (let i = 0; i < length; i++) results[i] = compute(first[i] as number);
    else if (third === undefined)
      for (let i = 0; i < length; i++)
        results[i] = compute(first[i] as number, second[i] as number);
    else if (others.length === 0)
      for (let i = 0; i < length; i++)
        results[i] = compute(first[i] as number, second[i] as number, third[i] as number);
    else
      for (let i = 0; i < length; i++)
        results[i] = compute(...buffers.map((buffer) => buffer[i] as number));
    writeNumbers(result, start, results.subarray(0, length));
    if (start + length < count) yield pause;
  }
}

/** Reads an operand at every place of the result; one of a single element has it everywhere. */
function readerFor(operand: Tensor, count: number): Reader {
  const read = reader(operand);
  if (countOf(operand) === count) return read;
  const only = read(0);
  return () => only;
}

/** Integers of 64 bits and complex numbers, which arrays of f64 do not hold. */
function* mapScalars(
  result: Tensor,
  compute: (...operands: Scalar[]) => Scalar,
  operands: readonly Tensor[],
): Steps<void> {
  const count = countOf(result);
  const readers = operands.map((operand) => readerFor(operand, count));
  const [first, second, third, ...others] = readers;
  const write = writer(result.element, result.data);
  if (first === undefined) throw new Error("nothing to compute from");
  for (let start = 0; start < count; start += block) {
    if (start > 0) yield pause;
    const end = Math.min(count, start + block);
    if (second === undefined) for (let i = start; i < end; i++) write(i, compute(first(i)));
    else if (third === undefined)
      for (let i = start; i < end; i++) write(i, compute(first(i), second(i)));
    else if (others.length === 0)
      for (let i = start; i < end; i++) write(i, compute(first(i), second(i), third(i)));
    else for (let i = start; i < end; i++) write(i, compute(...readers.map((read) => read(i))));
  }
}
