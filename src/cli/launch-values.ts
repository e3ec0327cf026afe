/** The arguments of `tilewright emulate` in an emulator's memory. */
import { readFileSync } from "node:fs";
import type { EmulatedArray, Emulator, ParameterValue } from "../emulator/api/index.ts";
import { packedBytes } from "../formats/dtype.ts";
import { hostArray } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { unknownLocation } from "../support/location.ts";
import type { Random } from "../support/random.ts";
import type { ArrayArgument, LaunchArgument } from "./launch-arguments.ts";
import { randomArray } from "./random-inputs.ts";

/** An array of a launch, with what it held before. */
export interface LaunchArray {
  readonly name: string;
  readonly array: EmulatedArray;
  readonly before: HostArray | undefined;
}

export interface PreparedArguments {
  readonly values: readonly ParameterValue[];
  readonly arrays: readonly LaunchArray[];
}

/** Puts the arguments into an emulator's memory. `names` are those of the entry's parameters. */
export function prepareArguments(
  emulator: Emulator,
  given: readonly LaunchArgument[],
  names: readonly string[],
  random: Random,
): PreparedArguments {
  const arrays: LaunchArray[] = [];
  const values = given.map((argument, position): ParameterValue => {
    const name = argument.name ?? names[position] ?? `argument ${position}`;
    switch (argument.kind) {
      case "null":
        return null;
      case "bytes":
        return new Uint8Array(readData(argument.path));
      case "scalar":
        return argument.dtype === undefined
          ? argument.value
          : { dtype: argument.dtype, value: argument.value };
      case "array": {
        const before = contentsOf(argument, random);
        const { dtype, shape, map } = argument;
        const array =
          before === undefined
            ? emulator.allocate(dtype, shape, name)
            : emulator.upload(before, name);
        arrays.push({ name, array, before });
        return map === undefined ? array : emulator.tensorMap(array, map);
      }
    }
  });
  return { values, arrays };
}

function contentsOf(argument: ArrayArgument, random: Random): HostArray | undefined {
  const { dtype, shape, contents } = argument;
  if (contents === undefined) return undefined;
  if (contents === "random") return randomArray(dtype, shape, random);
  const array = hostArray(dtype, shape);
  if (contents === "zeros") return array;
  const bytes = readData(contents.path);
  const wanted = packedBytes(dtype, elementCount(shape));
  if (bytes.length !== wanted)
    throw new TilewrightError({
      code: "TW5011",
      message: `${contents.path} does not hold ${dtype.name}[${shape.join(", ")}]`,
      location: unknownLocation,
      expected: `${wanted} bytes`,
      found: `${bytes.length} bytes`,
    });
  const { data } = array;
  new Uint8Array(data.buffer, data.byteOffset, data.byteLength).set(bytes);
  return array;
}

function readData(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new TilewrightError({
      code: "TW5011",
      message: `${path} cannot be read`,
      location: unknownLocation,
      expected: "random, zeros, or a file of the array's bytes",
      found: error instanceof Error ? error.message : String(error),
    });
  }
}
