/** Every op that is drawn, each computed from StableHLO's specification as its line is written. */
import {
  unary,
  binary,
  compare,
  convert,
  bitcast,
  select,
  clamp,
  reducePrecision,
} from "./elementwise.ts";
import {
  broadcast,
  transpose,
  reshape,
  reverse,
  concatenate,
  slice,
  pad,
  iota,
  constant,
  barrier,
} from "./moving.ts";
import { dynamicSlice, dynamicUpdateSlice, gather, scatter } from "./indexing.ts";
import { dotGeneral, convolution } from "./products.ts";
import { reduce, reducePair, reduceWindow, selectAndScatter, sort } from "./folding.ts";
import { branch, call, scan, whileLoop } from "./control.ts";
import { cumulative, longArray, longReduce, segments, topK } from "./long.ts";
import type { Draw } from "./shared.ts";

export const draws: readonly Draw[] = [
  unary,
  binary,
  compare,
  convert,
  bitcast,
  select,
  clamp,
  reducePrecision,
  broadcast,
  transpose,
  reshape,
  reverse,
  concatenate,
  slice,
  pad,
  iota,
  constant,
  barrier,
  dynamicSlice,
  dynamicUpdateSlice,
  gather,
  scatter,
  // Products, gathers, scatters and windows have the most ways to be written, and to be made.
  dotGeneral,
  dotGeneral,
  dotGeneral,
  gather,
  scatter,
  reduceWindow,
  convolution,
  reduce,
  reducePair,
  reduceWindow,
  selectAndScatter,
  sort,
  whileLoop,
  scan,
  branch,
  call,
  longArray,
  longReduce,
  cumulative,
  segments,
  topK,
];
