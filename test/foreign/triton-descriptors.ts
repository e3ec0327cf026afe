/** Kernels that Triton emitted whose tensor maps are made on the device, with what they must compute. */
import { expect } from "vitest";
import { encodeFloat } from "../../src/formats/floats.ts";
import { Random } from "../../src/support/random.ts";
import { at, input, made, output, scalar, sum } from "./case.ts";
import type { Argument, ForeignCase } from "./case.ts";

const folder = "triton/descriptors";

/** Memory for maps: so many bytes a block, undefined at the start. */
function scratch(blocks: number, bytes: number): Argument {
  return output("scratch", new Uint8Array(blocks * bytes));
}

/** Quarters from −4 to 4: exact in all formats, and so are all sums of their products. */
function quarters(seed: number, count: number): number[] {
  const random = new Random(seed);
  return made(count, () => (random.below(33) - 16) / 4);
}

function halves(values: readonly number[]): Uint16Array {
  return Uint16Array.from(values, (value) => encodeFloat("f16", value));
}

function scale(): ForeignCase {
  const [rows, columns] = [100, 72];
  const x = quarters(41, rows * columns);
  return {
    file: `${folder}/scale.ptx`,
    entry: "descriptor_scale",
    blocks: [4, 3, 1],
    threads: [128, 1, 1],
    sharedBytes: 4104,
    arguments: [
      input("x", Float32Array.from(x)),
      output("out", new Float32Array(rows * columns)),
      scalar(rows),
      scalar(columns),
      scratch(12, 256),
    ],
    check(results) {
      expect([...results.numbers("out")]).toEqual(x.map((value) => 2 * value + 1));
    },
  };
}

interface Product {
  readonly name: string;
  readonly size: readonly [rows: number, columns: number, inner: number];
  readonly a: readonly number[];
  readonly b: readonly number[];
}

function product(name: string, seed: number, size: Product["size"]): Product {
  const [rows, columns, inner] = size;
  return { name, size, a: quarters(seed, rows * inner), b: quarters(seed + 1, columns * inner) };
}

function arraysOf({ name, size, a, b }: Product): readonly Argument[] {
  const [rows, columns] = size;
  return [
    input(`a${name}`, halves(a)),
    input(`b${name}`, halves(b)),
    output(`c${name}`, new Float32Array(rows * columns)),
  ];
}

/** a times the transpose of b. */
function expectedOf({ size, a, b }: Product): readonly number[] {
  const [rows, columns, inner] = size;
  return made(rows * columns, (index) => {
    const [row, column] = [Math.floor(index / columns), index % columns];
    return sum(made(inner, (k) => at(a, row * inner + k) * at(b, column * inner + k)));
  });
}

function matmul(): ForeignCase {
  const one = product("", 42, [100, 88, 72]);
  return {
    file: `${folder}/matmul.ptx`,
    entry: "descriptor_matmul",
    blocks: [2, 2, 1],
    threads: [128, 1, 1],
    sharedBytes: 40984,
    arguments: [...arraysOf(one), ...one.size.map(scalar), scratch(4, 384)],
    check(results) {
      expect([...results.numbers("c")]).toEqual(expectedOf(one).map((value) => value + 0));
    },
  };
}

/** Two blocks share the products of several sizes, and make new maps for each. */
function groups(): ForeignCase {
  const sizes = [
    [64, 64, 64],
    [100, 40, 72],
    [30, 88, 24],
    [128, 32, 40],
  ] as const;
  const products = sizes.map((size, index) => product(`${index}`, 44 + 2 * index, size));
  return {
    file: `${folder}/groups.ptx`,
    entry: "descriptor_groups",
    blocks: [2, 1, 1],
    threads: [128, 1, 1],
    sharedBytes: 26648,
    arguments: [
      { kind: "addresses", name: "pointers", arrays: products.flatMap(arraysOf) },
      input("sizes", Int32Array.from(sizes.flat())),
      scalar(products.length),
      scratch(2, 384),
    ],
    check(results) {
      for (const one of products)
        expect([...results.numbers(`c${one.name}`)], one.name).toEqual(
          expectedOf(one).map((value) => value + 0),
        );
    },
  };
}

function boxes(): ForeignCase {
  const count = 9 * 13 * 20;
  const random = new Random(60);
  const x = made(count, () => random.below(2000) - 1000);
  return {
    file: `${folder}/boxes.ptx`,
    entry: "descriptor_boxes",
    blocks: [3, 4, 1],
    threads: [128, 1, 1],
    sharedBytes: 2056,
    arguments: [
      input("x", Int32Array.from(x)),
      output("out", new Int32Array(count)),
      ...[9, 13, 20].map(scalar),
      scratch(12, 256),
    ],
    check(results) {
      expect([...results.numbers("out")]).toEqual(x.map((value) => value + 3));
    },
  };
}

export const descriptorCases: readonly ForeignCase[] = [scale(), matmul(), groups(), boxes()];
