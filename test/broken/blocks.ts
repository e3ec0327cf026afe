/** Blocks work together through global memory: partial sums, taking turns, atomics, parts of an output. */
import {
  tensor,
  barrier,
  commitGlobal,
  copyAsync,
  f32,
  fromNumbers,
  gmem,
  i32,
  kernel,
  semaphore,
  slice,
  smem,
  targets,
  when,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { family } from "./family.ts";

const [blocks, length] = [4, 16];
const x = fromNumbers(f32, [blocks, length], new Float64Array(blocks * length).fill(1));

type SumMistake =
  | "no semaphore"
  | "waits for too few signals"
  | "signals before it stores"
  | "waits for its own signal"
  | "a counter that is not there";

const makeSum = (mistake?: SumMistake): KernelDefinition =>
  kernel(
    {
      name: "sum",
      grid: { i: blocks },
      inputs: { x: tensor(f32, [blocks, length]) },
      outputs: { out: tensor(f32, [length]) },
      scratch: {
        partial: gmem(f32, [blocks, length]),
        done: semaphore([1]), // <- a counter that is not there
      },
    },
    ({ i, x, out, partial, done }) => {
      const last = blocks - 1;
      const counter = done.at(mistake === "a counter that is not there" ? i : 0);
      when(
        i.lt(last),
        () => {
          if (mistake === "signals before it stores") counter.signal();
          partial.at(i).store(x.at(i).load().mul(2)); // <- partial sums
          if (mistake !== "signals before it stores") counter.signal(); // <- a counter that is not there
        },
        () => {
          const awaited = mistake === "waits for too few signals" ? last - 1 : last;
          if (mistake === "waits for its own signal") done.at(0).wait(blocks); // <- waits for its own signal
          else if (mistake !== "no semaphore") done.at(0).wait(awaited);
          out.store(partial.at(slice(0, last)).load().sum({ axis: 0 })); // <- partial sums
        },
      );
    },
  );

export const sum = family<SumMistake>({
  name: "partial sums of blocks",
  url: import.meta.url,
  make: makeSum,
  inputs: { x },
  mistakes: {
    "no semaphore": {
      code: "TW3001",
      at: "partial sums",
      says: /order the blocks with a semaphore/,
    },
    "waits for too few signals": { code: "TW3001", at: "partial sums" },
    "signals before it stores": { code: "TW3001", at: "partial sums" },
    "waits for its own signal": { code: "TW3011", says: /done\[0\] to reach 4: it is at 3/ },
    "a counter that is not there": { code: "TW3005", says: /indices within \[1\]/ },
  },
});

type GatherMistake = "not committed for TMA";

const makeGather = (mistake?: GatherMistake): KernelDefinition =>
  kernel(
    {
      name: "gather",
      grid: { i: 2 },
      inputs: { x: tensor(f32, [blocks, length]) },
      outputs: { out: tensor(f32, [length]) },
      scratch: {
        message: gmem(f32, [length]),
        sent: semaphore(),
        tile: smem(f32, [length]),
        landed: barrier(),
      },
    },
    ({ i, x, out, message, sent, tile, landed }) => {
      when(
        i.eq(0),
        () => {
          message.store(x.at(0).load()); // <- message
          if (mistake === undefined) commitGlobal();
          sent.signal();
        },
        () => {
          sent.wait(1);
          copyAsync(message, tile, { barrier: landed }); // <- message
          landed.wait();
          out.store(tile.load());
        },
      );
    },
  );

export const gather = family<GatherMistake>({
  name: "copies of what another block stored",
  url: import.meta.url,
  make: makeGather,
  inputs: { x },
  mistakes: {
    "not committed for TMA": {
      code: "TW3001",
      at: "message",
      says: /call commitGlobal\(\)/,
    },
  },
});

type TurnMistake = "no turns" | "turns in reverse" | "a turn is skipped";

const queue = 6;

const makeTurns = (mistake?: TurnMistake): KernelDefinition =>
  kernel(
    {
      name: "turns",
      grid: { i: queue },
      inouts: { total: tensor(f32, [length]) },
      scratch: { turn: semaphore() },
    },
    ({ i, total, turn }) => {
      const before = mistake === "turns in reverse" ? i.neg().add(queue - 1) : i;
      const mine = mistake === "a turn is skipped" ? before.add(1) : before;
      if (mistake !== "no turns") turn.wait(mine); // <- turns in reverse; a turn is skipped
      total.store(total.load().mul(2).add(i.cast(f32))); // <- no turns
      turn.signal();
    },
  );

export const turnTaking = family<TurnMistake>({
  name: "blocks that take turns",
  url: import.meta.url,
  make: makeTurns,
  inputs: { total: fromNumbers(f32, [length], new Float64Array(length)) },
  // Four blocks at a time.
  target: { ...targets.sm_90a, processors: 2, blocksPerProcessor: 2 },
  mistakes: {
    "no turns": { code: "TW3001", says: /order the blocks with a semaphore/ },
    "turns in reverse": { code: "TW3011", says: /2 blocks have not started/ },
    "a turn is skipped": { code: "TW3011", says: /turn to reach 1: it is at 0/ },
  },
});

type CountMistake = "reset beside atomics" | "plain update beside atomics" | "overlapping parts";

const makeCount = (mistake?: CountMistake): KernelDefinition =>
  kernel(
    {
      name: "count",
      grid: { i: blocks },
      inputs: { x: tensor(f32, [blocks, length]) },
      outputs: { out: tensor(f32, [blocks * length]) },
      inouts: { count: tensor(i32, [1]) },
    },
    ({ i, x, out, count }) => {
      const first = count.at(0);
      if (mistake === "reset beside atomics")
        when(i.eq(0), () => {
          first.store(0); // <- reset beside atomics
        });
      if (mistake === "plain update beside atomics")
        when(i.eq(1), () => {
          first.store(first.loadScalar().add(1)); // <- plain update beside atomics
        });
      first.atomicAdd(1); // <- reset beside atomics; plain update beside atomics
      const stride = mistake === "overlapping parts" ? length / 2 : length;
      out.at(slice(i.mul(stride), length)).store(x.at(i).load()); // <- overlapping parts
    },
  );

export const counting = family<CountMistake>({
  name: "atomic counters and parts of an output",
  url: import.meta.url,
  make: makeCount,
  inputs: { x, count: fromNumbers(i32, [1], [0]) },
  mistakes: {
    "reset beside atomics": { code: "TW3001", says: /updates it/ },
    "plain update beside atomics": { code: "TW3001", says: /updates it/ },
    "overlapping parts": { code: "TW3001", says: /let each write a part of its own/ },
  },
});
