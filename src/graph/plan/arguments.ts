/** Validation of the arguments of programs on devices: an array that does not fit would be accessed out of bounds. */
import { DeviceArray } from "../../device/device-array.ts";
import { Device } from "../../device/device.ts";
import { fieldsOf, isListOf, isWhole } from "../../support/checked-call.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { optionText } from "../../support/options.ts";
import { datumText } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import { heldElements } from "../lower/storage.ts";
import { isElementType, elementConstructor, slotsOf } from "../ops/elements.ts";
import { sizeOf, typeText } from "../ops/types.ts";
import type { TensorType } from "../ops/types.ts";
import type { Plan } from "./plan.ts";

function refuse(what: string, expected: string, found: unknown): never {
  throw new TilewrightError({
    code: "TW4023",
    message: `${what} is not ${expected}`,
    expected,
    found: optionText(found),
  });
}

/** Whether something is a plan, as far as its parts show. */
export function isPlan(value: unknown): value is Plan {
  const { steps, offsets, constants } = fieldsOf(value, ["steps", "offsets", "constants"]);
  return Array.isArray(steps) && Array.isArray(constants) && offsets instanceof Map;
}

export function requireLoadable(device: unknown, plan: unknown): void {
  if (!(device instanceof Device))
    refuse("argument 1 of Program.load", "a device, as open(…) gives it", device);
  if (!isPlan(plan)) refuse("argument 2 of Program.load", "a plan, as compilePlan gives it", plan);
}

/** Whether something is a tensor with a lane for each element, of the kind that its element type has. */
export function isTensor(value: unknown): value is Tensor {
  const { kind, element, shape, data } = fieldsOf(value, ["kind", "element", "shape", "data"]);
  const name = String(element);
  if (kind !== "tensor" || !isElementType(name) || !isListOf(isWhole(0))(shape)) return false;
  if (!ArrayBuffer.isView(data)) return false;
  const { [Symbol.toStringTag]: stored, length } = data as Uint8Array;
  const count = slotsOf(name) * sizeOf(shape as readonly number[]);
  return String(stored) === elementConstructor(name).name && length === count;
}

function misfit(plan: Plan, expected: readonly string[], found: readonly string[]): never {
  throw new TilewrightError({
    code: "TW9505",
    message: `@${plan.name} is given other values than it takes`,
    expected: expected.join(", ") || "nothing",
    found: found.join(", ") || "nothing",
  });
}

/** Host tensors for the parameters of a plan. */
export function requireTensors(plan: Plan, given: readonly Tensor[]): void {
  if (!isListOf(isTensor)(given))
    refuse("argument 1 of run", "a list of tensors, as tensorOfArray gives them", given);
  const expected = plan.parameters.map(typeText);
  const found = given.map(datumText);
  if (expected.join(", ") !== found.join(", ")) misfit(plan, expected, found);
}

/** The format and number of elements that an array of a type holds; arrays of none hold one. */
function heldText(type: TensorType): string {
  const held = heldElements(type.element);
  return `${held?.dtype.name ?? type.element}[${Math.max(1, (held?.each ?? 1) * sizeOf(type.shape))}]`;
}

function arraysText(
  arrays: readonly DeviceArray[],
  types: readonly TensorType[],
): readonly string[] {
  return arrays.map(({ dtype, shape }, i) => {
    const type = types[i];
    // What has no elements is not touched, whatever array stands for it.
    return type?.shape.includes(0) === true ? heldText(type) : `${dtype.name}[${sizeOf(shape)}]`;
  });
}

/** Arrays of a device for the parameters and results of a plan; a result has memory of its own, but for that of an argument that is given up for it. */
export function requireArrays(
  plan: Plan,
  inputs: readonly DeviceArray[],
  outputs: readonly DeviceArray[],
): void {
  const isArrays = isListOf((value) => value instanceof DeviceArray);
  if (!isArrays(inputs)) refuse("argument 1 of bind", "a list of arrays of the device", inputs);
  if (!isArrays(outputs)) refuse("argument 2 of bind", "a list of arrays of the device", outputs);
  const types = [...plan.parameters, ...plan.results];
  const expected = types.map(heldText);
  const counts = inputs.length === plan.parameters.length && outputs.length === plan.results.length;
  const found = arraysText([...inputs, ...outputs], counts ? types : []);
  if (!counts || expected.join() !== found.join()) misfit(plan, expected, found);
  for (const [place, output] of outputs.entries()) {
    const taken = plan.aliases.get(place);
    const given = taken === undefined ? undefined : inputs[taken];
    if (given !== undefined && !output.overlaps(given))
      throw new TilewrightError({
        code: "TW4014",
        message: `@${plan.name} writes result ${place} over argument ${taken}, and is given two arrays for them`,
        expected: "one array for both, since the argument is donated",
        found: "arrays that do not overlap",
        remedy:
          "hand the argument's array in for the result, or donate nothing: compilePlan(module, name, [])",
      });
    const input = inputs.findIndex((each, i) => i !== taken && output.overlaps(each));
    const other = outputs.findIndex((each, i) => i > place && output.overlaps(each));
    if (input < 0 && other < 0) continue;
    throw new TilewrightError({
      code: "TW4014",
      message: `@${plan.name} is given one array for result ${place} and for ${input < 0 ? `result ${other}` : `argument ${input}`}`,
      expected: "memory of its own for each result",
      found: "arrays that overlap",
      remedy: "allocate an array for each result",
    });
  }
}
