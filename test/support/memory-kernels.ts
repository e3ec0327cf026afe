/** Kernels that move data, run as PTX by the emulator and compared with the simulator. */
import { expect } from "vitest";
import { allocateElements, packedBytes } from "../../src/formats/dtype.ts";
import type { DType, Elements } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import type { AnyOp, Kernel, Value } from "../../src/ir/node.ts";
import { evaluateSize } from "../../src/ir/size.ts";
import type { RegisterLayout } from "../../src/layout/algebra/register-layout.ts";
import { collectScratch } from "../../src/layout/plan/agents.ts";
import { allocate } from "../../src/layout/plan/allocate.ts";
import type { NeededOperand, Placement } from "../../src/layout/plan/place.ts";
import { emitKernel } from "../../src/ptx/emit/kernel.ts";
import { emulate, EmulatedMemory } from "../../src/emulator/index.ts";
import type { DimensionValues } from "../../src/ir/size.ts";
import type { Executable, LaunchParameter } from "../../src/ptx/executable.ts";
import type { TilewrightError } from "../../src/support/diagnostics.ts";
import { simulate } from "../../src/sim/index.ts";
import { Random } from "../../src/support/random.ts";
import { defaultTarget } from "../../src/targets/target.ts";
import { guardBounds } from "../../src/lower/guard-bounds.ts";
import { insertBarriers } from "../../src/lower/barriers/index.ts";
import { place } from "../../src/lower/stages.ts";
import { placedKernel } from "../../src/layout/plan/placed-kernel.ts";
import { holdAgainstFacts } from "./held-facts.ts";

export interface MovedCase {
  readonly kernel: Kernel;
  readonly dimensions?: { readonly [name: string]: number };
  /** Whether arrays hold numbers of usual size, in place of any bits. */
  readonly numbers?: boolean;
  /** A layout for every tile, in place of the placement's own. */
  readonly layout?: ((value: Value) => RegisterLayout | undefined) | undefined;
}

/** The kernel as PTX; tiles lie as `layout` says where it says so. */
export function emitMoved({ kernel, layout }: MovedCase): Executable {
  const placed = place(kernel, defaultTarget);
  if (layout === undefined) return emitKernel(placed.kernel);
  const moved = placedKernel(overridden(placed.placement, layout));
  return emitKernel(insertBarriers(guardBounds(allocate(moved))));
}

function overridden(
  placement: Placement,
  layout: (value: Value) => RegisterLayout | undefined,
): Placement {
  const layouts = [...placement.layouts].map(
    ([value, own]) => [value, layout(value) ?? own] as const,
  );
  const needs = new Map(
    [...placement.needs].map(([op, needed]): [AnyOp, readonly NeededOperand[]] => [
      op,
      needed.map((need) => ({ ...need, layout: layout(need.value) ?? need.layout })),
    ]),
  );
  const areas = collectScratch({ ...placement, needs });
  return { ...placement, layouts: new Map(layouts), needs, areas };
}

/** Random bits that are values of the format. */
function randomBits(dtype: DType, bytes: number, random: Random): Uint8Array {
  return Uint8Array.from({ length: bytes }, () => random.below(dtype.kind === "bool" ? 2 : 256));
}

function randomNumbers(dtype: DType, count: number, random: Random): Uint8Array {
  const numbers = Array.from({ length: count }, () => random.normal());
  const { data } = fromNumbers(dtype, [count], numbers);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function lanesOf(dtype: DType, bytes: Uint8Array): Elements {
  if (dtype.bits === 4) return bytes.slice();
  const lanes = allocateElements(dtype, (bytes.length * 8) / dtype.bits);
  new Uint8Array(lanes.buffer).set(bytes);
  return lanes;
}

/** Runs the kernel, writes the arrays in place, and gives what the emulator found. */
function run(
  executable: Executable,
  arrays: ReadonlyMap<string, Uint8Array>,
  dimensions: DimensionValues,
): readonly TilewrightError[] {
  const { entry, threadsPerBlock: lanes, cluster, sharedBytes, module, target } = executable;
  const memory = new EmulatedMemory();
  const places = new Map<string, number>();
  for (const [name, bytes] of arrays) {
    // Lone 4-bit elements are updated with the whole word around them.
    const place = memory.allocate(Math.ceil(bytes.length / 4) * 4, name);
    memory.write(place, bytes);
    places.set(name, place);
  }
  const encode = (parameter: LaunchParameter): Uint8Array => {
    switch (parameter.kind) {
      case "array":
        return wide(places.get(parameter.name) ?? 0);
      case "scratch":
        return wide(memory.allocate(evaluateSize(parameter.bytes, dimensions), parameter.name));
      case "size": {
        const size = evaluateSize(parameter.size, dimensions);
        return parameter.bits === 64 ? wide(size) : new Uint8Array(Uint32Array.of(size).buffer);
      }
      case "scalar":
      case "tensorMap":
      case "messages":
        throw new Error(`a parameter of kind ${parameter.kind}`);
    }
  };
  const parameters = executable.parameters.map(encode);
  const blocks = [evaluateSize(executable.blocks, dimensions), 1, 1] as const;
  const shape = {
    entry,
    blocks,
    threads: [lanes, 1, 1],
    cluster,
    sharedBytes,
    parameters,
  } as const;
  const { findings } = emulate(module, shape, memory, { target, seed: 1 });
  for (const [name, bytes] of arrays) bytes.set(memory.read(places.get(name) ?? 0, bytes.length));
  return findings;
}

function wide(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}

/** Runs both and compares every array. */
export async function expectSame(moved: MovedCase, seed: number, message: string): Promise<void> {
  const { kernel } = moved;
  const dimensions = new Map(Object.entries(moved.dimensions ?? {}));
  const random = new Random(seed);
  const arrays = new Map<string, { readonly dtype: DType; readonly bytes: Uint8Array }>();
  for (const { name, value, strides } of kernel.parameters) {
    if (value.type.kind !== "ref") continue;
    const { dtype, shape } = value.type;
    const extents = shape.map((size) => evaluateSize(size, dimensions));
    const count = strides
      ? 1 +
        strides.reduce<number>(
          (last, stride, axis) =>
            last + ((extents[axis] ?? 1) - 1) * evaluateSize(stride, dimensions),
          0,
        )
      : extents.reduce((product, extent) => product * extent, 1);
    const bytes = moved.numbers
      ? randomNumbers(dtype, count, random)
      : randomBits(dtype, packedBytes(dtype, count), random);
    arrays.set(name, { dtype, bytes });
  }
  const simulated = new Map(
    [...arrays].map(([name, { dtype, bytes }]) => [
      name,
      { dtype, data: lanesOf(dtype, bytes), initialised: true },
    ]),
  );
  await simulate(
    kernel,
    { arrays: simulated, scalars: new Map(), dimensions },
    { checks: false, observe: holdAgainstFacts(kernel, dimensions) },
  );
  const own = new Map([...arrays].map(([name, { bytes }]) => [name, bytes.slice()]));
  const findings = run(emitMoved(moved), own, dimensions);
  expect(findings.slice(0, 2).map(String), message).toEqual([]);
  for (const [name, bytes] of own) {
    const expected = simulated.get(name)?.data ?? new Uint8Array();
    const view = new Uint8Array(expected.buffer, expected.byteOffset, expected.byteLength);
    expect(Buffer.from(bytes).toString("hex"), `${name} of ${message}, seed ${seed}`).toBe(
      Buffer.from(view).toString("hex"),
    );
  }
}
