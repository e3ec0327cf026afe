/**
 * What running something costs, in numbers that do not depend on a GPU: arithmetic, calls of
 * transcendental functions, and bytes moved.
 *
 *   axpy of n f32:    2n flops,  gmem read 8n, written 4n
 *   matmul m, n, k:   2mnk flops, all of them products; each block reads its rows of a and columns of b
 */

/** What matrix products multiply, by how fast hardware is at it. */
export const productFormats = ["f64", "f32", "tf32", "half", "byte"] as const;
export type ProductFormat = (typeof productFormats)[number];

export interface Traffic {
  readonly read: number;
  readonly written: number;
}

/** What a piece of work takes: operations and bytes. */
export interface Cost {
  /** Additions, multiplications, comparisons of floats, and those of matrix products in any format. */
  readonly flops: number;
  /** Those of the flops that are matrix products, by what is multiplied: "half" is bf16 and f16, "byte" FP8 and integers. */
  readonly products: { readonly [F in ProductFormat]: number };
  /** Values of functions that the hardware approximates in steps: exp, log, sin, sqrt … */
  readonly transcendentals: number;
  /** What blocks move, an array as often as they read it. Windows count whole, also where they reach out of bounds. */
  readonly bytes: { readonly gmem: Traffic; readonly smem: Traffic };
}

const noTraffic: Traffic = Object.freeze({ read: 0, written: 0 });

export const noCost: Cost = Object.freeze({
  flops: 0,
  products: Object.freeze({ f64: 0, f32: 0, tf32: 0, half: 0, byte: 0 }),
  transcendentals: 0,
  bytes: Object.freeze({ gmem: noTraffic, smem: noTraffic }),
});

/** Combines two costs number by number. */
function combine(left: Cost, right: Cost, combination: (a: number, b: number) => number): Cost {
  const traffic = (a: Traffic, b: Traffic): Traffic => ({
    read: combination(a.read, b.read),
    written: combination(a.written, b.written),
  });
  const product = (format: ProductFormat): number =>
    combination(left.products[format], right.products[format]);
  return {
    flops: combination(left.flops, right.flops),
    products: {
      f64: product("f64"),
      f32: product("f32"),
      tf32: product("tf32"),
      half: product("half"),
      byte: product("byte"),
    },
    transcendentals: combination(left.transcendentals, right.transcendentals),
    bytes: {
      gmem: traffic(left.bytes.gmem, right.bytes.gmem),
      smem: traffic(left.bytes.smem, right.bytes.smem),
    },
  };
}

/** What blocks read and write of global memory, from the cache or from memory. */
export function gmemBytes({ bytes: { gmem } }: Cost): number {
  return gmem.read + gmem.written;
}

export function addCosts(costs: readonly Cost[]): Cost {
  return costs.reduce((total, cost) => combine(total, cost, (a, b) => a + b), noCost);
}

export function scaleCost(cost: Cost, factor: number): Cost {
  return combine(cost, noCost, (a) => a * factor);
}

/** Each number of the costliest. */
export function largestCost(costs: readonly Cost[]): Cost {
  return costs.reduce((total, cost) => combine(total, cost, Math.max), noCost);
}

export function equalCosts(left: Cost, right: Cost): boolean {
  let equal = true;
  combine(left, right, (a, b) => {
    equal &&= a === b;
    return 0;
  });
  return equal;
}
