/** Convolutions and their gradients in float64, element by element, over axes [n, depth, height, width, channels]. */

export interface ReferenceSizes {
  readonly batch: number;
  readonly groups: number;
  /** Channels of a group, of x and of the result. */
  readonly channels: number;
  readonly outputs: number;
  readonly input: readonly number[];
  readonly taps: readonly number[];
  readonly strides: readonly number[];
  readonly dilation: readonly number[];
  readonly before: readonly number[];
  readonly after: readonly number[];
}

export function resultExtents(sizes: ReferenceSizes): readonly number[] {
  return sizes.input.map((extent, axis) => {
    const reach = (sizes.dilation[axis] ?? 1) * ((sizes.taps[axis] ?? 1) - 1) + 1;
    const room = extent + (sizes.before[axis] ?? 0) + (sizes.after[axis] ?? 0) - reach;
    return Math.floor(room / (sizes.strides[axis] ?? 1)) + 1;
  });
}

/** Where an element lies in an array whose channels are last or first. */
export function placeIn(
  isLast: boolean,
  extents: readonly number[],
  channels: number,
  [n, spatial, channel]: readonly [number, readonly number[], number],
): number {
  const at = isLast ? [n, ...spatial, channel] : [n, channel, ...spatial];
  const shape = isLast ? [0, ...extents, channels] : [0, channels, ...extents];
  return at.reduce((place, index, axis) => place * (shape[axis] ?? 1) + index, 0);
}

export function everyPlace(extents: readonly number[]): readonly (readonly number[])[] {
  return extents.reduce<readonly (readonly number[])[]>(
    (found, extent) =>
      found.flatMap((at) => Array.from({ length: extent }, (_, index) => [...at, index])),
    [[]],
  );
}

/** Calls `visit` with the elements of x, w and out that are multiplied and summed with each other. */
export function overProducts(
  sizes: ReferenceSizes,
  isLast: boolean,
  visit: (x: number, w: number, out: number) => void,
): void {
  const { batch, groups, channels, outputs, input, taps, strides, dilation, before } = sizes;
  const output = resultExtents(sizes);
  const step = (extents: readonly number[]): number =>
    isLast ? 1 : extents.reduce((product, extent) => product * extent, 1);
  const [stepX, stepW, stepOut] = [step(input), step(taps), step(output)];
  const places = everyPlace(output);
  const windows = everyPlace(taps);
  for (const at of places)
    for (const tap of windows) {
      const source = at.map(
        (place, axis) =>
          place * (strides[axis] ?? 1) +
          (tap[axis] ?? 0) * (dilation[axis] ?? 1) -
          (before[axis] ?? 0),
      );
      if (!source.every((index, axis) => index >= 0 && index < (input[axis] ?? 0))) continue;
      for (let n = 0; n < batch; n += 1) {
        const ofX = placeIn(isLast, input, groups * channels, [n, source, 0]);
        const ofOut = placeIn(isLast, output, groups * outputs, [n, at, 0]);
        for (let o = 0; o < groups * outputs; o += 1) {
          const ofW = placeIn(isLast, taps, channels, [o, tap, 0]);
          const first = Math.floor(o / outputs) * channels;
          for (let c = 0; c < channels; c += 1)
            visit(ofX + (first + c) * stepX, ofW + c * stepW, ofOut + o * stepOut);
        }
      }
    }
}
