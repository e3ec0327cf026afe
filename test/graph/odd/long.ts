/** Arrays of hundreds of elements, where devices take other ways: the ops that follow are drawn over them, too. */
import { at, flatOf, list, places, size, typeOf } from "./builder.ts";
import { isFloat } from "./scalars.ts";
import type { Scalar } from "./scalars.ts";
import { combiner, numbers, smallNumbers } from "./shared.ts";
import type { Draw } from "./shared.ts";

/** Elements whose sums of thousands of small numbers are exact. */
const roomy = ["f32", "f64", "i32", "ui32", "i64", "i8", "i16"];

/** An array that the next ops find. */
export const longArray: Draw = (b) => {
  const element = b.pick(numbers);
  const shape = b.pick([[130], [300], [2, 150], [140, 3], [16, 16], [1, 260, 2], [2100]]);
  b.values.push(b.chance(2) ? b.parameter(element, shape) : smallNumbers(b, element, shape));
};

/** Reductions that are made in several steps, or by blocks. */
export const longReduce: Draw = (b) => {
  const element = b.pick(roomy);
  const shape = b.pick([[300], [2100], [4, 128], [128, 6], [2, 40, 33], [2048, 2]]);
  const x = smallNumbers(b, element, shape);
  const init = smallNumbers(b, element, []);
  const dims = shape.length === 1 ? [0] : b.pick([[0], [1], [0, 1]]);
  const { text, f } = combiner(b, element, ["add", "maximum", "minimum"]);
  const kept = shape.filter((_, axis) => !dims.includes(axis));
  const data: Scalar[] = new Array<Scalar>(size(kept)).fill(init.data[0] as Scalar);
  for (const place of places(shape)) {
    const to = flatOf(
      kept,
      place.filter((_, axis) => !dims.includes(axis)),
    );
    data[to] = f(data[to] as Scalar, at(x, place));
  }
  b.op("reduce", [x, init], `dimensions = ${list(dims)}`, { element, shape: kept, data }, text);
};

/** Windows that grow: running sums, products and extremes, from either end, as JAX prints them. */
export const cumulative: Draw = (b) => {
  const element = b.pick(roomy);
  const shape = b.pick([[130], [2, 150], [140, 3], [7], [3, 5]]);
  const axis = b.below(shape.length);
  const extent = shape[axis] ?? 1;
  const isReverse = b.chance(2);
  const x = smallNumbers(b, element, shape);
  const init = smallNumbers(b, element, []);
  const kinds = isFloat(element)
    ? ["add", "maximum", "minimum"]
    : ["add", "multiply", "maximum", "minimum"];
  const { text, f } = combiner(b, element, kinds);
  const data = places(shape).map((place) => {
    let sum = init.data[0] as Scalar;
    for (let tap = 0; tap < extent; tap++) {
      const from = (place[axis] ?? 0) + tap - (isReverse ? 0 : extent - 1);
      const isThere = from >= 0 && from < extent;
      const taken = place.map((p, i) => (i === axis ? from : p));
      sum = f(sum, isThere ? at(x, taken) : (init.data[0] as Scalar));
    }
    return sum;
  });
  const pads = shape.map((_, each) =>
    each !== axis ? "[0, 0]" : isReverse ? `[0, ${extent - 1}]` : `[${extent - 1}, 0]`,
  );
  const sizes = shape.map((_, each) => (each === axis ? extent : 1));
  b.op(
    "reduce_window",
    [x, init],
    `window_dimensions = ${list(sizes)}, padding = dense<[${pads.join(", ")}]> : tensor<${shape.length}x2xi64>`,
    { element, shape, data },
    text,
  );
};

/** Many updates of few rows, as gradients of embeddings and sums of segments are. */
export const segments: Draw = (b) => {
  const element = b.pick(roomy);
  const [rows, width, count] = [b.between(1, 9), b.between(1, 4), b.pick([5, 60, 200])];
  const x = smallNumbers(b, element, [rows, width]);
  const updates = smallNumbers(b, element, [count, width]);
  const indices = b.parameter("i32", [count, 1], () => BigInt(b.between(-1, rows)));
  const { text, f } = combiner(b, element, ["add", "maximum", "minimum"]);
  const data = [...x.data];
  for (let i = 0; i < count; i++) {
    const row = Number(indices.data[i]);
    if (row < 0 || row >= rows) continue;
    for (let k = 0; k < width; k++)
      data[row * width + k] = f(
        data[row * width + k] as Scalar,
        updates.data[i * width + k] as Scalar,
      );
  }
  b.op(
    "scatter",
    [x, indices, updates],
    "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false",
    { ...x, data },
    text,
  );
};

/** The greatest elements with their places. */
export const topK: Draw = (b) => {
  const element = b.pick(["f32", "i32", "bf16", "ui8"]);
  const shape = b.pick([[5], [130], [3, 140], [2, 2, 9]]);
  const x = smallNumbers(b, element, shape);
  const extent = shape.at(-1) ?? 1;
  const k = b.between(1, Math.min(extent, 20));
  const kept = [...shape.slice(0, -1), k];
  const values: Scalar[] = [];
  const found: Scalar[] = [];
  for (let row = 0; row < x.data.length; row += extent) {
    const order = Array.from({ length: extent }, (_, i) => i).sort((i, j) => {
      const [p, q] = [x.data[row + i] as Scalar, x.data[row + j] as Scalar];
      return p > q ? -1 : q > p ? 1 : i - j;
    });
    for (const i of order.slice(0, k)) {
      values.push(x.data[row + i] as Scalar);
      found.push(BigInt(i));
    }
  }
  const name = b.fresh();
  const [out, where] = [typeOf(element, kept), typeOf("i32", kept)];
  b.lines.push(
    `${name}:2 = chlo.top_k(${x.name}, k = ${k}) : ${typeOf(element, shape)} -> (${out}, ${where})`,
  );
  b.values.push({ name: `${name}#0`, element, shape: kept, data: values });
  b.values.push({ name: `${name}#1`, element: "i32", shape: kept, data: found });
};
