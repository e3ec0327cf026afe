/**
 * Inputs for a kernel that nobody wrote inputs for: every named dimension gets a value, every array and
 * scalar seeded random numbers. One seed gives the same inputs on every machine.
 *
 *   dim("n")                       1000, or --dim n=…
 *   dim("n", { multipleOf: 64 })   1024: rounded up to what the kernel was promised
 *   processors                     as many as the target has
 *   floats                         standard normal
 *   integers                       -8 … 7, or 0 … 15: what every format can hold
 */
import { arrayParameters, outputShape } from "../device/binding.ts";
import type { RunArguments } from "../device/types.ts";
import { dtypes, withinMemory } from "../formats/dtype.ts";
import type { DType, HostValue } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { convertValue } from "../formats/values.ts";
import type { KernelInterface } from "../ir/node.ts";
import { processors } from "../ir/size.ts";
import type { KernelDefinition } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import { Random } from "../support/random.ts";
import type { Target } from "../targets/target.ts";
import type { Launchable } from "./user-module.ts";

export type Dimensions = { readonly [name: string]: number };

const defaultExtent = 1000;

/** The value of every dimension of the kernel; the number of processors is that of the target. */
export function chooseDimensions(
  kernel: KernelInterface,
  given: Dimensions,
  target: Pick<Target, "processors">,
  extent = defaultExtent,
): Dimensions {
  return Object.fromEntries(
    kernel.dimensions.map(({ name, multipleOf }) => [
      name,
      given[name] ??
        (name === processors.name
          ? target.processors
          : Math.ceil(extent / multipleOf) * multipleOf),
    ]),
  );
}

/** Refuses values for dimensions that no kernel has. */
export function requireTaken(given: Dimensions, kernels: readonly Launchable[]): void {
  const known = kernels.flatMap(({ definition }) =>
    definition.kernel.dimensions.map(({ name }) => name),
  );
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new TilewrightError({
    code: "TW5006",
    message: `no kernel to run has a dimension ${unknown}`,
    location: unknownLocation,
    expected: [...new Set(known)].join(", ") || "no --dim",
    found: unknown,
  });
}

/** Random inputs and in-out arrays for a launch with these dimensions. */
export function randomInputs(
  kernel: KernelInterface,
  dimensions: Dimensions,
  seed: number,
): RunArguments<KernelDefinition> {
  const random = new Random(seed);
  const values = new Map(Object.entries(dimensions));
  const arrays = new Map(arrayParameters(kernel).map((array) => [array.name, array]));
  const inputs: { [name: string]: HostArray | HostValue } = {};
  for (const { name, role, value } of kernel.parameters) {
    const array = arrays.get(name);
    if (array !== undefined && role !== "output")
      inputs[name] = randomArray(array.type.dtype, outputShape(array, values), random);
    if (value.type.kind === "scalar") inputs[name] = randomValue(value.type.dtype, random);
  }
  return inputs;
}

/**
 * What a report has to say of random inputs: whole numbers in memory are often indices, or ends of groups, which random ones are not.
 * Undefined where the kernel has none.
 */
export function randomNote({ parameters }: KernelInterface, seed: number): string | undefined {
  const named = parameters.flatMap(({ name, role, value: { type } }) =>
    type.kind === "ref" && role !== "output" && type.dtype.kind.endsWith("signed") ? [name] : [],
  );
  if (named.length === 0) return undefined;
  return `the whole numbers in ${named.join(", ")} are random, of seed ${seed}; export main(device) to run the kernel on others`;
}

/** An array of random numbers. */
export function randomArray(dtype: DType, shape: readonly number[], random: Random): HostArray {
  const count = elementCount(shape);
  const numbers = withinMemory(dtype.name, count, () => new Float64Array(count));
  for (let at = 0; at < count; at++) numbers[at] = randomNumber(dtype, random);
  return fromNumbers(dtype, shape, numbers);
}

function randomValue(dtype: DType, random: Random): HostValue {
  return convertValue(dtypes.f64, dtype, randomNumber(dtype, random));
}

function randomNumber(dtype: DType, random: Random): number {
  const numbers: { readonly [K in DType["kind"]]: () => number } = {
    // The scale format has no sign.
    float: () => (dtype.name === "f8e8m0fnu" ? Math.abs(random.normal()) : random.normal()),
    signed: () => random.below(16) - 8,
    unsigned: () => random.below(16),
    bool: () => random.below(2),
  };
  return numbers[dtype.kind]();
}
