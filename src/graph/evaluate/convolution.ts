/**
 * Convolution: correlation of a padded, dilated input with a kernel, in groups.
 *
 *   out[b, f, x] = Σ over taps t and input features c of   in[b, c, x·stride + t·dilation - low] · kernel[c, f, t]
 *
 * For each output position the taps that meet the input are listed once, as pairs of places; holes of
 * dilation and padding are zero and left out.
 */
import type { ConvolutionNumbers, TensorType } from "../ops/index.ts";
import { emptyTensor, tensor } from "./datum.ts";
import type { Tensor } from "./datum.ts";
import { rowProducts } from "./products.ts";
import { writer } from "./scalars.ts";
import { allocateElementLanes, sizeOf, slotsOf } from "../ops/index.ts";
import { forEachIndex, placeOf, stridesOf } from "./strides.ts";

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

export function convolve(
  input: Tensor,
  kernel: Tensor,
  type: TensorType,
  settings: ConvolutionSettings,
): Tensor {
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
  const write = writer(type.element, result.lanes);
  const spatial = numbers.output_spatial_dimensions.map((axis) => type.shape[axis] as number);
  const products = sizeOf(kernel.shape) / Math.max(1, features);
  const groups = featureGroups * batchGroups;
  forEachIndex(spatial, (position) => {
    const taps = tapsAt(input, kernel, position, settings);
    const rows = new TapRows(input, kernel, taps, channels, inputFeature, kernelInput);
    for (let b = 0; b < batches; b++)
      for (let f = 0; f < features; f++) {
        const group = Math.floor((f * groups) / features);
        const batch = batchGroups > 1 ? group * batches + b : b;
        const channel = featureGroups > 1 ? group * channels : 0;
        const from = batch * inputBatch + channel * inputFeature;
        const place = placeOf(
          position,
          numbers.output_spatial_dimensions.map((axis) => resultStrides[axis] as number),
        );
        const target =
          place +
          b * (resultStrides[numbers.output_batch_dimension] as number) +
          f * (resultStrides[numbers.output_feature_dimension] as number);
        write(target, rows.sum(from, f * kernelOutput, type, products));
      }
  });
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

/** The elements that taps and channels name, laid in rows so that their products can be summed. */
class TapRows {
  readonly #input: Tensor;
  readonly #kernel: Tensor;
  readonly #inputPlaces: readonly number[];
  readonly #kernelPlaces: readonly number[];
  readonly #left = new Map<number, Tensor>();
  readonly #right = new Map<number, Tensor>();

  constructor(
    input: Tensor,
    kernel: Tensor,
    taps: readonly Tap[],
    channels: number,
    inputFeature: number,
    kernelInput: number,
  ) {
    this.#input = input;
    this.#kernel = kernel;
    const each = Array.from({ length: channels }, (_, channel) => channel);
    this.#inputPlaces = taps.flatMap(([place]) => each.map((c) => place + c * inputFeature));
    this.#kernelPlaces = taps.flatMap(([, place]) => each.map((c) => place + c * kernelInput));
  }

  sum(inputStart: number, kernelStart: number, { element }: TensorType, products: number) {
    const left = row(this.#left, this.#input, this.#inputPlaces, inputStart);
    const right = row(this.#right, this.#kernel, this.#kernelPlaces, kernelStart);
    return rowProducts(left, right, element, products)(0, 0, this.#inputPlaces.length);
  }
}

/** The row that begins at `start`, kept for the next time. */
function row(
  rows: Map<number, Tensor>,
  source: Tensor,
  places: readonly number[],
  start: number,
): Tensor {
  const known = rows.get(start);
  if (known !== undefined) return known;
  const slots = slotsOf(source.element);
  const lanes = allocateElementLanes(source.element, places.length);
  for (const [i, place] of places.entries())
    for (let slot = 0; slot < slots; slot++)
      lanes[slots * i + slot] = source.lanes[slots * (start + place) + slot] as never;
  const made = tensor(source.element, [places.length], lanes);
  rows.set(start, made);
  return made;
}
