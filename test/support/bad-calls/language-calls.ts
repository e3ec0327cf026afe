/** Calls of the language, in a body: functions, and methods of tiles and references. */
import * as library from "tilewright";
import type { Tile } from "tilewright";
import { bf16, f32, i32, u32 } from "tilewright";
import { given, member, method, traced } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { numberTakes, options, parameter } from "./junk.ts";
import { inKernel } from "./surroundings.ts";

const dtype = parameter(() => f32);
const shape = parameter(() => [8], "list", "numbers");
const tileShape = parameter(() => [8], "numbers");
const anyShape = parameter(() => [8], "list", "numbers");
const square = parameter(given(({ square: each }) => each));
const half = parameter(given(({ square: each }) => each.cast(bf16)));
const operand = parameter(
  given(({ tile: each }) => each),
  ...numberTakes,
);
const text = parameter(() => "name", "text", "empty");
const body = parameter(() => () => undefined, "function");
const axis = parameter(() => ({ axis: 0 }));

/** The positions of a tile's elements along its first axis. */
const positions = ({ shape: extents }: Tile): Tile => library.iota(i32, extents, { axis: 0 });

export const languageCalls: readonly BadCall[] = [
  traced("zeros", dtype, anyShape),
  traced(
    "full",
    dtype,
    anyShape,
    parameter(() => 1, ...numberTakes),
  ),
  traced(
    "iota",
    parameter(() => i32),
    tileShape,
    axis,
  ),
  traced(
    "constant",
    dtype,
    parameter(() => 1, ...numberTakes),
  ),
  traced("concatenate", parameter(given(({ tile: each }) => [each, each])), axis),
  traced("takeAlong", square, parameter(given(({ square: each }) => positions(each))), axis),
  traced(
    "castStochastic",
    square,
    parameter(() => bf16),
    parameter(given(({ square: each }) => each.bitcast(u32))),
  ),
  traced("flip", square, axis),
  traced(
    "extract",
    square,
    parameter(
      given(({ i }) => [i]),
      "list",
      "numbers",
    ),
  ),
  traced(
    "insert",
    square,
    parameter(
      given(({ i }) => [i]),
      "list",
      "numbers",
    ),
    parameter(() => 1, ...numberTakes),
  ),
  traced(
    "roll",
    square,
    parameter(() => 1, "negative", "zero"),
    axis,
  ),
  traced(
    "topK",
    square,
    parameter(() => 1),
    axis,
  ),
  traced(
    "elementRun",
    parameter(() => 1, "zero"),
    shape,
  ),
  traced(
    "randomKey",
    parameter(() => 1, "zero"),
  ),
  traced(
    "reduceWith",
    square,
    parameter(() => (left: unknown) => left),
    parameter(() => ({ axis: 0, identity: 0 })),
  ),
  traced(
    "scanWith",
    square,
    parameter(() => (left: unknown) => left),
    parameter(() => ({ axis: 0, identity: 0 })),
  ),
  traced(
    "inlinePtx",
    parameter(
      given(({ square: each }) => ({
        operands: [each],
        results: [each.dtype],
        code: () => "mov.b32 %out0, %in0;",
        meaning: (tile: unknown) => [tile],
      })),
    ),
  ),
  traced(
    "histogram",
    parameter(given(({ square: each }) => positions(each))),
    parameter(() => 64),
    options(),
  ),
  traced(
    "dot",
    square,
    square,
    parameter(() => ({ precision: "ieee" })),
  ),
  traced("scaledDot", half, half, options()),
  traced("when", parameter(given(({ i }) => i.lt(2))), body),
  traced("returnIf", parameter(given(({ i }) => i.lt(2)))),
  traced(
    "loop",
    parameter(() => 4, "zero", "negative"),
    body,
  ),
  traced(
    "gridSize",
    parameter(() => "i"),
  ),
  traced(
    "setRegisters",
    parameter(() => 64),
  ),
  traced(
    "waitGroup",
    parameter(() => 0, "undefined", "zero", "huge", "object", "bare"),
  ),
  traced("assert", parameter(given(({ i }) => i.lt(2))), text),
  traced(
    "debugPrint",
    parameter(() => "x", "text", "empty"),
  ),
  traced(
    "profile",
    parameter(() => "name", "text"),
    body,
  ),
  traced("warps", body),
  traced(
    "scoped",
    parameter(() => ({ a: library.smem(f32, [8]) }), "object", "bare"),
    body,
  ),
  ...["sum", "prod", "min", "max"].map((name) =>
    member(
      "square",
      name,
      options(() => ({ axis: 0 })),
    ),
  ),
  ...["cumsum", "cumprod", "cummin", "cummax", "sort"].map((name) => member("square", name, axis)),
  ...["argmin", "argmax"].map((name) =>
    member(
      "square",
      name,
      options(() => ({ axis: 0 })),
    ),
  ),
  member(
    "square",
    "sortWith",
    parameter(
      given(({ square: each }) => [each]),
      "list",
    ),
    axis,
  ),
  ...["remainder", "floorDivide", "nextAfter", "fmin", "fmax"].map((name) =>
    member("tile", name, operand),
  ),
  ...["add", "sub", "mul", "div"].map((name) => member("tile", name, operand)),
  member("tile", "fma", operand, operand),
  member("tile", "cast", dtype, options()),
  member("tile", "bitcast", dtype),
  member(
    "tile",
    "reshape",
    parameter(() => [2, 4]),
  ),
  member(
    "square",
    "transpose",
    parameter(() => [1, 0], "undefined"),
  ),
  member(
    "square",
    "slice",
    parameter(() => [0, 0]),
    parameter(() => [4, 4]),
  ),
  member(
    "tile",
    "layoutCast",
    parameter(() => "splat"),
  ),
  member("truths", "select", operand, operand),
  member("out", "store", operand),
  {
    name: "body out.store with options",
    parameters: [options(() => undefined)],
    call: (mask) => {
      inKernel(({ out, tile }) => {
        if (mask === undefined) out.store(tile);
        else method(out, "store")(tile, mask);
      });
    },
  },
  member("x", "load", options()),
  member(
    "x",
    "at",
    parameter(() => library.slice(0, 4), "zero", "undefined"),
  ),
  member(
    "x",
    "reshape",
    parameter(() => [2, 4]),
  ),
  member("shared", "store", operand),
];
