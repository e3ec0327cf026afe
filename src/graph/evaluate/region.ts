/**
 * Regions over scalars, such as the body of a reduction, as JavaScript functions of scalars.
 *
 *   reducer(%a, %b) { %0 = add %a, %b; return %0 }        [a, b] => [settle(add(a, b))]
 *
 * Where every op of the region has a function of scalars, they are chained, each result rounded or
 * wrapped to its element type. Any other region is run op by op on tensors of one element.
 */
import type { AnyGraphOp, ElementType, GraphOp, GraphRegion, GraphValue } from "../ops/index.ts";
import { allocateTensorData, isTensor, operandsOf } from "../ops/index.ts";
import { tensor, tensorOfLiteral } from "./value.ts";
import type { Tensor } from "./value.ts";
import { isScalarKind } from "./elementwise/index.ts";
import type { ScalarKind } from "./elementwise/index.ts";
import { atOnce, unsupported } from "./frame.ts";
import type { Frame } from "./frame.ts";
import { reader, settler, writer } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";

/** A region as a function: scalars in, scalars out. */
export type RegionFunction = (...inputs: Scalar[]) => readonly Scalar[];

/** The region of an op as a function; values from outside are those of the frame now. */
export function regionFunction(region: GraphRegion, frame: Frame, op: AnyGraphOp): RegionFunction {
  return chain(region, frame) ?? interpreted(region, frame, op);
}

/** A region with one result, as a function to that result. */
export function scalarRegion(
  region: GraphRegion,
  frame: Frame,
  op: AnyGraphOp,
): (...inputs: Scalar[]) => Scalar {
  const single = singleStep(region, frame);
  if (single !== undefined) return single;
  const run = regionFunction(region, frame, op);
  return (...inputs) => run(...inputs)[0] as Scalar;
}

/** The commonest region: one function of its parameters, in their order. */
function singleStep(
  region: GraphRegion,
  frame: Frame,
): ((...inputs: Scalar[]) => Scalar) | undefined {
  const [op, ...others] = region.ops;
  if (op === undefined || others.length > 0 || !isScalarOp(op)) return undefined;
  const inOrder = operandsOf(op).every((value, i) => value === region.parameters[i]);
  if (!inOrder || region.results[0] !== op.results[0]) return undefined;
  const step = scalarStep(op, frame);
  if (step === undefined) return undefined;
  const { compute, settle } = step;
  return (left, right) => settle(compute(left, right));
}

function isScalarOp(op: AnyGraphOp): boolean {
  const isScalar = ({ type }: GraphValue) => isTensor(type) && type.shape.length === 0;
  return isScalarKind(op.kind) && operandsOf(op).every(isScalar) && op.results.every(isScalar);
}

function scalarStep(op: AnyGraphOp, frame: Frame) {
  const stored = (value: GraphValue): ElementType => frame.typeOf(value, op).element;
  const operands = operandsOf(op).map(stored);
  const result = frame.result(op).element;
  const types = { operands, result };
  const compute = frame.session.arithmetic.scalarFunction(op as GraphOp<ScalarKind>, types);
  return compute === undefined ? undefined : { compute, settle: settler(result) };
}

/** The slots that a chain computes with: parameters first, then results. */
class Chain {
  readonly #slots = new Map<GraphValue, number>();
  readonly #initial: (Scalar | undefined)[] = [];
  readonly #steps: ((slots: Scalar[]) => void)[] = [];
  readonly #frame: Frame;

  constructor(frame: Frame) {
    this.#frame = frame;
  }

  slot(value: GraphValue, initial?: Scalar): number {
    const known = this.#slots.get(value);
    if (known !== undefined) return known;
    this.#slots.set(value, this.#initial.length);
    this.#initial.push(initial);
    return this.#initial.length - 1;
  }

  /** The slot of a value that is used; one from outside the region has its scalar already. */
  used(value: GraphValue): number {
    const known = this.#slots.get(value);
    return known ?? this.slot(value, reader(this.#frame.tensor(value))(0));
  }

  add(op: AnyGraphOp): boolean {
    const [result] = op.results;
    if (result === undefined) return false;
    if (op.kind === "stablehlo.constant") {
      const { value } = op.attributes;
      if ("kind" in value || value.type.shape.length > 0) return false;
      const literal = this.#frame.session.arithmetic.kept(tensorOfLiteral(value));
      this.slot(result, reader(literal)(0));
      return true;
    }
    const step = isScalarOp(op) ? scalarStep(op, this.#frame) : undefined;
    if (step === undefined) return false;
    const { compute, settle } = step;
    const [first = 0, second = first, third = first] = operandsOf(op).map((each) =>
      this.used(each),
    );
    const target = this.slot(result);
    this.#steps.push((slots) => {
      slots[target] = settle(
        compute(slots[first] as Scalar, slots[second] as Scalar, slots[third] as Scalar),
      );
    });
    return true;
  }

  finish(results: readonly GraphValue[]): RegionFunction {
    const places = results.map((value) => this.used(value));
    const slots = this.#initial as Scalar[];
    const steps = this.#steps;
    return (...inputs) => {
      for (let i = 0; i < inputs.length; i++) slots[i] = inputs[i] as Scalar;
      for (const step of steps) step(slots);
      return places.map((place) => slots[place] as Scalar);
    };
  }
}

function chain(region: GraphRegion, frame: Frame): RegionFunction | undefined {
  const built = new Chain(frame);
  for (const parameter of region.parameters) built.slot(parameter);
  return region.ops.every((op) => built.add(op)) ? built.finish(region.results) : undefined;
}

function interpreted(region: GraphRegion, frame: Frame, op: AnyGraphOp): RegionFunction {
  const elements = region.parameters.map((value) => frame.typeOf(value, op).element);
  return (...inputs) => {
    const data = inputs.map((value, i) => scalarTensor(elements[i] as ElementType, value));
    const { limits, runRegion } = frame.session;
    const results = atOnce(runRegion(region, data, frame), () => {
      limits.look(op.location);
    });
    if (results === undefined) throw unsupported(op, "processes cannot meet inside its region");
    return results.value.map((datum) => reader(datum as Tensor)(0));
  };
}

function scalarTensor(element: ElementType, value: Scalar): Tensor {
  const data = allocateTensorData(element, 1);
  writer(element, data)(0, value);
  return tensor(element, [], data);
}
