/**
 * Barriers, counters and blocks of a cluster that are picked by an index which may be outside: what lies beside an array of them belongs to
 * something else, so that the launch ends with an error instead, on every device.
 */
import { describe, expect, test } from "vitest";
import {
  accumulator,
  tensor,
  assert,
  barrier,
  bf16,
  clusterRank,
  clusterSync,
  commitShared,
  constant,
  f32,
  full,
  i32,
  iota,
  kernel,
  loop,
  open,
  scalar,
  semaphore,
  slice,
  smem,
  targets,
  toNumbers,
  wgmma,
} from "tilewright";
import type { KernelDefinition, Ref, Scalar } from "tilewright";
import { printModule } from "../src/ir/printer.ts";
import { lower, place } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { describeAssembly, hasPtxas } from "./ptxas.ts";

/** What a device answers: the first element of `out`, or the code of an error. */
async function answer(
  name: "simulator" | "emulator",
  definition: KernelDefinition,
  at: number,
): Promise<number | string | undefined> {
  const device = await open(name, { onFindings: () => undefined });
  try {
    const { out } = await device.run(definition, { at });
    return out && toNumbers(out)[0];
  } catch (error) {
    return (error as { readonly code?: string }).code;
  } finally {
    device.dispose();
  }
}

const inputs = { at: scalar(i32) };
const outputs = { out: tensor(i32, [1]) };

const arrival = (asserts: boolean) =>
  kernel(
    {
      name: "arrival",
      inputs,
      outputs,
      scratch: { own: barrier({ count: 2 }), other: barrier({ count: 2 }) },
    },
    ({ at, out, own, other }) => {
      if (asserts) assert(at.lt(2), "there is such a barrier");
      own.at(at).arrive();
      own.at(at).wait();
      other.at(1).arrive();
      other.at(1).wait();
      out.at(0).store(at);
    },
  );

const signal = kernel(
  { name: "signal", inputs, outputs, scratch: { own: semaphore([2, 3]), other: semaphore([2]) } },
  ({ at, out, own, other }) => {
    own.at(1, at).signal();
    other.at(0).signal();
    other.at(0).wait(1);
    out.at(0).store(at);
  },
);

const [grid, cluster] = [{ i: 2 }, { i: 2 }];
const inCluster = { out: tensor(i32, [2]) };

/** A block that reaches for memory or a barrier of the block `at`. */
const reaching = (way: "window" | "reshaped window" | "barrier", { asserts = false } = {}) =>
  kernel(
    {
      name: "reaching",
      grid,
      cluster,
      inputs,
      outputs: inCluster,
      scratch: { own: smem(i32, [3, 8]), told: barrier({ count: 2 }) },
    },
    ({ i, at, out, own, told }) => {
      if (asserts) assert(at.lt(2), "there is such a block");
      own.store(clusterRank("i"));
      clusterSync();
      if (way === "barrier") told.at(clusterRank("i")).arrive({ peer: at });
      const from = way === "window" ? own : own.reshape([2, 12]).at(slice(1, 1), slice(1, 7));
      out.at(i).store(way === "barrier" ? at : from.peer(at).load().max());
      clusterSync();
    },
  );

describe("an index of a place that is not there", () => {
  test.each([-1, 2, 3, 2 ** 31 - 1])("ends a launch: barrier %i", async (at) => {
    expect(await answer("simulator", arrival(false), at)).toBe("TW3006");
    expect(await answer("emulator", arrival(false), at)).toBe("TW8016");
  });

  test.each([-1, 3, 2 ** 31 - 1])("ends a launch: counter %i", async (at) => {
    expect(await answer("simulator", signal, at)).toBe("TW3005");
    expect(await answer("emulator", signal, at)).toBe("TW8016");
  });

  test("ends a launch where only its upper bound is known", async () => {
    const bounded = kernel(
      { name: "bounded", inputs, outputs, scratch: { own: barrier({ count: 2 }) } },
      ({ at, out, own }) => {
        own.at(at.minimum(1)).arrive();
        own.at(at.minimum(1)).wait();
        out.at(0).store(at);
      },
    );
    expect(await answer("simulator", bounded, -1)).toBe("TW3006");
    expect(await answer("emulator", bounded, -1)).toBe("TW8016");
    expect(await answer("emulator", bounded, 7)).toBe(7);
  });

  test.each([-1, 2, 256, 257, 2 ** 31 - 1])("ends a launch: block %i", async (at) => {
    for (const way of ["window", "reshaped window", "barrier"] as const) {
      expect(await answer("simulator", reaching(way), at), way).toBe("TW3019");
      expect(await answer("emulator", reaching(way), at), way).toBe("TW8016");
    }
  });

  test("is no matter where nobody comes to the access", async () => {
    const untaken = kernel(
      {
        name: "untaken",
        grid,
        cluster,
        inputs,
        outputs: inCluster,
        scratch: { own: smem(i32, [4]) },
      },
      ({ i, at, out, own }) => {
        own.store(at);
        clusterSync();
        // The window does not depend on the round, so that it is made before the loop.
        const sum = loop({ to: at.sub(7), carry: constant(i32, 3) }, (_, before) =>
          before.add(own.peer(at).load().sum()),
        );
        out.at(i).store(sum);
        clusterSync();
      },
    );
    for (const device of ["simulator", "emulator"] as const)
      expect(await answer(device, untaken, 7)).toBe(3);
    expect(await answer("simulator", untaken, 8)).toBe("TW3019");
    expect(await answer("emulator", untaken, 8)).toBe("TW8016");
  });

  test("is moved to the first where an assertion has failed", async () => {
    expect(await answer("simulator", arrival(true), 2)).toBe("TW3012");
    expect(await answer("emulator", arrival(true), 2)).toBe("TW3012");
    for (const way of ["window", "reshaped window", "barrier"] as const)
      expect(await answer("emulator", reaching(way, { asserts: true }), 2), way).toBe("TW3012");
  });

  test("is another matter than one that is there", async () => {
    for (const device of ["simulator", "emulator"] as const) {
      expect(await answer(device, arrival(false), 1)).toBe(1);
      expect(await answer(device, arrival(true), 1)).toBe(1);
      expect(await answer(device, signal, 2)).toBe(2);
      expect(await answer(device, reaching("window"), 1)).toBe(1);
      expect(await answer(device, reaching("reshaped window", { asserts: true }), 1)).toBe(1);
      expect(await answer(device, reaching("barrier"), 1)).toBe(1);
    }
  });

  test("is not asked for where facts prove that it is there", () => {
    const proved = kernel(
      { name: "proved", inputs, outputs, scratch: { own: barrier({ count: 2 }) } },
      ({ at, out, own }) => {
        own.at(at.and(1)).arrive();
        out.at(0).store(at);
      },
    );
    const textOf = ({ kernel: traced }: KernelDefinition) =>
      printModule({ kernels: [place(traced, targets.sm_90a).kernel] });
    expect(textOf(proved)).not.toContain("index 0");
    expect(textOf(arrival(false))).toContain('guard = ["index 0"]');
  });
});

/** Something that may be outside, between a product and the wait for it. */
const between = (access: (values: Ref<"f32">, at: Scalar<"i32">) => Scalar<"f32">) =>
  kernel(
    {
      name: "between",
      inputs,
      outputs: { out: tensor(f32, [1]), sums: tensor(f32, [64, 128]) },
      scratch: {
        left: smem(bf16, [64, 64]),
        right: smem(bf16, [64, 128]),
        values: smem(f32, [100]),
      },
    },
    ({ at, out, sums, left, right, values }) => {
      left.store(full(bf16, [64, 64], 1));
      right.store(full(bf16, [64, 128], 1));
      values.store(iota(f32, [100], { axis: 0 }));
      commitShared();
      const product = loop({ to: 4, carry: accumulator(f32, [64, 128]) }, (step, sum) => {
        const running = wgmma(sum, left, right);
        out.at(0).store(access(values, at.add(step)));
        return running.waitPending(1);
      });
      sums.store(product.wait());
    },
  );

const accesses = {
  "an element": between((values, at) => values.at(at).loadScalar()),
  "a window": between((values, at) => values.at(slice(at, 16)).load().max()),
  "picked elements": between((values, at) =>
    values
      .at(iota(i32, [64], { axis: 0 }).minimum(0).add(at))
      .load()
      .max(),
  ),
};

describe.each(Object.entries(accesses))("beside products in flight, %s", (_, definition) => {
  test("that may be outside ends the launch where it is", async () => {
    expect(await answer("emulator", definition, 2)).not.toBe("TW8016");
    expect(await answer("emulator", definition, 99)).toBe("TW8016");
    expect(await answer("emulator", definition, -9)).toBe("TW8016");
  });

  test.skipIf(!hasPtxas)("does not serialise them", () => {
    const { module } = lower(definition.kernel, targets.sm_90a);
    expect(describeAssembly(printPtx(module), "sm_90a")).not.toContain("(C7");
  });
});
