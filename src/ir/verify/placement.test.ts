import { describe, expect, test } from "vitest";
import { testMistakes } from "../../../test/ir-fixtures.ts";
import type { Mistake } from "../../../test/ir-fixtures.ts";
import {
  accumulating,
  accumulator,
  elsewhere,
  multiply,
  there,
  verifyBuilt,
  wait,
} from "../../../test/ir-kernels.ts";
import type { Writer } from "../../../test/ir-kernels.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { verifierCodes } from "../../support/diagnostic-codes/ir/verifier.ts";
import { scalarType } from "../types.ts";

/** Writes ops inside the body of a region op. */
function inside(
  kind: "warps" | "loop" | "scoped" | "producer",
  write: (writer: Writer) => void,
): (writer: Writer) => void {
  return (writer) => {
    const { add, nested, index } = writer;
    const types = kind === "warps" || kind === "loop" ? [scalarType(i32)] : [];
    const body = nested(types, () => {
      write(writer);
      return [];
    });
    if (kind === "warps") add("warps", {}, {}, { body }, there);
    else if (kind === "scoped") add("scoped", {}, {}, { body }, there);
    else if (kind === "producer") add("on_threads", {}, { threads: [0] }, { body }, there);
    else add("loop", { lower: index, upper: index, step: index, initial: [] }, {}, { body }, there);
  };
}

const synchronize = ({ add }: Writer): unknown => add("block_sync", {}, {});
const allocateShared = ({ add }: Writer): unknown =>
  add("alloc", {}, { space: "smem", dtype: f32, shape: [4] });

const mistakes: readonly Mistake[] = [
  {
    name: "block_sync in warp code",
    code: "TW2209",
    make: () => verifyBuilt(inside("warps", synchronize)),
    message: "blockSync needs the whole program thread, not one warp",
    notes: [["the warps split up here", there]],
  },
  {
    name: "wgmma in warp code",
    code: "TW2209",
    make: accumulating(
      inside("warps", (writer) => wait(writer, multiply(writer, accumulator(writer, elsewhere)))),
    ),
    message: "accumulator needs the whole program thread, not one warp",
    at: elsewhere,
  },
  ...(["warps", "scoped", "producer"] as const).map((kind): Mistake => {
    const name = kind === "producer" ? "a thread's code" : kind;
    return {
      name: `${name} in warp code`,
      code: "TW2209",
      make: () =>
        verifyBuilt(
          inside(
            "warps",
            inside(kind, () => undefined),
          ),
        ),
      message: `${name} needs the whole program thread, not one warp`,
      at: there,
    };
  }),
  {
    name: "block_sync on one of two threads",
    code: "TW2210",
    make: () => verifyBuilt(inside("producer", synchronize)),
    message: "not all program threads reach blockSync",
    expected: "all of producer, consumer",
    found: "producer",
    notes: [["the other threads are left out here", there]],
  },
  {
    name: "cluster barrier on one of two threads, inside a loop",
    code: "TW2210",
    make: () =>
      verifyBuilt(
        inside(
          "producer",
          inside("loop", ({ add }) => add("cluster_arrive", {}, {})),
        ),
      ),
    message: "not all program threads reach clusterArrive",
  },
  {
    name: "shared memory allocated in a loop",
    code: "TW2211",
    make: () => verifyBuilt(inside("loop", allocateShared)),
    message: "smem stands inside loop",
    expected: "the kernel's body or a scoped body",
    notes: [["loop begins here", there]],
  },
  {
    name: "shared memory allocated by one thread",
    code: "TW2211",
    make: () => verifyBuilt(inside("producer", allocateShared)),
    message: "smem stands inside a thread's code",
  },
  {
    name: "barrier allocated in a loop",
    code: "TW2211",
    make: () =>
      verifyBuilt(inside("loop", ({ add }) => add("alloc_barrier", {}, { count: 1, arrivals: 1 }))),
    message: "barrier stands inside loop",
  },
  {
    name: "global memory allocated in a scope",
    code: "TW2211",
    make: () =>
      verifyBuilt(
        inside("scoped", ({ add }) => add("alloc", {}, { space: "gmem", dtype: f32, shape: [4] })),
      ),
    message: "gmem stands inside scoped",
    expected: "the kernel's body",
  },
  {
    name: "semaphore allocated in a scope",
    code: "TW2211",
    make: () =>
      verifyBuilt(inside("scoped", ({ add }) => add("alloc_semaphore", {}, { shape: [4] }))),
    message: "semaphore stands inside scoped",
  },
  {
    name: "another thread inside the code of one",
    code: "TW2212",
    make: () =>
      verifyBuilt(
        inside("producer", ({ add, nested }) =>
          add("on_threads", {}, { threads: [1] }, { body: nested([], () => []) }),
        ),
      ),
    message: "program thread consumer does not get here",
    expected: "some of producer",
    found: "consumer",
    notes: [["it is left out here", there]],
  },
];

describe("placement", () => testMistakes(mistakes));

test("every code of placement has a test", () => {
  const tested = new Set<string>(mistakes.map(({ code }) => code));
  const registered = Object.keys(verifierCodes).filter((code) => /^TW22(09|1[012])$/.test(code));
  expect(registered.filter((code) => !tested.has(code))).toEqual([]);
});
