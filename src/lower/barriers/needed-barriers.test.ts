/** Barrier insertion: kernels that need a barrier run right and without a race, and others have none. */
import { describe, expect, test } from "vitest";
import { emulateKernel } from "../../../test/support/emulated-kernel.ts";
import { runKernel } from "../../../test/simulation.ts";
import { f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { parseModule } from "../../ir/parser/parser.ts";
import { printKernel } from "../../ir/printer.ts";
import {
  tensor,
  barrier,
  clusterArrive,
  clusterSync,
  clusterWait,
  commitGroup,
  commitShared,
  copyAsync,
  kernel,
  loop,
  smem,
  waitGroup,
} from "../../lang/index.ts";
import type { KernelDefinition, Ref, Scalar } from "../../lang/index.ts";
import { printPtx } from "../../ptx/printer.ts";
import { targets } from "../../targets/target.ts";
import { place } from "../stages.ts";

const width = 64;
const numbers = Array.from({ length: 2 * width }, (_, index) => index % 7);
const x = fromNumbers(f32, [2, width], numbers);

interface Parts {
  readonly i: Scalar<"i32">;
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly own: Ref<"f32">;
}

function inPairs(name: string, body: (parts: Parts) => void): KernelDefinition {
  return kernel(
    {
      name,
      grid: { i: 2 },
      cluster: { i: 2 },
      inputs: { x: tensor(f32, [2, width]) },
      outputs: { out: tensor(f32, [2, width]) },
      scratch: { own: smem(f32, [width]) },
    },
    body,
  );
}

const row = (block: number): readonly number[] => numbers.slice(block * width, (block + 1) * width);
const plusSum = (values: readonly number[]): readonly number[] => {
  const sum = values.reduce((total, value) => total + value, 0);
  return values.map((value) => value + sum);
};
const eachBlock = (result: (block: number) => readonly number[]): readonly number[] =>
  [0, 1].flatMap(result);

/** Barriers of the thread's lanes that were put in for what lanes do to `own`. */
function barriersFor(definition: KernelDefinition): number {
  const text = printPtx(emulateKernel(definition, { x }).executable.module);
  return text.split("\n").filter((line) => /bar\.sync.*other lanes.*\bown\b/.test(line)).length;
}

const splitBarriers: readonly {
  readonly name: string;
  readonly expected: (block: number) => readonly number[];
  readonly body: (parts: Parts) => void;
}[] = [
  {
    name: "written between the halves and read behind",
    expected: (block) => plusSum(row(block)),
    body({ i, x: source, out, own }) {
      clusterArrive();
      own.store(source.at(i).load());
      clusterWait();
      out.at(i).store(own.load().add(own.load().sum()));
    },
  },
  {
    name: "written between the halves and read between the next ones",
    expected: (block) => plusSum(row(block)),
    body({ i, x: source, out, own }) {
      clusterArrive();
      own.store(source.at(i).load());
      clusterWait();
      clusterArrive();
      out.at(i).store(own.load().add(own.load().sum()));
      clusterWait();
    },
  },
  {
    name: "read between the halves and written behind",
    expected: (block) => plusSum(plusSum(row(block))),
    body({ i, x: source, out, own }) {
      own.store(source.at(i).load());
      clusterArrive();
      const before = own.load();
      const more = before.add(before.sum());
      clusterWait();
      own.store(more);
      out.at(i).store(own.load().add(own.load().sum()));
      clusterSync();
    },
  },
  {
    name: "arrived in one round and waited in the next",
    expected: (block) => plusSum(plusSum(plusSum(row(block)))),
    body({ i, x: source, out, own }) {
      clusterArrive();
      own.store(source.at(i).load());
      loop(3, () => {
        const before = own.load();
        clusterWait();
        clusterArrive();
        own.store(before.add(before.sum()));
      });
      clusterWait();
      out.at(i).store(own.load());
    },
  },
  {
    name: "a global array written between the halves and read behind",
    expected: (block) => plusSum(row(block)),
    body({ i, x: source, out }) {
      clusterArrive();
      out.at(i).store(source.at(i).load());
      clusterWait();
      const back = out.at(i).load();
      out.at(i).store(back.add(back.sum()));
    },
  },
];

describe("a cluster's barrier in two halves", () => {
  test.each(splitBarriers)("$name", async ({ expected, body }) => {
    const definition = inPairs("halves", body);
    const simulated = await runKernel(definition, { x });
    expect(simulated.findings).toEqual([]);
    expect(simulated.numbers("out")).toEqual(eachBlock(expected));
    for (const seed of [1, 2, 3]) {
      const { findings, results } = emulateKernel(definition, { x }, { seed });
      expect(findings).toEqual([]);
      expect(results["out"] && [...toNumbers(results["out"])]).toEqual(eachBlock(expected));
    }
  });

  test("orders what lies before its first half, without another barrier", () => {
    const definition = inPairs("before", ({ i, x: source, out, own }) => {
      own.store(source.at(i).load());
      clusterArrive();
      clusterWait();
      out.at(i).store(own.load().add(own.load().sum()));
    });
    expect(barriersFor(definition)).toBe(0);
  });

  test("does not order what lies between its halves", () => {
    const definition = inPairs("between", ({ i, x: source, out, own }) => {
      clusterArrive();
      own.store(source.at(i).load());
      clusterWait();
      out.at(i).store(own.load().add(own.load().sum()));
    });
    expect(barriersFor(definition)).toBe(1);
  });
});

describe("a fence of each lane", () => {
  /** Lanes have met between the store and the fence, so that the fence alone may be missing of others. */
  const handedOver = (all: boolean): KernelDefinition =>
    inPairs("handedOver", ({ i, x: source, out, own }) => {
      own.store(source.at(i).load());
      waitGroup(0);
      commitShared();
      if (all) waitGroup(0);
      copyAsync(own, out.at(i));
      commitGroup();
      waitGroup(0);
    });
  const meets = ({ kernel: traced }: KernelDefinition): boolean =>
    printKernel(place(traced, targets.sm_90a).kernel).includes("all lanes have handed over");

  test("is made by all of them before one lane starts a copy", () => {
    expect(meets(handedOver(false))).toBe(true);
    expect(meets(handedOver(true))).toBe(false);
  });

  test("is waited for by nobody where lanes have written nothing", () => {
    const read = inPairs("read", ({ i, out, own }) => {
      commitShared();
      copyAsync(own, out.at(i));
      commitGroup();
      waitGroup(0);
    });
    expect(meets(read)).toBe(false);
  });
});

test("lanes meet before a buffer is written whose bytes another was read from", () => {
  const { kernel: traced } = kernel(
    {
      name: "reused",
      inputs: { x: tensor(f32, [2, width]) },
      outputs: { out: tensor(f32, [2, width]) },
      scratch: { first: smem(f32, [width]), second: smem(f32, [width]) },
    },
    ({ x: source, out, first, second }) => {
      for (const [part, buffer] of [first, second].entries()) {
        buffer.store(source.at(part).load());
        out.at(part).store(buffer.load());
      }
    },
  );
  const text = printKernel(place(traced, targets.sm_90a).kernel);
  expect(text).toContain("other lanes may still read first");
});

test("copies that lanes make are not handed to TMA", () => {
  const { kernel: traced } = kernel(
    {
      name: "byLanes",
      inputs: { x: tensor(f32, [2, width]) },
      outputs: { out: tensor(f32, [2, width]) },
      scratch: { own: smem(f32, [width]), full: barrier() },
    },
    ({ x: source, out, own, full }) => {
      own.store(source.at(0).load());
      out.at(0).store(own.load());
      copyAsync(source.at(1), own, { barrier: full });
      full.wait();
      out.at(1).store(own.load());
    },
  );
  expect(printKernel(place(traced, targets.sm_80).kernel)).not.toContain("proxy_fence");
  expect(printKernel(place(traced, targets.sm_90a).kernel)).toContain("proxy_fence");
});

test("what all program threads run is followed, though a region of its own holds it", () => {
  const [traced] = parseModule(`kernel @together grid [] threads [first, second] (
    input %0 "x": ref<gmem, f32, [64, 64]>, output %1 "out": ref<gmem, f32, [64, 64]>
  ) {
    %2 = alloc {space = smem, dtype = f32, shape = [64, 64], name = "own"} : ref<smem, f32, [64, 64]>
    on_threads {threads = [0, 1]} body {
      %3 = load %0 : tile<f32, [64, 64]>
      store %2, %3
      %4 = transpose_ref %2 {permutation = [1, 0]} : ref<smem, f32, [64, 64]>
      %5 = load %4 : tile<f32, [64, 64]>
      store %1, %5
      yield
    }
    yield
  }`).kernels;
  const text = printKernel(place(traced ?? expect.fail(), targets.sm_90a).kernel);
  expect(text).toContain("other lanes may have written own");
});
