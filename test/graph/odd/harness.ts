/** Random programs with what they give, and how results of the evaluator and of devices differ from it. */
import { tensor } from "../../../src/graph/evaluate/index.ts";
import type { Tensor } from "../../../src/graph/evaluate/index.ts";
import { numbersOf } from "../../../src/graph/evaluate/scalars.ts";
import { allocateTensorData, elements, isElementType } from "../../../src/graph/ops/index.ts";
import { Random } from "../../../src/support/random.ts";
import { Builder, size, typed } from "./builder.ts";
import type { Value } from "./builder.ts";
import { draws } from "./index.ts";
import { codeOf, isFloat } from "./scalars.ts";

export interface KnownProgram {
  readonly text: string;
  readonly inputs: readonly Tensor[];
  readonly results: readonly Value[];
}

/** A program of up to `mostSteps` ops, drawn from a seed; undefined where none of them fitted. */
export function knownProgram(seed: number, mostSteps = 6): KnownProgram | undefined {
  const builder = new Builder(new Random(seed));
  const steps = builder.between(1, mostSteps);
  for (let step = 0; step < steps; step++) builder.pick(draws)(builder);
  const { values, parameters } = builder;
  if (values.length === 0) return undefined;
  const results = values.filter((_, i) => i === values.length - 1 || builder.chance(2));
  return { text: builder.text(results), inputs: parameters.map(tensorOf), results };
}

function tensorOf({ element, shape, data }: Value): Tensor {
  if (!isElementType(element)) throw new Error(`${element} is no element type`);
  const lanes = allocateTensorData(element, size(shape));
  const isCoded = isFloat(element) && elements[element].bits <= 16;
  const isWide = lanes instanceof BigInt64Array || lanes instanceof BigUint64Array;
  for (const [i, value] of data.entries()) {
    const lane = isCoded ? codeOf(element, value) : value;
    lanes[i] = (isWide ? lane : Number(lane)) as never;
  }
  return tensor(element, shape, lanes);
}

/** The first element that is another than the program is known to give; NaN has no sign. */
export function difference(found: Tensor, value: Value): string | undefined {
  if (found.element !== value.element || found.shape.join() !== value.shape.join())
    return `${value.name} is ${found.element} of [${found.shape.join(", ")}], not ${typed(value)}`;
  const numbers = isFloat(value.element)
    ? [...numbersOf(found)]
    : Array.from(found.data as ArrayLike<number | bigint>, BigInt);
  const wrong = value.data.findIndex((each, i) => !Object.is(each, numbers[i]));
  return wrong < 0
    ? undefined
    : `${value.name} ${typed(value)} at ${wrong}: ${String(numbers[wrong])}, not ${String(value.data[wrong])}`;
}
