/** Inputs for kernels of programs that have no `main`: every named dimension gets a value, every array is filled. */
import { arrayParameters, outputShape } from "../../../../src/device/binding.ts";
import type { RunArguments } from "../../../../src/device/types.ts";
import { dtypes } from "../../../../src/formats/dtype.ts";
import type { DType, HostValue } from "../../../../src/formats/dtype.ts";
import { fromNumbers } from "../../../../src/formats/hostarray.ts";
import type { HostArray } from "../../../../src/formats/hostarray.ts";
import { elementCount } from "../../../../src/formats/shape.ts";
import { convertValue } from "../../../../src/formats/values.ts";
import type { Kernel } from "../../../../src/ir/node.ts";
import type { KernelDefinition } from "../../../../src/lang/index.ts";
import { Random } from "../../../../src/support/random.ts";
import type { Generator, Settings } from "../protocol.ts";

/** What every format can hold: small integers, and floats between -8 and 8. */
const draw: { readonly [G in Generator]: (random: Random, index: number) => number } = {
  normal: (random) => Math.max(-8, Math.min(8, random.normal())),
  uniform: (random) => random.uniform(),
  counting: (_, index) => index % 8,
  ones: () => 1,
  zeros: () => 0,
};

function drawn(dtype: DType, generator: Generator, random: Random, index: number): number {
  const number = draw[generator](random, index);
  const kinds: { readonly [K in DType["kind"]]: () => number } = {
    float: () => (dtype.name === "f8e8m0fnu" ? Math.abs(number) : number),
    signed: () => Math.round(number),
    unsigned: () => Math.round(Math.abs(number)),
    bool: () => Math.round(Math.abs(number)) % 2,
  };
  return kinds[dtype.kind]();
}

export function generatedArray(
  dtype: DType,
  shape: readonly number[],
  generator: Generator,
  random: Random,
): HostArray {
  const numbers = Float64Array.from({ length: elementCount(shape) }, (_, index) =>
    drawn(dtype, generator, random, index),
  );
  return fromNumbers(dtype, shape, numbers);
}

/** The dimensions and inputs of a launch of the kernel. */
export function generatedLaunch(
  kernel: Kernel,
  { generator, extent, seed }: Settings,
): {
  readonly dimensions: { readonly [name: string]: number };
  readonly inputs: RunArguments<KernelDefinition>;
} {
  const dimensions = new Map(
    kernel.dimensions.map(({ name, multipleOf }) => [
      name,
      Math.ceil(extent / multipleOf) * multipleOf,
    ]),
  );
  const random = new Random(seed);
  const inputs: { [name: string]: HostArray | HostValue } = {};
  for (const parameter of arrayParameters(kernel))
    if (parameter.role !== "output")
      inputs[parameter.name] = generatedArray(
        parameter.type.dtype,
        outputShape(parameter, dimensions),
        generator,
        random,
      );
  for (const { name, value } of kernel.parameters)
    if (value.type.kind === "scalar") {
      const { dtype } = value.type;
      inputs[name] = convertValue(dtypes.f64, dtype, drawn(dtype, generator, random, 1));
    }
  return { dimensions: Object.fromEntries(dimensions), inputs };
}
