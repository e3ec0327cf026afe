import { describe, expect, test } from "vitest";
import { Random } from "../../support/random.ts";
import { bf16, f32, i32, i8, tf32 } from "../dtype.ts";
import { encodeFloat } from "../floats.ts";
import { chunkProblem, elementsPerWord, heldPlaces, sparseDotElements } from "./sparse-dot.ts";

const one = encodeFloat("bf16", 1);
const nan = encodeFloat("bf16", NaN);

describe("metadata of sparse products", () => {
  test("name two of every four elements, the first chunk in the low bits", () => {
    expect([...heldPlaces(bf16, Uint16Array.of(0xce4d))]).toEqual([1, 3, 4, 5, 10, 11, 12, 15]);
    expect(elementsPerWord(bf16)).toBe(16);
  });

  test("name indices in either order", () => {
    expect([...heldPlaces(i8, Uint16Array.of(0x4441))].slice(0, 2)).toEqual([1, 0]);
  });

  test("name one of every two tf32", () => {
    expect([...heldPlaces(tf32, Uint16Array.of(0x4ee4))]).toEqual([0, 3, 5, 6]);
    expect(elementsPerWord(tf32)).toBe(8);
  });

  test("that name an element twice, or half a tf32, mean nothing", () => {
    const valid = (dtype: typeof bf16 | typeof tf32) =>
      Array.from({ length: 16 }, (_, bits) => bits).filter(
        (bits) => chunkProblem(dtype, bits) === undefined,
      );
    expect(valid(bf16)).toEqual([1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 14]);
    expect(valid(tf32)).toEqual([0b0100, 0b1110]);
  });
});

describe("sparse products", () => {
  test("take no notice of what A does not hold, not even of NaN", () => {
    const b = new Uint16Array(16).fill(nan);
    for (const place of [1, 3, 4, 5, 10, 11, 12, 15]) b[place] = one;
    const sums = new Float32Array(1);
    const shape = { m: 1, n: 1, k: 16, operand: bf16, accumulator: f32 };
    sparseDotElements(shape, new Uint16Array(8).fill(one), Uint16Array.of(0xce4d), b, sums);
    expect(sums[0]).toBe(8);
  });

  test("are those of the whole A, exactly in integers", () => {
    const seed = 240;
    const random = new Random(seed);
    const [m, n, k] = [5, 7, 32];
    const draw = (): number => random.below(256) - 128;
    const a = Int8Array.from({ length: (m * k) / 2 }, draw);
    const b = Int8Array.from({ length: k * n }, draw);
    const codes = [0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110, 0b0001, 0b0111];
    const chunks = Array.from({ length: (m * k) / 4 }, () => random.pick(codes));
    const metadata = new Uint16Array((m * k) / 16);
    const whole = new Array<number>(m * k).fill(0);
    for (const [at, code] of chunks.entries()) {
      metadata[at >> 2] = (metadata[at >> 2] ?? 0) | (code << (4 * (at % 4)));
      whole[4 * at + (code % 4)] = a[2 * at] ?? NaN;
      whole[4 * at + (code >> 2)] = a[2 * at + 1] ?? NaN;
    }
    const sums = Int32Array.from({ length: m * n }, (_, at) => at);
    sparseDotElements({ m, n, k, operand: i8, accumulator: i32 }, a, metadata, b, sums);
    const expected = Array.from({ length: m * n }, (_, at) => {
      const [row, column] = [Math.floor(at / n), at % n];
      let sum = at;
      for (let each = 0; each < k; each += 1)
        sum += (whole[row * k + each] ?? NaN) * (b[each * n + column] ?? NaN);
      return sum;
    });
    expect([...sums], `seed ${seed}`).toEqual(expected);
  });
});
