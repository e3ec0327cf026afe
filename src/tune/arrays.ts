/**
 * The arrays that candidates are tried and timed on: random numbers made on the device, since uploading gigabytes takes
 * longer than measuring; the same numbers for every candidate.
 */
import type { Device } from "../device/device.ts";
import type { DeviceArray } from "../device/device-array.ts";
import { disposeAll } from "../device/device-array.ts";
import type { Operation } from "../device/operation.ts";
import type { Sizes } from "../device/tuning/line.ts";
import { dtypes, packedBytes } from "../formats/dtype.ts";
import type { DType, HostValue } from "../formats/dtype.ts";
import { isHostArray } from "../formats/hostarray.ts";
import type { HostArray } from "../formats/hostarray.ts";
import { elementCount } from "../formats/shape.ts";
import type { KernelParameter } from "../ir/node.ts";
import { evaluateSize } from "../ir/size.ts";
import { tensor, cdiv, dim, iota, kernel, scalar, slice } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { Location } from "../support/location.ts";
import { isRecord, optionText } from "../support/options.ts";

/** What a case may give by name: arrays of the host, and values of scalars. */
export type GivenInputs = { readonly [name: string]: HostArray | HostValue };

/** A set of arguments: arrays of the device, and values of scalars. */
export type ArgumentSet = { readonly [name: string]: DeviceArray | HostValue };

const span = 2048;

/** Floats near a normal distribution: the sum of four bytes of a mixed counter. Integers are small, of both signs. */
function randomKernel(dtype: DType) {
  const n = dim("n");
  return kernel(
    {
      name: `random_${dtype.name}`,
      grid: { i: cdiv(n, span) },
      inputs: { seed: scalar(dtypes.u32) },
      outputs: { out: tensor(dtype, [n]) },
    },
    ({ i, seed, out }) => {
      const start = i.mul(span);
      const position = iota(dtypes.u32, [span], { axis: 0 }).add(start.cast(dtypes.u32));
      let mixed = position.mul(0x9e3779b9).xor(seed);
      mixed = mixed.xor(mixed.shr(16)).mul(0x85ebca6b);
      mixed = mixed.xor(mixed.shr(13)).mul(0xc2b2ae35);
      mixed = mixed.xor(mixed.shr(16));
      const byte = (shift: number) => mixed.shr(shift).and(255);
      const sum = byte(0).add(byte(8)).add(byte(16)).add(byte(24)).cast(dtypes.f32);
      const normal = sum.sub(510).mul(1 / 147.8);
      const numbers = dtype.kind === "float" ? normal : normal.mul(2);
      out.at(slice(start, span)).store(numbers.cast(dtype));
    },
  );
}

/** Bytes of the arguments of one set. */
export function setBytes(operation: Operation, sizes: Sizes): number {
  return arrayShapes(operation, sizes).reduce(
    (sum, { dtype, shape }) => sum + packedBytes(dtype, elementCount(shape)),
    0,
  );
}

interface ShapedParameter {
  readonly name: string;
  readonly role: KernelParameter["role"];
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Whether it has no strides of its own, so that arrays for it are of its shape. */
  readonly isByRows: boolean;
}

export function arrayShapes(operation: Operation, sizes: Sizes): readonly ShapedParameter[] {
  const values = new Map(Object.entries(sizes));
  return operation.kernel.parameters.flatMap(({ name, role, strides, value: { type } }) =>
    type.kind === "ref"
      ? [
          {
            name,
            role,
            dtype: type.dtype,
            shape: type.shape.map((size) => evaluateSize(size, values)),
            isByRows: strides === undefined,
          },
        ]
      : [],
  );
}

/** Refuses inputs that the operation does not have, or of another format or shape: every choice would fail of them. */
export function requireGiven(
  operation: Operation,
  sizes: Sizes,
  given: unknown,
  location: Location,
): void {
  const wrong = (expected: string, found: string): TilewrightError =>
    new TilewrightError({
      ...{ code: "TW9815", message: `inputs of tune do not fit ${operation.name}` },
      ...{ expected, found, location },
    });
  if (!isRecord(given)) throw wrong("arrays and values by name", optionText(given));
  const parameters = operation.kernel.parameters.filter(({ role }) => role !== "output");
  const names = parameters.map(({ name }) => name);
  const unknown = Object.keys(given).find((name) => !names.includes(name));
  if (unknown !== undefined) throw wrong(names.join(", "), unknown);
  for (const { name, dtype, shape, isByRows } of arrayShapes(operation, sizes)) {
    const own = given[name];
    if (!names.includes(name) || own === undefined) continue;
    const expected = `${name} of ${dtype.name}[${shape.join(", ")}]`;
    if (!isHostArray(own)) throw wrong(expected, optionText(own));
    const isShaped = own.shape.join() === shape.join() || !isByRows;
    if (own.dtype.name !== dtype.name || !isShaped)
      throw wrong(expected, `${own.dtype.name}[${own.shape.join(", ")}]`);
  }
}

/** Arguments for one set; `given` are the caller's, everything else is random. */
export async function argumentSet(
  device: Device,
  operation: Operation,
  sizes: Sizes,
  set: number,
  given: GivenInputs,
): Promise<{ readonly set: ArgumentSet; readonly dispose: () => void }> {
  const made: DeviceArray[] = [];
  const args: { [name: string]: DeviceArray | HostValue } = {};
  try {
    for (const [index, { name, role, dtype, shape }] of arrayShapes(operation, sizes).entries()) {
      const own = role === "output" ? undefined : given[name];
      const filled =
        typeof own === "object"
          ? await device.upload(own)
          : role === "output"
            ? device.allocate(dtype, shape)
            : randomArray(device, dtype, shape, 1000 * set + index + 1);
      made.push(filled);
      args[name] = filled;
    }
    for (const { name } of operation.kernel.parameters.filter(({ role }) => role === "scalar"))
      args[name] = requireScalar(operation.name, name, given[name]);
    return { set: args, dispose: () => disposeAll(made) };
  } catch (error) {
    disposeAll(made);
    throw error;
  }
}

function randomArray(
  device: Device,
  dtype: DType,
  shape: readonly number[],
  seed: number,
): DeviceArray {
  const out = device.allocate(dtype, shape);
  if (elementCount(shape) > 0)
    device.launch(randomKernel(dtype), {
      seed,
      out: out.reshape([elementCount(shape)]),
    });
  return out;
}

function requireScalar(
  operation: string,
  name: string,
  value: GivenInputs[string] | undefined,
): HostValue {
  if (value !== undefined && typeof value !== "object") return value;
  throw new TilewrightError({
    code: "TW9815",
    message: `${operation} has the scalar ${name}, whose value nobody can guess`,
    expected: `inputs: () => ({ ${name}: … })`,
    found: "no value",
  });
}
