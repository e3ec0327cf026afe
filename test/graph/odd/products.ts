/** Products and convolutions of any axes, groups, strides, dilations and paddings. */
import { at, list, places, size } from "./builder.ts";
import type { Builder, Value } from "./builder.ts";
import { broadcastTo, concatenated, reshapedTo, reversed, sliced, transposed } from "./moving.ts";
import { binaryOf, isFloat } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { smallNumbers, summable, sumElements } from "./shared.ts";
import type { Draw } from "./shared.ts";

/**
 * Small numbers of a shape that come to it by moving, as operands of products do in programs: transposed, cut out of more, put
 * together, repeated, in another format before.
 */
function moved(b: Builder, element: string, shape: readonly number[], depth: number): Value {
  const rank = shape.length;
  if (depth === 0 || rank === 0 || size(shape) === 0) return smallNumbers(b, element, shape);
  const inner = (own: readonly number[], format = element): Value =>
    moved(b, format, own, depth - 1);
  const axis = b.below(rank);
  const ways: readonly (() => Value)[] = [
    () => {
      const permutation = b.order(rank);
      return transposed(
        b,
        inner(permutation.map((_, i) => shape[permutation.indexOf(i)] ?? 1)),
        permutation,
      );
    },
    () => reshapedTo(b, inner([...shape.slice(0, axis), 1, ...shape.slice(axis)]), shape),
    () => reshapedTo(b, inner([size(shape)]), shape),
    () => {
      const kept = shape.flatMap((_, each) => (each === axis ? [] : [each]));
      return broadcastTo(b, inner(kept.map((each) => shape[each] ?? 1)), kept, shape);
    },
    () => {
      const starts = shape.map(() => b.below(3));
      const strides = shape.map(() => b.pick([1, 1, 2]));
      const limits = shape.map(
        (extent, i) => (starts[i] ?? 0) + (extent - 1) * (strides[i] ?? 1) + 1,
      );
      return sliced(b, inner(limits.map((limit) => limit + b.below(2))), starts, limits, strides);
    },
    () => {
      const first = b.between(0, shape[axis] ?? 1);
      const part = (extent: number): Value =>
        inner(shape.map((each, i) => (i === axis ? extent : each)));
      return concatenated(b, [part(first), part((shape[axis] ?? 1) - first)], axis);
    },
    () => reversed(b, inner(shape), [axis]),
    () => {
      const from = b.pick(["bf16", "f32", "f16"]);
      const x = inner(shape, isFloat(element) ? from : element);
      return x.element === element ? x : b.op("convert", [x], "", { element, shape, data: x.data });
    },
  ];
  return b.pick(ways)();
}

/** What a product of an element may give besides its own: wider sums. */
const widerResults: { readonly [element: string]: readonly string[] } = {
  bf16: ["bf16", "f32", "f32"],
  f16: ["f16", "f32", "f32"],
  i8: ["i8", "i32", "i32"],
  f32: ["f32", "f32", "f64"],
};

function axes(b: Builder, count: number, most: number): readonly number[] {
  return Array.from({ length: count }, () => b.between(1, most));
}

/** Extents of axes: few and small, or as large as kernels of matrices begin at. */
function extents(b: Builder, isLarge: boolean, most: number): readonly number[] {
  if (!isLarge) return b.shape(b.below(3));
  return b.chance(8) ? [] : [...axes(b, b.below(2), 3), b.between(1, most)];
}

const precisions = ["DEFAULT", "HIGH", "HIGHEST"] as const;

export const dotGeneral: Draw = (b) => {
  const isLarge = b.chance(2);
  const element = b.pick(
    isLarge ? ["f32", "f32", "bf16", "f16", "f64", "i8", "i32"] : [...sumElements, "i1"],
  );
  const result = isLarge ? b.pick(widerResults[element] ?? [element]) : element;
  const batch = isLarge ? axes(b, b.below(3), 3) : b.shape(b.below(2));
  // Sums of so many small numbers are exact in bf16, too.
  const contracted = isLarge ? [...axes(b, b.below(3), 2), b.between(1, 14)] : b.shape(b.below(3));
  const left = extents(b, isLarge, 40);
  const right = extents(b, isLarge, 40);
  const arrange = (free: readonly number[]) => {
    const all = [...batch, ...contracted, ...free];
    const order = b.order(all.length);
    return {
      shape: order.map((i) => all[i] as number),
      batching: batch.map((_, i) => order.indexOf(i)),
      contracting: contracted.map((_, i) => order.indexOf(batch.length + i)),
      free: free
        .map((_, i) => order.indexOf(batch.length + contracted.length + i))
        .sort((p, q) => p - q),
    };
  };
  const [l, r] = [arrange(left), arrange(right)];
  const operand = (shape: readonly number[]): Value =>
    isLarge ? moved(b, element, shape, b.below(3)) : summable(b, element, shape);
  const [x, y] = [operand(l.shape), operand(r.shape)];
  const shape = [
    ...batch,
    ...l.free.map((axis) => l.shape[axis] as number),
    ...r.free.map((axis) => r.shape[axis] as number),
  ];
  const { add, multiply } = binaryOf(result);
  if (add === undefined || multiply === undefined) return;
  const zero: Scalar = isFloat(element) ? 0 : 0n;
  const terms = places(contracted);
  const data = places(shape).map((place) => {
    const lp = new Array<number>(l.shape.length).fill(0);
    const rp = new Array<number>(r.shape.length).fill(0);
    batch.forEach((_, i) => {
      lp[l.batching[i] as number] = place[i] as number;
      rp[r.batching[i] as number] = place[i] as number;
    });
    l.free.forEach((axis, i) => (lp[axis] = place[batch.length + i] as number));
    r.free.forEach((axis, i) => (rp[axis] = place[batch.length + l.free.length + i] as number));
    return terms.reduce<Scalar>((sum, k) => {
      k.forEach((p, i) => {
        lp[l.contracting[i] as number] = p;
        rp[r.contracting[i] as number] = p;
      });
      return add(sum, multiply(at(x, lp), at(y, rp), result), result);
    }, zero);
  });
  const precision =
    element === "f32" && b.chance(2)
      ? `, precision_config = [${[b.pick(precisions), b.pick(precisions)].map((each) => `#stablehlo<precision ${each}>`).join(", ")}]`
      : "";
  const product = b.op(
    "dot_general",
    [x, y],
    `dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [${l.batching.join(", ")}], rhs_batching_dimensions = [${r.batching.join(", ")}], lhs_contracting_dimensions = [${l.contracting.join(", ")}], rhs_contracting_dimensions = [${r.contracting.join(", ")}]>${precision}`,
    { element: result, shape, data },
  );
  if (isLarge && b.chance(2)) transposed(b, product, b.order(shape.length));
};

/** Spatial axes of a convolution: what lies along them, and how many windows fit. */
function drawWindows(b: Builder, spatial: number) {
  const axes = Array.from({ length: spatial }, (_, i) => i);
  const extents = axes.map(() => (b.chance(15) ? 0 : b.between(1, 5)));
  const windows = axes.map(() => b.between(1, 3));
  const strides = axes.map(() => b.between(1, 3));
  const lhsDilation = axes.map(() => b.between(1, 2));
  const rhsDilation = axes.map(() => b.between(1, 2));
  const reversal = axes.map(() => b.chance(2));
  const dilated = extents.map((e, i) => (e === 0 ? 0 : (e - 1) * (lhsDilation[i] as number) + 1));
  const spread = windows.map((w, i) => (w - 1) * (rhsDilation[i] as number) + 1);
  const padding = axes.map((i) => {
    const low = b.between(-2, 3);
    return [low, Math.max(b.between(-2, 3), -low - (dilated[i] as number))] as const;
  });
  const outputs = axes.map((i) => {
    const padded = (dilated[i] as number) + (padding[i]?.[0] ?? 0) + (padding[i]?.[1] ?? 0);
    const window = spread[i] as number;
    return padded < window ? 0 : Math.floor((padded - window) / (strides[i] as number)) + 1;
  });
  return { extents, windows, strides, lhsDilation, rhsDilation, reversal, padding, outputs };
}

export const convolution: Draw = (b) => {
  const element = b.pick(sumElements);
  const spatial = b.between(0, 2);
  const groups = b.pick([1, 1, 2, 3]);
  const batchGroups = groups === 1 ? b.pick([1, 1, 2]) : 1;
  const batch = batchGroups * b.between(1, 2);
  const inputFeatures = groups * b.between(1, 2);
  const outputFeatures = groups * batchGroups * b.between(1, 2);
  const along = drawWindows(b, spatial);
  const { extents, windows, strides, lhsDilation, rhsDilation, reversal, padding, outputs } = along;
  const arrange = (two: readonly [number, number], extents: readonly number[]) => {
    const all = [...two, ...extents];
    const order = b.order(all.length);
    return {
      shape: order.map((i) => all[i] as number),
      place: all.map((_, i) => order.indexOf(i)),
    };
  };
  const lhs = arrange([batch, inputFeatures], extents);
  const rhs = arrange([inputFeatures / groups, outputFeatures], windows);
  const out = arrange([batch / batchGroups, outputFeatures], outputs);
  const x = summable(b, element, lhs.shape);
  const w = summable(b, element, rhs.shape);
  const put = (how: { place: readonly number[] }, values: readonly number[]): number[] => {
    const place = new Array<number>(values.length);
    values.forEach((value, i) => (place[how.place[i] as number] = value));
    return place;
  };
  const { add, multiply } = binaryOf(element);
  if (add === undefined || multiply === undefined) return;
  const zero: Scalar = isFloat(element) ? 0 : 0n;
  const data = places(out.shape).map((place) => {
    const [n = 0, o = 0, ...to] = out.place.map((axis) => place[axis] as number);
    const group = Math.floor(o / (outputFeatures / groups));
    const batchGroup = Math.floor(o / (outputFeatures / batchGroups));
    let sum = zero;
    for (let f = 0; f < inputFeatures / groups; f++)
      for (const k of places(windows)) {
        const from = to.map(
          (p, i) =>
            (p * (strides[i] as number) +
              (reversal[i] ? (windows[i] as number) - 1 - (k[i] as number) : (k[i] as number)) *
                (rhsDilation[i] as number) -
              (padding[i]?.[0] ?? 0)) /
            (lhsDilation[i] as number),
        );
        if (!from.every((p, i) => Number.isInteger(p) && p >= 0 && p < (extents[i] as number)))
          continue;
        const left = at(
          x,
          put(lhs, [
            batchGroup * (batch / batchGroups) + n,
            group * (inputFeatures / groups) + f,
            ...from.map((p) => p + 0),
          ]),
        );
        sum = add(sum, multiply(left, at(w, put(rhs, [f, o, ...k])), element), element);
      }
    return sum;
  });
  const spatialOf = (how: { place: readonly number[] }): string => how.place.slice(2).join(", ");
  b.op(
    "convolution",
    [x, w],
    [
      `window_strides = ${list(strides)}`,
      `padding = dense<${spatial === 0 ? "" : `[${padding.map((each) => `[${each.join(", ")}]`).join(", ")}]`}> : tensor<${spatial}x2xi64>`,
      `lhs_dilation = ${list(lhsDilation)}`,
      `rhs_dilation = ${list(rhsDilation)}`,
      `window_reversal = array<i1${reversal.length === 0 ? "" : ": "}${reversal.join(", ")}>`,
      `dimension_numbers = #stablehlo.conv<raw input_batch_dimension = ${lhs.place[0]}, input_feature_dimension = ${lhs.place[1]}, input_spatial_dimensions = [${spatialOf(lhs)}], kernel_input_feature_dimension = ${rhs.place[0]}, kernel_output_feature_dimension = ${rhs.place[1]}, kernel_spatial_dimensions = [${spatialOf(rhs)}], output_batch_dimension = ${out.place[0]}, output_feature_dimension = ${out.place[1]}, output_spatial_dimensions = [${spatialOf(out)}]>`,
      `feature_group_count = ${groups} : i64, batch_group_count = ${batchGroups} : i64`,
    ].join(", "),
    { element, shape: out.shape, data },
  );
};
