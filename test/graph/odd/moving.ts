/** Ops that move elements, with attributes drawn at random. */
import { at, list, places, size } from "./builder.ts";
import type { Builder, Value } from "./builder.ts";
import { isFloat, settled } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { everyElement, numbers } from "./shared.ts";
import type { Draw } from "./shared.ts";

export function broadcastTo(
  b: Builder,
  x: Value,
  dims: readonly number[],
  shape: readonly number[],
): Value {
  const data = places(shape).map((place) =>
    at(
      x,
      x.shape.map((extent, i) => (extent === 1 ? 0 : (place[dims[i] as number] as number))),
    ),
  );
  return b.op("broadcast_in_dim", [x], `broadcast_dimensions = ${list(dims)}`, {
    element: x.element,
    shape,
    data,
  });
}

export const broadcast: Draw = (b) => {
  const x = b.any(everyElement);
  const rank = x.shape.length + b.below(x.shape.length > 4 ? 1 : 3);
  const dims = b.order(rank).slice(0, x.shape.length);
  const shape = Array.from({ length: rank }, (_, axis) => {
    const from = dims.indexOf(axis);
    const extent = from < 0 ? 1 : (x.shape[from] as number);
    return extent === 1 ? b.between(1, 4) : extent;
  });
  broadcastTo(b, x, dims, shape);
};

export function transposed(b: Builder, x: Value, permutation: readonly number[]): Value {
  const shape = permutation.map((axis) => x.shape[axis] as number);
  const data = places(shape).map((place) =>
    at(
      x,
      x.shape.map((_, axis) => place[permutation.indexOf(axis)] as number),
    ),
  );
  return b.op("transpose", [x], `permutation = ${list(permutation)}`, {
    element: x.element,
    shape,
    data,
  });
}

export const transpose: Draw = (b) => {
  const x = b.any(everyElement);
  transposed(b, x, b.order(x.shape.length));
};

export function reshapedTo(b: Builder, x: Value, shape: readonly number[]): Value {
  return b.op("reshape", [x], "", { element: x.element, shape, data: x.data });
}

export const reshape: Draw = (b) => {
  const x = b.any(everyElement);
  const total = size(x.shape);
  const factors: number[] = [];
  for (let rest = total; rest > 1;) {
    const divisor = b.pick(
      Array.from({ length: rest }, (_, i) => i + 1).filter((d) => rest % d === 0),
    );
    factors.push(divisor);
    rest /= divisor;
    if (factors.length > 3) {
      factors.push(rest);
      break;
    }
  }
  const shape = total === 0 ? [b.between(0, 3), 0] : factors;
  reshapedTo(b, x, shape);
};

export function reversed(b: Builder, x: Value, dims: readonly number[]): Value {
  const data = places(x.shape).map((place) =>
    at(
      x,
      place.map((p, axis) => (dims.includes(axis) ? (x.shape[axis] as number) - 1 - p : p)),
    ),
  );
  return b.op("reverse", [x], `dimensions = ${list(dims)}`, { ...x, data });
}

export const reverse: Draw = (b) => {
  const x = b.any(everyElement);
  reversed(b, x, b.some(x.shape.length));
};

export function concatenated(b: Builder, all: readonly Value[], axis: number): Value {
  const [x] = all;
  if (x === undefined) throw new Error("nothing to put together");
  const extent = all.reduce((sum, each) => sum + (each.shape[axis] as number), 0);
  const shape = x.shape.map((e, i) => (i === axis ? extent : e));
  const data = places(shape).map((place) => {
    let rest = place[axis] as number;
    for (const each of all) {
      const own = each.shape[axis] as number;
      if (rest < own)
        return at(
          each,
          place.map((p, i) => (i === axis ? rest : p)),
        );
      rest -= own;
    }
    throw new Error("beyond the operands");
  });
  return b.op("concatenate", all, `dimension = ${axis} : i64`, {
    element: x.element,
    shape,
    data,
  });
}

export const concatenate: Draw = (b) => {
  const x = b.any(everyElement, ({ shape }) => shape.length > 0);
  const axis = b.below(x.shape.length);
  const others = Array.from({ length: b.between(0, 2) }, () =>
    b.value(
      x.element,
      b.chance(2) ? x.shape : x.shape.map((e, i) => (i === axis ? b.between(0, 4) : e)),
    ),
  );
  concatenated(b, [x, ...others], axis);
};

export function sliced(
  b: Builder,
  x: Value,
  starts: readonly number[],
  limits: readonly number[],
  strides: readonly number[],
): Value {
  const shape = starts.map((start, i) =>
    Math.ceil(((limits[i] as number) - start) / (strides[i] as number)),
  );
  const data = places(shape).map((place) =>
    at(
      x,
      place.map((p, i) => (starts[i] as number) + p * (strides[i] as number)),
    ),
  );
  return b.op(
    "slice",
    [x],
    `start_indices = ${list(starts)}, limit_indices = ${list(limits)}, strides = ${list(strides)}`,
    { element: x.element, shape, data },
  );
}

export const slice: Draw = (b) => {
  const x = b.any(everyElement);
  const starts = x.shape.map((extent) => b.between(0, extent));
  const limits = x.shape.map((extent, i) => b.between(starts[i] as number, extent));
  sliced(
    b,
    x,
    starts,
    limits,
    x.shape.map(() => b.between(1, 3)),
  );
};

export const pad: Draw = (b) => {
  const x = b.any(everyElement);
  const v = b.value(x.element, []);
  const interior = x.shape.map(() => (b.chance(2) ? 0 : b.between(1, 2)));
  const spread = x.shape.map((e, i) => (e === 0 ? 0 : e + (e - 1) * (interior[i] as number)));
  const low = spread.map(() => b.between(-3, 3));
  const high = spread.map((e, i) => Math.max(b.between(-3, 3), -e - (low[i] as number)));
  const shape = spread.map((e, i) => e + (low[i] as number) + (high[i] as number));
  const data = places(shape).map((place) => {
    const from = place.map((p, i) => (p - (low[i] as number)) / ((interior[i] as number) + 1));
    return from.every((p, i) => Number.isInteger(p) && p >= 0 && p < (x.shape[i] as number))
      ? at(
          x,
          from.map((p) => p + 0),
        )
      : (v.data[0] as Scalar);
  });
  b.op(
    "pad",
    [x, v],
    `edge_padding_low = ${list(low)}, edge_padding_high = ${list(high)}, interior_padding = ${list(interior)}`,
    { element: x.element, shape, data },
  );
};

export const iota: Draw = (b) => {
  const shape = b.shape(b.between(1, 3));
  const element = b.pick([...numbers]);
  const axis = b.below(shape.length);
  b.op("iota", [], `iota_dimension = ${axis} : i64`, {
    element,
    shape,
    data: places(shape).map((place) =>
      isFloat(element)
        ? settled(element, place[axis] as number)
        : settled(element, BigInt(place[axis] as number)),
    ),
  });
};

export const constant: Draw = (b) => {
  const shape = b.shape();
  const element = b.pick(everyElement);
  const same = b.scalar(element);
  const splat = b.chance(2);
  b.constant(
    element,
    shape,
    Array.from({ length: size(shape) }, () => (splat ? same : b.scalar(element))),
  );
};

export const barrier: Draw = (b) => {
  const x = b.any(everyElement);
  b.op("optimization_barrier", [x], "", x);
};
