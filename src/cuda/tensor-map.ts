/**
 * Tensor maps: 128 bytes that tell TMA how an array lies in memory. The plan knows everything
 * but the address and the values of named dimensions; the driver turns it into the hardware's form.
 *
 *   plan  x: f32, extents [n, 64], strides [4·n], box [32, 8]
 *   n = 100, x at 0x7f…00  ──cuTensorMapEncodeTiled──▶ 128 bytes, 64-byte aligned
 */
import { tensorMapProblem, tensorMapTypes } from "../emulator/tensor-map.ts";
import type { Corners, TensorMap } from "../emulator/tensor-map.ts";
import type { DTypeName } from "../formats/dtype.ts";
import type { DimensionValues } from "../ir/size.ts";
import type { Swizzle } from "../layout/algebra/shared-layout.ts";
import type { TensorMapPlan } from "../ptx/executable.ts";
import { strideUnit, tensorMapShape } from "../ptx/tensor-map-shape.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import type { CudaContext } from "./context.ts";
import { dataView, writeAddress } from "./driver.ts";
import type { HostMemory } from "./driver.ts";
import { EmptyArrays } from "./empty-arrays.ts";
import { answerText } from "./errors.ts";
import { faultText, success } from "./results.ts";

export const tensorMapBytes = 128;

/** CUtensorMapDataType; formats that it does not know are bytes to it. */
const dataTypes: { readonly [N in DTypeName]: number } = {
  f64: 8,
  f32: 7,
  tf32: 11,
  f16: 6,
  bf16: 9,
  f8e4m3fn: 0,
  f8e5m2: 0,
  f8e8m0fnu: 0,
  f6e2m3fn: 0,
  f6e3m2fn: 0,
  f4e2m1fn: 0,
  i4: 0,
  i8: 0,
  i16: 1,
  i32: 3,
  i64: 5,
  u4: 0,
  u8: 0,
  u16: 1,
  u32: 2,
  u64: 4,
  bool: 0,
};

const swizzleNumbers: { readonly [S in Swizzle]: number } = { 0: 0, 32: 1, 64: 2, 128: 3 };
const fillNumbers = { zero: 0, nan: 1 } as const;
/**
 * What memory is asked for where a box misses the cache: a line, as rows of boxes mostly are. By two lines weights of 8192 × 28672 of bf16 took
 * one row 111.4 µs on an H200 instead of 107.0, and paged attention 4 % longer; nothing was faster for it.
 */
const promotion128Bytes = 2;
const noPromotion = 0;
/** Behind the lists of extents, strides, box and element strides. */
const cornersOffset = 160;

const largestExtent = 2 ** 32;
const largestStride = 2 ** 40;

/** What the driver's function takes, as numbers. */
interface Shape {
  readonly extents: readonly number[];
  readonly strides: readonly number[];
  readonly box: readonly number[];
  /** 1 along each axis unless given. */
  readonly elementStrides?: readonly number[] | undefined;
}

/** Encodes maps; holds the memory that the driver reads them from. */
export class TensorMapEncoder {
  readonly #context: CudaContext;
  readonly #memory: HostMemory;
  readonly #emptyArrays: EmptyArrays;

  constructor(context: CudaContext) {
    this.#context = context;
    this.#emptyArrays = new EmptyArrays(context);
    this.#memory = context.driver.allocateHost(cornersOffset + 32);
  }

  /** Writes the map of an array at `address` to host memory at `target`. */
  encode(
    kernel: string,
    plan: TensorMapPlan,
    address: number,
    dimensions: DimensionValues,
    target: number,
  ): void {
    const { isEmpty, ...shape } = shapeOf(plan, dimensions);
    requireAddressable(kernel, plan, shape);
    const [extents, strides, box, steps] = this.#write(shape);
    const result = this.#context.driver.calls.cuTensorMapEncodeTiled(
      target,
      dataTypes[plan.dtype.name],
      shape.extents.length,
      isEmpty ? this.#emptyArrays.standIn(plan) : address,
      extents,
      strides,
      box,
      steps,
      0,
      swizzleNumbers[plan.swizzle],
      promotion128Bytes,
      fillNumbers[plan.fill],
    );
    if (result === success) return;
    if (faultText(result) !== undefined)
      throw this.#context.failure(result, "cuTensorMapEncodeTiled", "describe an array");
    throw unaddressable(
      kernel,
      plan,
      answerText("cuTensorMapEncodeTiled", result),
      describe(shape),
    );
  }

  /** The bytes of a map that a program describes by itself. */
  encodeMap(map: TensorMap): Uint8Array {
    const problem = tensorMapProblem(map);
    if (problem !== undefined)
      throw new TilewrightError({
        code: "TW8050",
        message: `this tensor map is invalid: ${problem}`,
        expected: "a tensor map that TMA takes",
        found: problem,
      });
    const target = this.#context.driver.allocateHost(tensorMapBytes);
    try {
      const call = map.corners === undefined ? "cuTensorMapEncodeTiled" : "cuTensorMapEncodeIm2col";
      const result =
        map.corners === undefined
          ? this.#encodeTiled(map, target.address)
          : this.#encodeIm2col(map, map.corners, target.address);
      this.#context.check(result, call, "describe an array");
      return target.bytes.slice();
    } finally {
      this.#context.driver.freeHost(target);
    }
  }

  #encodeTiled(map: TensorMap, target: number): number {
    const { type, address, extents, swizzle, fill } = map;
    const [sizes, strides, box, steps] = this.#write(map);
    return this.#context.driver.calls.cuTensorMapEncodeTiled(
      target,
      tensorMapTypes.indexOf(type),
      extents.length,
      address,
      sizes,
      strides,
      box,
      steps,
      0,
      swizzleNumbers[swizzle],
      noPromotion,
      fillNumbers[fill],
    );
  }

  #encodeIm2col(map: TensorMap, { lower, upper }: Corners, target: number): number {
    const { type, address, extents, swizzle, fill } = map;
    const [channels = 1, pixels = 1] = map.box;
    const [sizes, strides, , steps] = this.#write({ ...map, box: [] });
    const corners = this.#memory.address + cornersOffset;
    const view = dataView(this.#memory);
    [lower, upper].forEach((corner, side) => {
      corner.forEach((value, axis) => {
        view.setInt32(cornersOffset + 16 * side + 4 * axis, value, true);
      });
    });
    return this.#context.driver.calls.cuTensorMapEncodeIm2col(
      target,
      tensorMapTypes.indexOf(type),
      extents.length,
      address,
      sizes,
      strides,
      corners,
      corners + 16,
      channels,
      pixels,
      steps,
      0,
      swizzleNumbers[swizzle],
      noPromotion,
      fillNumbers[fill],
    );
  }

  dispose(): void {
    this.#emptyArrays.dispose();
    this.#context.driver.freeHost(this.#memory);
  }

  #write({
    extents,
    strides,
    box,
    elementStrides,
  }: Shape): readonly [number, number, number, number] {
    const { address } = this.#memory;
    const view = dataView(this.#memory);
    extents.forEach((extent, axis) => writeAddress(view, 8 * axis, extent));
    strides.forEach((stride, axis) => writeAddress(view, 40 + 8 * axis, stride));
    box.forEach((extent, axis) => {
      view.setUint32(80 + 4 * axis, extent, true);
    });
    extents.forEach((_, axis) => {
      view.setUint32(120 + 4 * axis, elementStrides?.[axis] ?? 1, true);
    });
    return [address, address + 40, address + 80, address + 120];
  }
}

/** The plan with its dimensions known; formats of half a byte are counted in bytes. */
function shapeOf(
  plan: TensorMapPlan,
  dimensions: DimensionValues,
): Shape & { readonly isEmpty: boolean } {
  return { ...tensorMapShape(plan, dimensions), box: plan.box };
}

function describe({ extents, strides, box }: Shape): string {
  return `extents [${extents.join(", ")}], strides of [${strides.join(", ")}] bytes, boxes of [${box.join(", ")}]`;
}

/** Arrays begin at addresses that are good for every access; the rest is up to their shape. */
function requireAddressable(kernel: string, plan: TensorMapPlan, shape: Shape): void {
  const stride = shape.strides.find((bytes) => bytes % strideUnit !== 0 || bytes >= largestStride);
  if (stride !== undefined)
    throw unaddressable(
      kernel,
      plan,
      `a stride of ${stride} bytes`,
      `strides that are multiples of ${strideUnit} bytes below 2^40`,
    );
  const extent = shape.extents.find((count) => count > largestExtent);
  if (extent !== undefined)
    throw unaddressable(kernel, plan, `an extent of ${extent}`, "extents up to 2^32");
}

function unaddressable(
  kernel: string,
  plan: TensorMapPlan,
  found: string,
  expected: string,
): TilewrightError {
  return new TilewrightError({
    code: "TW4511",
    message: `TMA cannot address array ${plan.array} of kernel ${kernel} as it is`,
    expected,
    found,
  });
}
