/** Elements that change places by what the kernel computes, or are counted: flip, roll, takeAlong, topK, histogram. */
import { bf16, f32, i32, u8 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import { fromNumbers } from "../../src/formats/hostarray.ts";
import {
  tensor,
  extract,
  flip,
  histogram,
  insert,
  iota,
  kernel,
  roll,
  slice,
  takeAlong,
  threadIndex,
  topK,
} from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

type Arrange = (tile: Tile<"f32">) => Tile<"f32">;

/** Positions along an axis of [12, 20], different for each element. */
const scattered = (axis: number): Tile<"i32"> =>
  iota(i32, [12, 20], { axis: 0 })
    .mul(7)
    .add(iota(i32, [12, 20], { axis: 1 }).mul(3))
    .rem(axis === 0 ? 12 : 20);

const arrangements: readonly (readonly [string, Arrange])[] = [
  ["flip of rows", (tile) => flip(tile, { axis: 0 })],
  ["flip of columns", (tile) => flip(tile, { axis: -1 })],
  ["roll of rows", (tile) => roll(tile, 5, { axis: 0 })],
  ["roll of columns, back", (tile) => roll(tile, -23, { axis: 1 })],
  ["takeAlong rows", (tile) => takeAlong(tile, scattered(0), { axis: 0 })],
  [
    "parts taken out and put elsewhere",
    (tile) => {
      const place = tile.abs().max().cast(i32).rem(5);
      const part = extract(tile, [slice(place, 7), slice(place.add(3), 10)]);
      return insert(tile, [slice(place.neg().add(5), 7), slice(place, 10)], part);
    },
  ],
  ["takeAlong columns", (tile) => takeAlong(tile, scattered(1), { axis: 1 })],
];

function arranged(name: string, arrange: Arrange, dtype: DType): MatrixCase {
  const inputs = { x: ordinaryNumbers(dtype, [12, 20], 3) };
  return exactCase(`${name} ${dtype.name}`, inputs, () =>
    kernel(
      {
        name: "arranged",
        inputs: { x: tensor(dtype, [12, 20]) },
        outputs: { out: tensor(dtype, [12, 20]) },
      },
      ({ x, out }) => {
        out.store(arrange(x.load() as never) as never);
      },
    ),
  );
}

/** Both program threads turn a tile of their own around at the same time. */
function byThreads(): MatrixCase {
  const inputs = { x: ordinaryNumbers(f32, [2, 64], 4) };
  return exactCase("flip of two threads", inputs, () =>
    kernel(
      {
        name: "both",
        threads: ["first", "second"],
        inputs: { x: tensor(f32, [2, 64]) },
        outputs: { out: tensor(f32, [2, 64]) },
      },
      ({ x, out }) => {
        const own = threadIndex();
        out.at(own).store(flip(x.at(own).load(), { axis: 0 }));
      },
    ),
  );
}

function greatest(least: boolean): MatrixCase {
  const inputs = { x: ordinaryNumbers(f32, [3, 50], 5) };
  return exactCase(`topK of the ${least ? "least" : "greatest"}`, inputs, () =>
    kernel(
      {
        name: "top",
        inputs: { x: tensor(f32, [3, 50]) },
        outputs: { values: tensor(f32, [3, 7]), places: tensor(i32, [3, 7]) },
      },
      ({ x, values, places }) => {
        const [found, at] = topK(x.load(), 7, { axis: 1, largest: !least });
        values.store(found);
        places.store(at);
      },
    ),
  );
}

function counted(): MatrixCase {
  const inputs = {
    x: fromNumbers(
      i32,
      [9, 30],
      Array.from({ length: 270 }, (_, index) => ((index * 37) % 21) - 2),
    ),
  };
  return exactCase("histogram", inputs, () =>
    kernel(
      {
        name: "counted",
        inputs: { x: tensor(i32, [9, 30]) },
        outputs: { out: tensor(i32, [17]) },
      },
      ({ x, out }) => {
        const values = x.load();
        out.store(histogram(values, 17, { where: values.ge(0).and(values.lt(17)) }));
      },
    ),
  );
}

/** Reductions over several axes at once. */
function reduced(): MatrixCase {
  const inputs = { x: ordinaryNumbers(i32, [6, 10, 8], 6) };
  return exactCase("reductions over two axes", inputs, () =>
    kernel(
      {
        name: "reduced",
        inputs: { x: tensor(i32, [6, 10, 8]) },
        outputs: {
          outer: tensor(i32, [10]),
          ends: tensor(i32, [6]),
          kept: tensor(i32, [1, 10, 1]),
        },
      },
      ({ x, outer, ends, kept }) => {
        const tile = x.load();
        outer.store(tile.sum({ axis: [0, 2] }));
        ends.store(tile.max({ axis: [-1, 1] }));
        kept.store(tile.min({ axis: [2, 0], keepDims: true }));
      },
    ),
  );
}

export function arrangingCases(): readonly MatrixCase[] {
  return [
    ...arrangements.map(([name, arrange]) => arranged(name, arrange, f32)),
    ...[bf16, u8].flatMap((dtype) =>
      arrangements.slice(1, 3).map(([name, arrange]) => arranged(name, arrange, dtype)),
    ),
    byThreads(),
    greatest(false),
    greatest(true),
    counted(),
    reduced(),
  ];
}
