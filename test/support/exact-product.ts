/** Products of matrices in float64, to compare with: exact where the numbers are small whole ones. */

/** Numbers of a matrix, and how far apart they lie down a column and along a row. */
export interface Matrix {
  readonly values: ArrayLike<number>;
  readonly down: number;
  readonly along: number;
}

/** The product of matrices, by rows. */
export function productOf(
  a: Matrix,
  b: Matrix,
  [rows, columns, depth]: readonly [m: number, n: number, k: number],
): Float64Array {
  const sums = new Float64Array(rows * columns);
  const [left, right] = [typed(a.values), typed(b.values)];
  for (let i = 0; i < rows; i += 1)
    for (let l = 0; l < depth; l += 1) {
      const factor = left[i * a.down + l * a.along] as number;
      const [row, from] = [i * columns, l * b.down];
      for (let j = 0; j < columns; j += 1)
        sums[row + j] = (sums[row + j] as number) + factor * (right[from + j * b.along] as number);
    }
  return sums;
}

function typed(values: ArrayLike<number>): Float64Array {
  return values instanceof Float64Array ? values : new Float64Array(values);
}
