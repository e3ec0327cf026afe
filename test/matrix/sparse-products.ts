/** Sparse products: A of every format in every place and order, with indices of all kinds, against the whole A in float64. */
import { chunkOf, elementsPerWord } from "../../src/formats/arithmetic/index.ts";
import { f32, u16 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { wgmmaAccumulators } from "../../src/ir/infer/matrix.ts";
import { accumulator, tensor, commitShared, kernel, smem, wgmma } from "../../src/lang/index.ts";
import { Random } from "../../src/support/random.ts";
import type { MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";
import { forms, isLegal, pairs, productTolerance } from "./products.ts";
import type { Form, Product } from "./products.ts";

/** Places of what a chunk holds, in the order in which A holds them. */
function drawPlaces({ length, held }: ReturnType<typeof chunkOf>, random: Random): number[] {
  const first = random.below(length);
  return held === 1 ? [first] : [first, (first + 1 + random.below(length - 1)) % length];
}

function codeOf(places: readonly number[]): number {
  const [first = 0, second] = places;
  return second === undefined ? (first === 0 ? 0b0100 : 0b1110) : first | (second << 2);
}

/** A sparse matrix of [m, k]: what it holds, its metadata, and all of it. */
export function drawSparse(dtype: DType, [m, k]: readonly [number, number], seed: number) {
  const random = new Random(seed);
  const values = ordinaryNumbers(dtype, [m, k / 2], seed);
  const chunk = chunkOf(dtype);
  const numbers = toNumbers(values);
  const whole = new Array<number>(m * k).fill(0);
  const words = new Array<number>((m * k) / elementsPerWord(dtype)).fill(0);
  for (let at = 0; at < (m * k) / chunk.length; at += 1) {
    const places = drawPlaces(chunk, random);
    words[at >> 2] = (words[at >> 2] ?? 0) | (codeOf(places) << (4 * (at & 3)));
    for (const [index, place] of places.entries())
      whole[at * chunk.length + place] = numbers[at * chunk.held + index] ?? NaN;
  }
  return {
    values,
    metadata: fromNumbers(u16, [m, k / elementsPerWord(dtype)], words),
    whole: fromNumbers(dtype, [m, k], whole),
  };
}

interface Shape {
  readonly m: number;
  readonly n: number;
  readonly k: number;
}

function sparseCase(
  product: Product,
  form: Form,
  { m, n, k }: Shape,
  warps: number,
  seed: number,
): MatrixCase {
  const { a, b, sum } = product;
  const shapeA = form.turnedA ? [k / 2, m] : [m, k / 2];
  const shapeB = form.turnedB ? [n, k] : [k, n];
  return {
    name: `sparse ${a.name} ${b.name} ${sum.name} ${form.name} ${m}x${n}x${k}, ${warps} warps`,
    prepare: () => {
      const { values, metadata, whole } = drawSparse(a, [m, k], seed);
      const y: HostArray = ordinaryNumbers(b, [k, n], seed + 1);
      return {
        definition: kernel(
          {
            name: "sparse",
            warps,
            inputs: {
              x: tensor(a, [m, k / 2]),
              e: tensor(u16, [m, k / elementsPerWord(a)]),
              y: tensor(b, [k, n]),
            },
            outputs: { out: tensor(sum, [m, n]) },
            scratch: { left: smem(a, shapeA), right: smem(b, shapeB) },
          },
          ({ x: one, e, y: other, out, left, right }) => {
            const tile = one.load();
            if (!form.registers) left.store(form.turnedA ? tile.transpose() : tile);
            const second = other.load();
            right.store(form.turnedB ? second.transpose() : second);
            commitShared();
            const factor = form.registers ? tile : form.turnedA ? left.transpose() : left;
            const turned = form.turnedB ? right.transpose() : right;
            const started = wgmma(
              accumulator(sum as never, [m, n]),
              factor as never,
              turned as never,
              { sparse: e.load() },
            );
            out.store(started.wait());
          },
        ),
        inputs: { x: values, e: metadata, y },
        tolerance: productTolerance(product, whole, y, [m, n, k]),
      };
    },
  };
}

export function sparseProductCases(): readonly MatrixCase[] {
  const products = pairs.filter(({ a, b, sum }) => wgmmaAccumulators(a, b).includes(sum.name));
  const single = products.flatMap((product, seed) =>
    forms
      .filter((form) => isLegal(product, form))
      .flatMap((form, at) => {
        const k = elementsPerWord(product.a) * 4;
        const shapes = [
          { m: 64, n: 16, k: 2 * k },
          { m: 128, n: 32, k: 3 * k },
          ...(at === 0 ? [{ m: 64, n: 256, k }] : []),
        ];
        return shapes.map((shape) => sparseCase(product, form, shape, 4, seed));
      }),
  );
  const grouped = products
    .filter(({ a, sum }) => sum === f32 || a.bits === 8)
    .flatMap((product, seed) => {
      const form = forms.find((each) => isLegal(product, each) && each.turnedB);
      if (form === undefined) return [];
      return [sparseCase(product, form, { m: 256, n: 24, k: 192 }, 8, seed)];
    });
  return [...single, ...grouped];
}
