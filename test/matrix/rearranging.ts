/** Loads, stores and rearrangements of every format: shapes with tails, transposed, strided and reshaped. */

import { f32 } from "../../src/formats/dtype.ts";
import type { DType } from "../../src/formats/dtype.ts";
import {
  all,
  tensor,
  cdiv,
  concatenate,
  dim,
  kernel,
  slice,
  smem,
  when,
} from "../../src/lang/index.ts";
import type { Tile } from "../../src/lang/index.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import { exact } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { allFormats } from "./elementwise.ts";
import { anyNumbers } from "./inputs.ts";

type Body = Parameters<typeof kernel>[1];
type Spec = Parameters<typeof kernel>[0];

function moving(
  name: string,
  inputs: { readonly [name: string]: HostArray },
  spec: Spec,
  body: Body,
): MatrixCase {
  return {
    name,
    prepare: () => ({ definition: kernel(spec, body), inputs, tolerance: exact }),
  };
}

const shapes: readonly (readonly number[])[] = [
  [1],
  [37],
  [63],
  [300],
  [5, 33],
  [64, 64],
  [7, 130],
  [8, 133],
  [3, 5, 24],
];

/** Windows that overhang on every axis. */
function copies(dtype: DType, seed: number): readonly MatrixCase[] {
  return shapes.map((shape) => {
    const tile = shape.map((extent) => Math.min(128, 2 ** Math.ceil(Math.log2(extent))));
    const axes = ["i", "j", "k"].slice(0, shape.length);
    const grid = Object.fromEntries(
      axes.map((axis, index) => [axis, cdiv(shape[index] ?? 1, tile[index] ?? 1)]),
    );
    return moving(
      `copy ${dtype.name} [${shape.join(", ")}]`,
      { x: anyNumbers(dtype, shape, seed) },
      {
        name: "copy",
        grid,
        inputs: { x: tensor(dtype, shape) },
        outputs: { out: tensor(dtype, shape) },
      },
      ((things: never) => {
        const { x, out, ...indices } = things as { readonly [name: string]: never };
        const here = axes.map((axis, index) =>
          slice(
            (indices[axis] as unknown as { mul(by: number): never }).mul(tile[index] ?? 1),
            tile[index] ?? 1,
          ),
        );
        const ref = x as unknown as { at(...at: readonly unknown[]): { load(): Tile } };
        const into = out as unknown as {
          at(...at: readonly unknown[]): { store(value: Tile): void };
        };
        into.at(...here).store(ref.at(...here).load());
      }) as never,
    );
  });
}

function windows(dtype: DType, seed: number): readonly MatrixCase[] {
  const x = { x: anyNumbers(dtype, [20, 48], seed) };
  const inputs = { x: tensor(dtype, [20, 48]) };
  return [
    moving(
      `load transposed ${dtype.name}`,
      x,
      { name: "transposed", inputs, outputs: { out: tensor(dtype, [48, 20]) } },
      (({ x: source, out }: never) => {
        (out as { store(value: Tile): void }).store(
          (source as { transpose(): { load(): Tile } }).transpose().load(),
        );
      }) as never,
    ),
    moving(
      `load reshaped ${dtype.name}`,
      x,
      { name: "reshaped", inputs, outputs: { out: tensor(dtype, [16, 60]) } },
      (({ x: source, out }: never) => {
        (out as { store(value: Tile): void }).store(
          (source as { reshape(shape: number[]): { load(): Tile } }).reshape([16, 60]).load(),
        );
      }) as never,
    ),
    moving(
      `load nested windows ${dtype.name}`,
      x,
      { name: "nested", grid: { i: 3 }, inputs, outputs: { out: tensor(dtype, [3, 8, 16]) } },
      (({ i, x: source, out }: never) => {
        const index = i as { mul(by: number): { sub(by: number): never } };
        type Window = {
          at(...at: readonly unknown[]): Window;
          load(): Tile;
          store(value: Tile): void;
        };
        const inner = (source as Window).at(slice(2, 15), all);
        const window = inner.at(slice(index.mul(8).sub(3), 8), slice(40, 16));
        (out as Window).at(i).store(window.load());
      }) as never,
    ),
  ];
}

/** Rows known at launch alone, and windows of windows. */
function unknownRows(dtype: DType, seed: number): readonly MatrixCase[] {
  const x = { x: anyNumbers(dtype, [20, 48], seed) };
  const inputs = { x: tensor(dtype, [20, 48]) };
  const rows = dim("rows");
  return [
    moving(
      `load unaligned rows ${dtype.name}`,
      { x: anyNumbers(dtype, [20, 50], seed) },
      {
        name: "unaligned",
        inputs: { x: tensor(dtype, [20, 50]) },
        outputs: { out: tensor(dtype, [20, 48]) },
      },
      (({ x: source, out }: never) => {
        type Window = { at(...at: readonly unknown[]): { load(): Tile } };
        const window = (source as Window).at(all, slice(0, 48));
        (out as { store(value: Tile): void }).store(window.load());
      }) as never,
    ),
    moving(
      `load windows before windows ${dtype.name}`,
      x,
      { name: "before", grid: { i: 3 }, inputs, outputs: { out: tensor(dtype, [3, 12, 16]) } },
      (({ i, x: source, out }: never) => {
        const index = i as { mul(by: number): { sub(by: number): never } };
        type Window = {
          at(...at: readonly unknown[]): Window;
          load(): Tile;
          store(value: Tile): void;
        };
        const outer = (source as Window).at(slice(index.mul(8).sub(5), 20), all);
        const window = outer.at(slice(index.mul(4).sub(2), 12), slice(16, 16));
        (out as Window).at(i).store(window.load());
      }) as never,
    ),
    moving(
      `run-time rows ${dtype.name}`,
      x,
      {
        name: "rows",
        grid: { i: cdiv(rows, 16) },
        inputs: { x: tensor(dtype, [rows, 48]) },
        outputs: { out: tensor(dtype, [rows, 48]) },
      },
      (({ i, x: source, out }: never) => {
        type Window = {
          at(...at: readonly unknown[]): Window;
          load(): Tile;
          store(value: Tile): void;
        };
        const here = slice((i as { mul(by: number): never }).mul(16), 16);
        (out as Window).at(here).store((source as Window).at(here).load());
      }) as never,
    ),
  ];
}

/** Through shared memory and back, with the axes exchanged on the way. */
function throughShared(dtype: DType, seed: number): MatrixCase {
  return {
    name: `shared transposed ${dtype.name}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "through",
          inputs: { x: tensor(dtype, [32, 64]) },
          outputs: { out: tensor(dtype, [64, 32]), again: tensor(dtype, [2, 32, 16]) },
          scratch: { buffer: smem(dtype, [32, 64]), stages: smem(dtype, [2, 32, 32]) },
        },
        ({ x, out, again, buffer, stages }) => {
          buffer.store(x.load());
          out.store(buffer.transpose().load());
          for (let stage = 0; stage < 2; stage += 1)
            stages.at(stage).store(buffer.at(all, slice(32 * stage, 32)).load());
          again.store(stages.at(all, all, slice(8, 16)).load());
        },
      ),
      inputs: { x: anyNumbers(dtype, [32, 64], seed) },
      tolerance: exact,
    }),
  };
}

/** Tiles cut, joined, turned, repeated and reshaped in registers. */
function inRegisters(dtype: DType, seed: number): readonly MatrixCase[] {
  const change = (
    name: string,
    shape: readonly number[],
    result: readonly number[],
    compute: (tile: Tile) => Tile,
  ): MatrixCase => ({
    name: `${name} ${dtype.name}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "rearranged",
          inputs: { x: tensor(dtype, shape) },
          outputs: { out: tensor(dtype, result) },
        },
        ({ x, out }) => {
          out.store(compute(x.load()));
        },
      ),
      inputs: { x: anyNumbers(dtype, shape, seed) },
      tolerance: exact,
    }),
  });
  return [
    change("transpose", [32, 48], [48, 32], (tile) => tile.transpose()),
    change("transpose of three axes", [4, 8, 24], [24, 4, 8], (tile) => tile.transpose([2, 0, 1])),
    change("reshape", [32, 48], [6, 256], (tile) => tile.reshape([6, 256])),
    change("slice", [32, 48], [16, 20], (tile) => tile.slice([8, 12], [16, 20])),
    change("concatenate", [24, 40], [24, 120], (tile) =>
      concatenate([tile, tile, tile], { axis: 1 }),
    ),
    change("concatenate rows", [24, 40], [48, 40], (tile) =>
      concatenate([tile, tile], { axis: 0 }),
    ),
    change("broadcast", [40], [16, 40], (tile) => tile.broadcastTo([16, 40])),
    change("broadcast columns", [16, 1], [16, 40], (tile) => tile.broadcastTo([16, 40])),
  ];
}

/** A tile so large that it is turned in several goes. */
function largeTranspose(): MatrixCase {
  return {
    name: "transpose of a large tile",
    prepare: () => ({
      definition: kernel(
        {
          name: "large",
          inputs: { x: tensor(f32, [128, 128]) },
          outputs: { out: tensor(f32, [128, 128]) },
        },
        ({ x, out }) => {
          out.store(x.load().transpose());
        },
      ),
      inputs: { x: anyNumbers(f32, [128, 128], 1) },
      tolerance: exact,
    }),
  };
}

/** Values that a branch decides. */
function branches(): readonly MatrixCase[] {
  return allFormats.map((dtype, seed) => ({
    name: `if ${dtype.name}`,
    prepare: () => ({
      definition: kernel(
        {
          name: "branch",
          grid: { i: 4 },
          inputs: { x: tensor(dtype, [4, 40]), y: tensor(dtype, [4, 40]) },
          outputs: { out: tensor(dtype, [4, 40]) },
        },
        ({ i, x, y, out }) => {
          const chosen = when(
            i.rem(2).eq(0),
            () => x.at(i).load(),
            () => y.at(i).load(),
          );
          out.at(i).store(chosen);
        },
      ),
      inputs: { x: anyNumbers(dtype, [4, 40], seed), y: anyNumbers(dtype, [4, 40], seed + 1) },
      tolerance: exact,
    }),
  }));
}

/** Tiles that are brought to a layout of wgmma's and back. */
function conversions(): readonly MatrixCase[] {
  return allFormats.map((dtype, seed) =>
    moving(
      `convertLayout ${dtype.name}`,
      { x: anyNumbers(dtype, [64, 32], seed) },
      {
        name: "converted",
        inputs: { x: tensor(dtype, [64, 32]) },
        outputs: { out: tensor(dtype, [64, 32]) },
      },
      (things) => {
        const { x, out } = things as unknown as {
          readonly x: { load(): Tile };
          readonly out: { store(value: Tile): void };
        };
        out.store(x.load().convertLayout("wgmma").convertLayout("wgmmaTransposed"));
      },
    ),
  );
}

export function rearrangingCases(): readonly MatrixCase[] {
  return [
    ...allFormats.flatMap((dtype, seed) => [
      ...copies(dtype, seed),
      ...windows(dtype, seed),
      ...unknownRows(dtype, seed),
      throughShared(dtype, seed),
      ...inRegisters(dtype, seed),
    ]),
    largeTranspose(),
    ...branches(),
    ...conversions(),
  ];
}
