/**
 * Convolution: correlation of a padded, dilated input with a kernel, in groups.
 *
 *   out[b, f, x] = Σ over taps t and input features c of   in[b, c, x·stride + t·dilation - low] · kernel[c, f, t]
 *
 * For each output position the taps that meet the input are listed once, as pairs of places; holes of
 * dilation and padding are zero and left out.
 */
import type { ConvolutionNumbers, TensorType } from "../ops/index.ts";
import { emptyTensor, tensor } from "./value.ts";
import type { Tensor } from "./value.ts";
import { pause, pieceWork } from "./frame.ts";
import type { Steps } from "./frame.ts";
import { rowProducts } from "./products.ts";
import { writer } from "./scalars.ts";
import { allocateTensorData, sizeOf, slotsOf } from "../ops/index.ts";
import { forEachIndex, indicesOf, placeOf, stridesOf } from "./strides.ts";

export interface SpatialWindow {
  readonly stride: number;
  readonly low: number;
  readonly inputDilation: number;
  readonly kernelDilation: number;
  readonly reversed: boolean;
}

export interface ConvolutionSettings {
  readonly numbers: ConvolutionNumbers;
  readonly windows: readonly SpatialWindow[];
  readonly featureGroups: number;
  readonly batchGroups: number;
}

/** Pairs of places, relative to a batch and feature: [input, kernel]. */
type Tap = readonly [input: number, kernel: number];

export function* convolve(
  input: Tensor,
  kernel: Tensor,
  type: TensorType,
  settings: ConvolutionSettings,
  isModular = false,
): Steps<Tensor> {
  const { numbers, featureGroups, batchGroups } = settings;
  const inputStrides = stridesOf(input.shape);
  const kernelStrides = stridesOf(kernel.shape);
  const result = emptyTensor(type);
  const resultStrides = stridesOf(type.shape);
  const batches = type.shape[numbers.output_batch_dimension] as number;
  const features = type.shape[numbers.output_feature_dimension] as number;
  const channels = kernel.shape[numbers.kernel_input_feature_dimension] as number;
  const inputBatch = inputStrides[numbers.input_batch_dimension] as number;
  const inputFeature = inputStrides[numbers.input_feature_dimension] as number;
  const kernelInput = kernelStrides[numbers.kernel_input_feature_dimension] as number;
  const kernelOutput = kernelStrides[numbers.kernel_output_feature_dimension] as number;
  const write = writer(type.element, result.data);
  const spatialAxes = numbers.output_spatial_dimensions;
  const spatialStrides = spatialAxes.map((axis) => resultStrides[axis] as number);
  const products = sizeOf(kernel.shape) / Math.max(1, features);
  const groups = featureGroups * batchGroups;
  const inputStarts: number[] = [];
  // The rows of the input are those of each batch and group.
  const rowOf = (b: number, f: number): number => {
    const group = Math.floor((f * groups) / features);
    const batch = batchGroups > 1 ? group * batches + b : b;
    const channel = featureGroups > 1 ? group * channels : 0;
    const row = b * groups + group;
    inputStarts[row] ??= batch * inputBatch + channel * inputFeature;
    return row;
  };
  for (let b = 0; b < batches; b++) for (let f = 0; f < features; f++) rowOf(b, f);
  const kernelStarts = Array.from({ length: features }, (_, f) => f * kernelOutput);
  const kernelRows = new Map<string, Tensor>();
  let work = 0;
  for (const position of indicesOf(spatialAxes.map((axis) => type.shape[axis] as number))) {
    const taps = tapsAt(input, kernel, position, settings);
    const length = taps.length * channels;
    const left = rowsOf(input, inputStarts, placesOf(taps, 0, channels, inputFeature));
    const kernelPlaces = placesOf(taps, 1, channels, kernelInput);
    // Most positions meet the same taps of the kernel.
    const key = taps.map(([, place]) => place).join();
    const right = kernelRows.get(key) ?? rowsOf(kernel, kernelStarts, kernelPlaces);
    kernelRows.set(key, right);
    const sum = rowProducts(left, right, type.element, products, isModular);
    const place = placeOf(position, spatialStrides);
    for (let b = 0; b < batches; b++)
      for (let f = 0; f < features; f++) {
        const target =
          place +
          b * (resultStrides[numbers.output_batch_dimension] as number) +
          f * (resultStrides[numbers.output_feature_dimension] as number);
        write(target, sum(rowOf(b, f) * length, f * length, length));
        work += 8 + length;
        if (work < pieceWork) continue;
        work = 0;
        yield pause;
      }
  }
  return result;
}

/** The taps of the kernel that meet an element of the input at an output position. */
function tapsAt(
  input: Tensor,
  kernel: Tensor,
  position: readonly number[],
  { numbers, windows }: ConvolutionSettings,
): readonly Tap[] {
  const inputStrides = stridesOf(input.shape);
  const kernelStrides = stridesOf(kernel.shape);
  const sizes = numbers.kernel_spatial_dimensions.map((axis) => kernel.shape[axis] as number);
  const taps: Tap[] = [];
  forEachIndex(sizes, (tap) => {
    let inputPlace = 0;
    let kernelPlace = 0;
    for (const [i, window] of windows.entries()) {
      const { stride, low, inputDilation, kernelDilation, reversed } = window;
      const dilated = (position[i] as number) * stride + (tap[i] as number) * kernelDilation - low;
      const axis = numbers.input_spatial_dimensions[i] as number;
      const place = dilated / inputDilation;
      if (dilated < 0 || !Number.isInteger(place) || place >= (input.shape[axis] as number)) return;
      const kernelAxis = numbers.kernel_spatial_dimensions[i] as number;
      const at = reversed ? (sizes[i] as number) - 1 - (tap[i] as number) : (tap[i] as number);
      inputPlace += place * (inputStrides[axis] as number);
      kernelPlace += at * (kernelStrides[kernelAxis] as number);
    }
    taps.push([inputPlace, kernelPlace]);
  });
  return taps;
}

/** The places that taps and channels name in the input (side 0) or the kernel (side 1). */
function placesOf(
  taps: readonly Tap[],
  side: 0 | 1,
  channels: number,
  step: number,
): readonly number[] {
  const places: number[] = [];
  for (const tap of taps) for (let c = 0; c < channels; c++) places.push(tap[side] + c * step);
  return places;
}

/** The elements at the same places from each start on, in rows, so that their products can be summed. */
function rowsOf(source: Tensor, starts: readonly number[], places: readonly number[]): Tensor {
  const shape = [starts.length, places.length];
  const slots = slotsOf(source.element);
  const data = allocateTensorData(source.element, sizeOf(shape));
  let at = 0;
  for (const start of starts)
    for (const place of places)
      for (let slot = 0; slot < slots; slot++)
        data[at++] = source.data[slots * (start + place) + slot] as never;
  return tensor(source.element, shape, data);
}
