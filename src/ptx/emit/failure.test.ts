/**
 * What a failed assertion changes, as on a GPU: nothing stops the launch from outside, and it ends by itself. The limit of
 * steps is only reached where it does not.
 */
import { describe, expect, test } from "vitest";
import { emulateKernel } from "../../../test/support/emulated-kernel.ts";
import type { EmulationOptions } from "../../../test/support/emulated-kernel.ts";
import { f32, i32 } from "../../formats/dtype.ts";
import { fromNumbers } from "../../formats/hostarray.ts";
import type { HostArray } from "../../formats/hostarray.ts";
import {
  tensor,
  assert,
  barrier,
  clusterSync,
  full,
  kernel,
  loop,
  semaphore,
  slice,
  smem,
  warps,
  when,
  whileLoop,
} from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { targets } from "../../targets/target.ts";
import { parsePtx } from "../parser/index.ts";
import { printPtx } from "../printer.ts";

const word = (value: number): HostArray => fromNumbers(i32, [1], [value]);

/** Waits that come back at once: the emulator's `try_wait` only ends when the phase does, or once without. */
const impatient = {
  change: (module) =>
    parsePtx(printPtx(module).replaceAll("mbarrier.try_wait", "mbarrier.test_wait")),
} satisfies EmulationOptions;

/** Runs with an assertion that fails: alone to the kernel's end, and on the devices, which all say the same. */
async function fails(
  made: { readonly kernel: KernelDefinition["kernel"] },
  inputs: { readonly [name: string]: HostArray },
  code = "TW3012",
  options: EmulationOptions = impatient,
): Promise<void> {
  const limits = { stepLimit: 5e6 };
  const { failure } = emulateKernel(made, inputs, { ...options, limits });
  expect(failure?.code).toBe(code);
  for (const name of ["simulator", "emulator"] as const) {
    const device = await open(name);
    try {
      await expect(device.run(made as never, inputs as never)).rejects.toMatchObject({ code });
    } finally {
      device.dispose();
    }
  }
}

describe("loops end", () => {
  const halving = kernel(
    { name: "halving", inputs: { x: tensor(i32, [1]) }, outputs: { out: tensor(i32, [1]) } },
    ({ x, out }) => {
      const last = whileLoop(
        x.at(0).loadScalar(),
        (value) => value.ne(0),
        (value) => {
          assert(value.gt(0), "comes to 0");
          return value.sub(2);
        },
      );
      out.at(0).store(last);
    },
  );

  test("whose condition relies on what was asserted", async () => {
    await fails(halving, { x: word(7) });
    const { failure, results } = emulateKernel(halving, { x: word(2000) });
    expect([failure, results["out"]?.data[0]]).toEqual([undefined, 0]);
  });

  test("in which lanes meet, all at once", async () => {
    const sums = kernel(
      { name: "sums", inputs: { x: tensor(i32, [512]) }, outputs: { out: tensor(i32, [512]) } },
      ({ x, out }) => {
        const last = whileLoop(
          x.load(),
          (tile) => tile.sum().ne(0),
          (tile) => {
            assert(tile.ge(0), "none is below 0");
            return tile.sub(tile.max());
          },
        );
        out.store(last);
      },
    );
    await fails(sums, {
      x: fromNumbers(
        i32,
        [512],
        Array.from({ length: 512 }, (_, k) => k),
      ),
    });
  });

  test("of warps on their own", async () => {
    const own = kernel(
      { name: "own", inputs: { x: tensor(i32, [1]) }, outputs: { out: tensor(i32, [4]) } },
      ({ x, out }) => {
        warps((warp) => {
          const last = whileLoop(
            x.at(0).loadScalar().add(warp),
            (value) => value.ne(0),
            (value) => {
              assert(value.gt(0), "comes to 0");
              return value.sub(2);
            },
          );
          out.at(warp).store(last);
        });
      },
    );
    await fails(own, { x: word(4) });
    // Lanes of a warp may read the cell one after the other, and must leave together.
    let text = "";
    const change: EmulationOptions["change"] = (module) => {
      text = printPtx(module);
      return module;
    };
    emulateKernel(own, { x: word(6) }, { change });
    expect(text).toMatch(
      /setp\.ne\.u64 (%\w+), .*\n\s*vote\.sync\.any\.pred (%\w+), \1, -1;\n\s*@\2 bra/u,
    );
  });
});

describe("waits end", () => {
  const handOver = kernel(
    {
      name: "hand_over",
      threads: ["write", "read"],
      inputs: { step: tensor(i32, [1]) },
      outputs: { out: tensor(f32, [64]) },
      scratch: { room: smem(f32, [64]), ready: barrier(), free: barrier() },
    },
    ({ step, out, room, ready, free, write, read }) => {
      write(() => {
        loop({ to: 4, step: step.at(0).loadScalar() }, (k) => {
          when(k.gt(0), () => {
            free.wait();
          });
          room.store(full(f32, [64], 1));
          ready.arrive();
        });
      });
      read(() => {
        loop(4, () => {
          ready.wait();
          out.store(room.load());
          free.arrive();
        });
      });
    },
  );

  test.each(["sm_80", "sm_90a"] as const)(
    "for a thread that left its loop out, on %s",
    async (name) => {
      const target = targets[name];
      await fails(handOver, { step: word(0) }, "TW3014", { ...impatient, target });
      const { failure, results } = emulateKernel(handOver, { step: word(1) }, { target });
      expect([failure, results["out"]?.data[63]]).toEqual([undefined, 1]);
    },
  );

  test("for a peer in a cluster that left its loop out", async () => {
    const cluster = kernel(
      {
        name: "cluster",
        grid: { i: 2 },
        cluster: { i: 2 },
        inputs: { step: tensor(i32, [2]) },
        outputs: { out: tensor(i32, [2]) },
        scratch: { ready: barrier() },
      },
      ({ i, step, out, ready }) => {
        loop({ to: 3, step: step.at(i).loadScalar() }, () => {
          ready.arrive({ peer: i.xor(1) });
        });
        loop(3, () => {
          ready.wait();
        });
        out.at(i).store(i);
        clusterSync();
      },
    );
    await fails(cluster, { step: fromNumbers(i32, [2], [1, -1]) }, "TW3014");
  });

  test.each([false, true])("for another block's signals, taken back: %s", async (decrement) => {
    const signals = kernel(
      {
        name: "signals",
        grid: { i: 2 },
        inputs: { step: tensor(i32, [1]) },
        outputs: { out: tensor(i32, [2]) },
        scratch: { s: semaphore() },
      },
      ({ i, step, out, s }) => {
        when(
          i.eq(0),
          () => {
            loop({ to: 2, step: step.at(0).loadScalar() }, () => {
              s.signal();
            });
          },
          () => {
            s.wait(2, { decrement });
          },
        );
        out.at(i).store(i);
      },
    );
    await fails(signals, { step: word(0) }, "TW3014");
  });

  test("a deadlock without a failure is still found", () => {
    const stuck = kernel(
      {
        name: "stuck",
        threads: ["write", "read"],
        inputs: { x: tensor(i32, [1]) },
        outputs: { out: tensor(i32, [1]) },
        scratch: { ready: barrier({ arrivals: 2 }), s: semaphore() },
      },
      ({ x, out, ready, s, write, read }) => {
        write(() => {
          assert(x.at(0).loadScalar().gt(0), "x is positive");
          ready.arrive();
          s.wait(1);
        });
        read(() => {
          ready.wait();
          out.at(0).store(1);
        });
      },
    );
    for (const options of [{}, impatient])
      expect(() => emulateKernel(stuck, { x: word(1) }, options)).toThrow(
        expect.objectContaining({ code: "TW8020" }) as Error,
      );
  });
});

describe("what is outside is accessed nowhere", () => {
  const memory = {
    x: fromNumbers(
      f32,
      [4, 64],
      Array.from({ length: 256 }, (_, k) => k),
    ),
  };
  const rows = {
    inputs: { x: tensor(f32, [4, 64]), row: tensor(i32, [1]) },
    outputs: { out: tensor(f32, [64]) },
  };

  const ofGlobal = kernel({ name: "of_global", ...rows }, ({ x, row, out }) => {
    const index = row.at(0).loadScalar();
    const window = x.at(index);
    assert(index.lt(4), "there is such a row");
    out.store(window.load());
  });
  const reshaped = kernel({ name: "reshaped", ...rows }, ({ x, row, out }) => {
    const index = row.at(0).loadScalar();
    const window = x.at(index).reshape([8, 8]);
    assert(index.lt(4), "there is such a row");
    out.store(window.load().reshape([64]));
  });
  const nested = kernel({ name: "nested", ...rows }, ({ x, row, out }) => {
    const index = row.at(0).loadScalar();
    assert(index.lt(4), "there is such a row");
    const window = x.at(slice(index, 2)).at(0);
    out.at(slice(0, 32)).store(window.at(slice(0, 32)).load());
    out.at(slice(32, 32)).store(window.at(slice(32, 32)).load());
  });
  const ofShared = kernel(
    { name: "of_shared", ...rows, scratch: { room: smem(f32, [4, 64]) } },
    ({ x, row, out, room }) => {
      const index = row.at(0).loadScalar();
      room.store(x.load());
      assert(index.lt(4), "there is such a row");
      loop(2, () => {
        out.store(room.at(index).load());
      });
    },
  );
  const ofPeer = kernel(
    {
      name: "of_peer",
      grid: { i: 4 },
      cluster: { i: 4 },
      ...rows,
      scratch: { room: smem(f32, [64]) },
    },
    ({ i, x, row, out, room }) => {
      const index = row.at(0).loadScalar();
      room.store(x.at(i).load());
      clusterSync();
      assert(index.lt(4), "there is such a block");
      when(i.eq(0), () => {
        out.store(room.peer(index).load());
      });
      clusterSync();
    },
  );
  const ofReshaped = kernel(
    { name: "of_reshaped", ...rows, scratch: { room: smem(f32, [4, 80]) } },
    ({ x, row, out, room }) => {
      const index = row.at(0).loadScalar();
      room.at(slice(0, 4), slice(0, 64)).store(x.load());
      assert(index.lt(4), "there is such a row");
      const ofAll = room.at(slice(0, 4), slice(0, 64)).reshape([2, 128]);
      const window = ofAll.at(index.div(2), slice(index.rem(2).mul(64), 64));
      out.store(window.load());
    },
  );
  const picked = kernel({ name: "picked", ...rows }, ({ x, row, out }) => {
    const index = row.load().broadcastTo([64]);
    assert(index.lt(4), "there is such a row");
    out.store(x.at(index).load().sum({ axis: 0 }));
  });
  const written = kernel(
    { name: "written", ...rows, scratch: { room: smem(f32, [4, 64]) } },
    ({ x, row, out, room }) => {
      const index = row.at(0).loadScalar();
      assert(index.lt(4), "there is such a row");
      room.at(index).store(x.at(0).load());
      out.store(room.at(index).load());
    },
  );

  /** The element 5 of `out` for row 3. */
  const expectations: { readonly [name: string]: number } = {
    ...{ of_global: 197, reshaped: 197, nested: 197, of_shared: 197, of_peer: 197 },
    ...{ of_reshaped: 197 },
    ...{ picked: 64 * 197, written: 5 },
  };

  test.each([ofGlobal, reshaped, nested, ofShared, ofPeer, ofReshaped, picked, written])(
    "$kernel.name",
    async (made) => {
      await fails(made, { ...memory, row: word(5) });
      await fails(made, { ...memory, row: word(2 ** 31 - 1) });
      const { failure, findings, results } = emulateKernel(made, { ...memory, row: word(3) });
      expect([failure, findings]).toEqual([undefined, []]);
      expect(results["out"]?.data[5]).toBe(expectations[made.kernel.name]);
    },
  );

  test("but traps where no assertion has failed", () => {
    expect(() => emulateKernel(ofGlobal, { ...memory, row: word(-1) })).toThrow(
      expect.objectContaining({ code: "TW8016" }) as Error,
    );
    expect(() => emulateKernel(picked, { ...memory, row: word(-1) })).toThrow(
      expect.objectContaining({ code: "TW8016" }) as Error,
    );
  });
});

test("a kernel that cannot fail looks for no failure, and one that waits for nothing has no cell", () => {
  const scratchOf = (made: { readonly kernel: KernelDefinition["kernel"] }, row: HostArray) =>
    emulateKernel(made, { row }).executable.parameters.filter(({ kind }) => kind === "scratch");
  const plain = (name: string, asserts: boolean, loops: boolean) =>
    kernel(
      { name, inputs: { row: tensor(i32, [1]) }, outputs: { out: tensor(i32, [1]) } },
      ({ row, out }) => {
        const value = row.at(0).loadScalar();
        if (asserts) assert(value.gt(0), "positive");
        const found = loops
          ? whileLoop(
              value,
              (each) => each.gt(0),
              (each) => each.sub(1),
            )
          : value;
        out.at(0).store(found);
      },
    );
  expect(scratchOf(plain("asserts", true, false), word(1))).toEqual([]);
  expect(scratchOf(plain("loops", false, true), word(1))).toEqual([]);
  expect(scratchOf(plain("both", true, true), word(1))).toHaveLength(1);
});
