import { describe, expect, test } from "vitest";
import {
  coordinatesOf,
  lanesOf,
  layoutOf,
  numberOf,
  placesOf,
  randomShape,
  randomSpelling,
  shuffled,
  spellingOf,
  volume,
} from "../../../test/layout-oracle.ts";
import type { Places } from "../../../test/layout-oracle.ts";
import { Random } from "../../support/random.ts";
import {
  broadcastLayout,
  halvesApart,
  halvesTogether,
  reduceLayout,
  sliceLayout,
  transposeLayout,
} from "./operations.ts";
import { splat } from "./register-layout.ts";
import type { DistributedLayout, RegisterLayout } from "./register-layout.ts";
import { reshapeLayout } from "./reshape.ts";
import { parseLayout } from "./parse-layout.ts";

const accumulator = "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)";

function text(layout: RegisterLayout | undefined): string | undefined {
  return layout?.text;
}

function places(layout: RegisterLayout, shape: readonly number[]): Places {
  if (layout.kind === "splat") throw new Error("a splat has no places");
  return placesOf(spellingOf(layout), shape);
}

function lanes(layout: RegisterLayout, shape: readonly number[]) {
  return lanesOf(places(layout, shape), volume(shape));
}

/** A layout whose atom divides a shape of powers of two, or any layout on any shape. */
function randomCase(seed: number, rank: number) {
  const random = new Random(seed);
  const layout = layoutOf(randomSpelling(random, rank, 2));
  const shape = randomShape(random, rank);
  const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}]`;
  return { random, layout, shape, message };
}

/** Powers of two that the atom divides: there the order of registers is kept too. */
function isRegular(layout: DistributedLayout, shape: readonly number[]): boolean {
  const powers = shape.every((extent) => (extent & (extent - 1)) === 0);
  const spare = shape.length - layout.axes.length;
  const covered =
    layout.kind === "flat"
      ? volume(shape) % 2 ** (layout.axes[0]?.length ?? 0) === 0
      : layout.axes.every((bits, axis) => (shape[spare + axis] ?? 1) >= 2 ** bits.length);
  return powers && covered;
}

/** Compares the lanes of every element at once; a failure names the first element that differs. */
function expectLanes(
  found: readonly (readonly number[])[],
  expected: (element: number) => readonly number[] | undefined,
  message: string,
): void {
  const wrong = found.findIndex((threads, element) => threads.join() !== expected(element)?.join());
  expect(wrong, message).toBe(-1);
}

/** Runs until `count` cases gave a layout, and insists that enough did. */
function collect(count: number, attempt: (seed: number) => boolean): void {
  let found = 0;
  for (let seed = 0; seed < count * 20 && found < count; seed += 1) if (attempt(seed)) found += 1;
  expect(found).toBe(count);
}

describe("worked examples", () => {
  const layout = parseLayout(accumulator);
  test("of the accumulator", () => {
    expect(text(reduceLayout(layout, [64, 128], [1]))).toBe("(L2 L3 L4 R0 W0 W1)");
    expect(text(reduceLayout(layout, [64, 128], [0]))).toBe("(R0 L0 L1)");
    expect(text(reduceLayout(layout, [64, 128], [0, 1]))).toBe("()");
    expect(text(transposeLayout(layout, [64, 128], [1, 0]))).toBe("(R0 L0 L1 | L2 L3 L4 R1 W0 W1)");
    expect(text(sliceLayout(layout, [64, 128], [0, 32], [64, 32]))).toBe(accumulator);
    expect(text(sliceLayout(layout, [64, 128], [16, 0], [16, 128]))).toBeUndefined();
    expect(text(sliceLayout(layout, [128, 128], [64, 8], [64, 24]))).toBe(accumulator);
    const rows = parseLayout("(L2 L3 L4 R0 W0 W1)");
    const toColumns = { from: [64], to: [64, 128], axes: [0] };
    expect(text(broadcastLayout(rows, toColumns))).toBe("(L2 L3 L4 R0 W0 W1 |)");
    expect(text(broadcastLayout(rows, { from: [64], to: [3, 64], axes: [1] }))).toBe(rows.text);
  });

  test.each([
    [accumulator, [64, 8], [8, 8, 8], "(R1 W0 W1 | L2 L3 L4 | R0 L0 L1)"],
    [accumulator, [64, 8], [512], "(R0 L0 L1 L2 L3 L4 R1 W0 W1)"],
    ["(L0 L1 L2 L3 L4)", [4, 96], [12, 32], "(L0 L1 L2 L3 L4)"],
    ["(L0 L1 L2 L3 L4)", [12, 32], [32, 12], "flat(L0 L1 L2 L3 L4)"],
    ["(L0 | R0 L1)", [2, 6], [12], undefined],
    ["flat(L0 L1)", [3, 5], [15], "flat(L0 L1)"],
    ["splat", [3, 5], [15], "splat"],
    [accumulator, [64, 8], [64, 1, 8], "(L2 L3 L4 R1 W0 W1 | | R0 L0 L1)"],
    ["(L0 L1)", [1, 1], [], "flat(L0 L1)"],
  ])("%s reshaped from %s to %s", (source, from, to, result) => {
    expect(text(reshapeLayout(parseLayout(source), from, to))).toBe(result);
  });

  test("shapes of different size are a mistake of ours", () => {
    expect(() => reshapeLayout(parseLayout("(L0)"), [4], [5])).toThrow("cannot be reshaped");
  });

  test("a splat stays one", () => {
    expect(reduceLayout(splat, [4, 4], [0])).toBe(splat);
    expect(transposeLayout(splat, [4, 4], [1, 0])).toBe(splat);
    expect(sliceLayout(splat, [4, 4], [1, 1], [2, 2])).toBe(splat);
    expect(broadcastLayout(splat, { from: [4], to: [4, 4], axes: [0] })).toBe(splat);
  });
});

describe("against brute force", () => {
  test("reduction leaves the result where its parts were", () => {
    collect(120, (seed) => {
      const { random, layout, shape, message } = randomCase(seed, 1 + (seed % 3));
      const axes = shape.map((_, axis) => axis).filter(() => random.below(2) === 0);
      const result = reduceLayout(layout, shape, axes);
      if (result === undefined) return false;
      const kept = shape.filter((_, axis) => !axes.includes(axis));
      const found = lanes(result, kept);
      const expected = Array.from(found, () => new Set<number>());
      lanes(layout, shape).forEach((threads, element) => {
        const coordinates = coordinatesOf(element, shape);
        const target = numberOf(
          coordinates.filter((_, axis) => !axes.includes(axis)),
          kept,
        );
        for (const thread of threads) expected[target ?? 0]?.add(thread);
      });
      const full = isRegular(layout, shape);
      const described = `${message} over ${axes.join()}`;
      expectLanes(
        found,
        (element) => {
          const before = expected[element] ?? new Set();
          // Lanes that held nothing but padding get the result as well.
          const all = full ? [...before] : [...before, ...(found[element] ?? [])];
          return [...new Set(all)].sort((left, right) => left - right);
        },
        described,
      );
      return true;
    });
  });

  test("broadcast repeats in the lanes of the source", () => {
    collect(120, (seed) => {
      const { random, layout, shape, message } = randomCase(seed, 1 + (seed % 2));
      const axes = shuffled(random, [0, 1, 2]).slice(0, shape.length);
      axes.sort((left, right) => left - right);
      const to = [2, 3, 2].map((extent, axis) => {
        const source = axes.indexOf(axis);
        const own = shape[source] ?? 1;
        return source < 0 || own === 1 ? extent : own;
      });
      const result = broadcastLayout(layout, { from: shape, to, axes });
      if (result === undefined) return false;
      const source = lanes(layout, shape);
      const origin = (element: number) => {
        const coordinates = coordinatesOf(element, to);
        return numberOf(
          axes.map((axis, index) => (shape[index] === 1 ? 0 : (coordinates[axis] ?? 0))),
          shape,
        );
      };
      const expected = (element: number) => source[origin(element) ?? -1];
      expectLanes(lanes(result, to), expected, `${message} to ${to.join()}`);
      return true;
    });
  });

  /** Compares a result element by element, registers too where the source is regular. */
  function expectMoved(
    source: { layout: DistributedLayout; shape: readonly number[] },
    target: { layout: RegisterLayout; shape: readonly number[] },
    origin: (element: number) => number | undefined,
    message: string,
  ): void {
    const moved = lanes(target.layout, target.shape);
    const before = lanes(source.layout, source.shape);
    const described = `${message} becomes ${target.layout.text}`;
    expectLanes(moved, (element) => before[origin(element) ?? -1], described);
    if (!isRegular(source.layout, source.shape)) return;
    const original = places(source.layout, source.shape);
    const held = places(target.layout, target.shape).map((registers) =>
      registers.map((element) => (element === undefined ? -1 : (origin(element) ?? -1))),
    );
    const expected = (thread: number) => original[thread]?.map((element) => element ?? -1);
    expectLanes(held, expected, described);
  }

  test("transposition keeps places", () => {
    collect(150, (seed) => {
      const { random, layout, shape, message } = randomCase(seed, 2 + (seed % 2));
      const permutation = shuffled(
        random,
        shape.map((_, axis) => axis),
      );
      const result = transposeLayout(layout, shape, permutation);
      if (result === undefined) return false;
      const turned = permutation.map((axis) => shape[axis] ?? 1);
      const origin = (element: number) => {
        const coordinates = coordinatesOf(element, turned);
        return numberOf(
          shape.map((_, axis) => coordinates[permutation.indexOf(axis)] ?? 0),
          shape,
        );
      };
      const target = { layout: result, shape: turned };
      expectMoved({ layout, shape }, target, origin, `${message} by ${permutation.join()}`);
      return true;
    });
  });

  test("axes of any layout but flat ones can be transposed", () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const { layout, shape, message } = randomCase(seed, 2);
      if (layout.kind === "flat") continue;
      expect(text(transposeLayout(layout, shape, [1, 0])), message).toBeDefined();
    }
  });

  test("reshaping keeps places", () => {
    const factorisations = [[24], [4, 6], [6, 4], [2, 3, 4], [8, 3], [1, 24], [2, 12]];
    const powers = [[32], [4, 8], [8, 4], [2, 4, 4], [2, 1, 16], [16, 2]];
    collect(150, (seed) => {
      const random = new Random(seed);
      const shapes = random.below(2) === 0 ? powers : factorisations;
      const shape = random.pick(shapes);
      const to = random.pick(shapes);
      const layout = layoutOf(randomSpelling(random, shape.length, 2));
      const message = `seed ${seed}: ${layout.text} from ${shape.join()} to ${to.join()}`;
      const result = reshapeLayout(layout, shape, to);
      if (result === undefined) return false;
      expectMoved({ layout, shape }, { layout: result, shape: to }, (element) => element, message);
      return true;
    });
  });

  test("a regular layout of a power of two can be reshaped into any other", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const random = new Random(seed);
      const layout = layoutOf(randomSpelling(random, 2, 2));
      if (!isRegular(layout, [16, 16])) continue;
      for (const to of [[256], [2, 128], [4, 4, 16], [32, 8]])
        expect(text(reshapeLayout(layout, [16, 16], to)), layout.text).toBeDefined();
    }
  });

  test("slices stay in their lanes", () => {
    collect(200, (seed) => {
      const { random, layout, shape, message } = randomCase(seed, 1 + (seed % 2));
      const starts = shape.map((extent) => random.below(extent));
      const sizes = shape.map((extent, axis) => 1 + random.below(extent - (starts[axis] ?? 0)));
      const result = sliceLayout(layout, shape, starts, sizes);
      if (result === undefined) return false;
      const source = lanes(layout, shape);
      const origin = (element: number) =>
        numberOf(
          coordinatesOf(element, sizes).map((value, axis) => value + (starts[axis] ?? 0)),
          shape,
        );
      const described = `${message} from ${starts.join()} of ${sizes.join()} is ${result.text}`;
      expectLanes(lanes(result, sizes), (element) => source[origin(element) ?? -1], described);
      return true;
    });
  });

  test("windows aligned to the atom are never refused", () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const random = new Random(seed);
      const layout = layoutOf({
        kind: "axes",
        axes: [
          ["L0", "R0"],
          ["W0", "R1", "L1"],
        ],
      });
      const starts = [4 * random.below(3), 8 * random.below(2)];
      const sizes = starts.map((start, axis) => 1 + random.below(([12, 16][axis] ?? 1) - start));
      const result = sliceLayout(layout, [12, 16], starts, sizes);
      expect(result, `seed ${seed}: ${starts.join()} of ${sizes.join()}`).toBeDefined();
    }
  });
});

describe("words of eight elements by halves", () => {
  test("bring elements together that are four registers apart", () => {
    const layout = parseLayout("(L2 L3 L4 | R0 R1 R2 R3 L0 L1)");
    expect(text(halvesTogether(layout, [8, 64]))).toBe("(L2 L3 L4 | R1 R2 R0 R3 L0 L1)");
    expect(text(halvesTogether(splat, [8, 64]))).toBe("splat");
    // Lanes with fewer registers have no such words.
    const narrow = parseLayout("(L0 L1 L2 | R0 R1 L3 L4)");
    expect(text(halvesTogether(narrow, [8, 16]))).toBe(narrow.text);
  });

  test("leave every element in its lane, and come apart again", () => {
    for (let seed = 0; seed < 200; seed += 1) {
      const { layout, shape, message } = randomCase(seed, 2);
      const together = halvesTogether(layout, shape);
      if (together === undefined) continue;
      expect(lanes(together, shape), message).toEqual(lanes(layout, shape));
      const apart = halvesApart(together, shape);
      if (apart !== undefined) expect(lanes(apart, shape), message).toEqual(lanes(layout, shape));
    }
  });
});
