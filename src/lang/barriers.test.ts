/** Arrays of barriers with several axes, and parts of arrays. */
import { expect, test } from "vitest";
import { emulateKernel } from "../../test/support/emulated-kernel.ts";
import { runKernel, schedules } from "../../test/simulation.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { lower } from "../lower/stages.ts";
import { printPtx } from "../ptx/printer.ts";
import { open } from "../runtime/open.ts";
import { targets } from "../targets/target.ts";
import {
  all,
  barrier,
  commitShared,
  constant,
  copyAsync,
  full,
  kernel,
  loop,
  scoped,
  slice,
  smem,
  tensor,
  when,
} from "./index.ts";
import type { Barrier, Scalar } from "./index.ts";

/** Every barrier of [2, 3, 4] is arrived at by one spelling of its place and waited for by another. */
function spelled(
  arriving: (barriers: Barrier, place: readonly Scalar<"i32">[]) => Barrier,
  waiting: (barriers: Barrier, place: readonly Scalar<"i32">[]) => Barrier,
) {
  return kernel(
    {
      name: "spelled",
      threads: ["writer", "reader"],
      outputs: { out: tensor(i32, [24]) },
      scratch: { box: smem(i32, [24]), ready: barrier({ count: [2, 3, 4] }) },
    },
    ({ out, box, ready, writer, reader }) => {
      const each = (use: (place: readonly Scalar<"i32">[], at: Scalar<"i32">) => void): void =>
        loop(24, (at) => use([at.div(12), at.div(4).rem(3), at.rem(4)], at));
      writer(() =>
        each((place, at) => {
          box.at(at).store(at.mul(7));
          arriving(ready, place).arrive();
        }),
      );
      reader(() =>
        each((place, at) => {
          waiting(ready, place).wait();
          out.at(at).store(box.at(at).loadScalar());
        }),
      );
    },
  );
}

const zero = (place: readonly Scalar<"i32">[], axis: number): Scalar<"i32"> =>
  place[axis] ?? constant(i32, 0);

const spellings: readonly ((barriers: Barrier, place: readonly Scalar<"i32">[]) => Barrier)[] = [
  (barriers, place) => barriers.at(...place),
  (barriers, place) => barriers.at(zero(place, 0)).at(zero(place, 1)).at(zero(place, 2)),
  (barriers, place) => barriers.at(all, zero(place, 1)).at(zero(place, 0), zero(place, 2)),
  (barriers, place) => barriers.at(all, all, zero(place, 2)).at(zero(place, 0)).at(zero(place, 1)),
  (barriers, place) =>
    barriers
      .at(slice(zero(place, 0), 1), slice(0, 3))
      .at(0, zero(place, 1))
      .at(zero(place, 2)),
];

test("a barrier is the same however its place is spelled", async () => {
  for (const [at, arriving] of spellings.entries()) {
    const waiting = spellings[(at + 1) % spellings.length] ?? arriving;
    const definition = spelled(arriving, waiting);
    const wanted = Array.from({ length: 24 }, (_, place) => place * 7);
    for (const schedule of schedules.slice(0, 2)) {
      const run = await runKernel(definition, {}, schedule);
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual(wanted);
    }
    const { findings, results } = emulateKernel(definition, {});
    expect(findings).toEqual([]);
    expect(results["out"] && [...toNumbers(results["out"])]).toEqual(wanted);
  }
});

test("places that are known while tracing cost nothing, and one axis is as it was", () => {
  const text = (use: (ready: Barrier) => void): string =>
    String(
      kernel({ name: "known", scratch: { ready: barrier({ count: [2, 3] }) } }, ({ ready }) => {
        use(ready);
      }),
    );
  const known = text((ready) => ready.at(1).at(slice(1, 2)).at(1).arrive());
  expect(known).not.toContain("linear_index");
  expect(known).toMatch(/constant.*= 5/);
});

test("copies and rings take a row of them", async () => {
  const rings = kernel(
    {
      name: "rings",
      inputs: { x: tensor(f32, [2, 4, 32]) },
      outputs: { out: tensor(f32, [2, 4, 32]) },
      scratch: { box: smem(f32, [2, 2, 32]), full: barrier({ count: [2, 2] }) },
    },
    ({ x, out, box, full: ready }) => {
      loop(2, (side) => {
        const [slots, landed] = [box.at(side), ready.at(side)];
        loop(4, (step) => {
          const slot = step.rem(2);
          copyAsync(x.at(side, step), slots.at(slot), { barrier: landed.at(slot) });
          landed.at(slot).wait();
          out.at(side, step).store(slots.at(slot).load().add(side.cast(f32)));
          commitShared();
        });
      });
    },
  );
  const x = fromNumbers(
    f32,
    [2, 4, 32],
    Array.from({ length: 256 }, (_, k) => k % 100),
  );
  const wanted = [...toNumbers(x)].map((value, k) => value + Math.floor(k / 128));
  const run = await runKernel(rings, { x });
  expect(run.findings).toEqual([]);
  expect(run.numbers("out")).toEqual(wanted);
  for (const target of ["sm_90a", "sm_80"] as const) {
    const device = await open("emulator", { target });
    const { out } = await device.run(rings, { x });
    expect([...toNumbers(out)]).toEqual(wanted);
    device.dispose();
  }
});

test("more than 32 of them have parities of their own, and so have those of a scope", async () => {
  const many = kernel(
    { name: "many", threads: ["a", "b"], outputs: { out: tensor(i32, [1]) } },
    ({ out, a, b }) => {
      scoped({ ready: barrier({ count: [7, 7] }), back: barrier() }, ({ ready, back }) => {
        a(() => {
          loop(3, (round) => {
            loop(49, (at) => ready.at(at.rem(7), at.div(7)).arrive());
            when(round.lt(2), () => back.wait());
          });
        });
        b(() => {
          loop(3, (round) => {
            loop(49, (at) => ready.at(at.div(7), at.rem(7)).wait());
            when(round.lt(2), () => back.arrive());
          });
          out.at(0).store(1);
        });
      });
    },
  );
  const run = await runKernel(many);
  expect(run.findings).toEqual([]);
  const { findings, results } = emulateKernel(many, {});
  expect(findings).toEqual([]);
  expect(results["out"] && [...toNumbers(results["out"])]).toEqual([1]);
});

/** The place comes from memory, so that nobody knows it while compiling. */
function outside(pick: (ready: Barrier, index: Scalar<"i32">) => Barrier) {
  return kernel(
    {
      name: "outside",
      inputs: { x: tensor(i32, [1]) },
      outputs: { out: tensor(f32, [8]) },
      scratch: { ready: barrier({ count: [2, 3] }) },
    },
    ({ x, out, ready }) => {
      pick(ready, x.at(0).loadScalar()).arrive();
      out.store(full(f32, [8], 1));
    },
  );
}

test("an index beyond its axis is found, though the array goes on", async () => {
  const kernels = [
    outside((ready, index) => ready.at(0, index)),
    outside((ready, index) => ready.at(0, slice(0, 2)).at(index)),
    outside((ready, index) => ready.at(0, slice(index, 2)).at(0)),
  ];
  for (const definition of kernels) {
    for (const wrong of [3, -1]) {
      const x = fromNumbers(i32, [1], [wrong]);
      const run = await runKernel(definition, { x });
      expect(run.findings.map(({ code }) => code)).toContain("TW3006");
      expect(printPtx(lower(definition.kernel, targets.sm_90a).module)).toContain("setp.gt.u32");
      expect(() => emulateKernel(definition, { x })).toThrow("TW8016");
    }
    expect((await runKernel(definition, { x: fromNumbers(i32, [1], [0]) })).findings).toEqual([]);
  }
});

function refused(use: (ready: Barrier) => void): string {
  try {
    kernel({ name: "refused", scratch: { ready: barrier({ count: [2, 3] }) } }, ({ ready }) => {
      use(ready);
    });
  } catch (error) {
    if (error instanceof TilewrightError) return error.code;
    throw error;
  }
  return "nothing was thrown";
}

test("mistakes are refused", () => {
  expect(refused((ready) => ready.arrive())).toBe("TW2080");
  expect(refused((ready) => ready.at(1).arrive())).toBe("TW2080");
  expect(refused((ready) => ready.at(all, 1).wait())).toBe("TW2080");
  expect(refused((ready) => ready.at(1, 2, 0).arrive())).toBe("TW1017");
  expect(refused((ready) => ready.at(2, 0).arrive())).toBe("TW1016");
  expect(refused((ready) => ready.at(0, 3).arrive())).toBe("TW1016");
  expect(refused((ready) => ready.at(0, slice(2, 2)).at(0).arrive())).toBe("TW1016");
  expect(refused((ready) => ready.at(0, slice(0, 4)).at(0).arrive())).toBe("TW1016");
  expect(
    refused((ready) =>
      ready
        .at(0, slice(0, 2, { end: 1 }))
        .at(0)
        .arrive(),
    ),
  ).toBe("TW1036");
  const made = (count: number | readonly number[]) => () => barrier({ count });
  expect(made([])).toThrow("count of a barrier");
  expect(made([2, 0])).toThrow("count of a barrier");
  expect(made(1.5)).toThrow("count of a barrier");
});

test("reports name a barrier by its indices", async () => {
  const stuck = kernel(
    { name: "stuck", scratch: { ready: barrier({ count: [2, 3] }) } },
    ({ ready }) => {
      ready.at(1, 2).wait();
    },
  );
  const [finding] = (await runKernel(stuck)).findings;
  expect(finding?.code).toBe("TW3011");
  expect(String(finding)).toContain("ready[1, 2]");
});
