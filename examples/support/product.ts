/** The elements of a matrix product in float64, each with the sum of its terms' magnitudes. */
export interface ExactElement {
  readonly value: number;
  readonly magnitude: number;
}

/** Element `index`, row by row, of left · right, where right has `width` columns. */
export function productElement(
  left: Float64Array,
  right: Float64Array,
  { width, depth }: { readonly width: number; readonly depth: number },
  index: number,
): ExactElement {
  const [row, column] = [Math.floor(index / width), index % width];
  let value = 0;
  let magnitude = 0;
  for (let inner = 0; inner < depth; inner += 1) {
    const product = (left[row * depth + inner] ?? NaN) * (right[inner * width + column] ?? NaN);
    value += product;
    magnitude += Math.abs(product);
  }
  return { value, magnitude };
}
