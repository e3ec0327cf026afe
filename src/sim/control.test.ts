import { describe, expect, test } from "vitest";
import { runKernel, schedules } from "../../test/simulation.ts";
import { f32, i32, i64 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import {
  tensor,
  blockSync,
  constant,
  debugBreak,
  debugPrint,
  full,
  iota,
  kernel,
  loop,
  scalar,
  scoped,
  slice,
  smem,
  switchCase,
  threadIndex,
  warps,
  when,
  whileLoop,
  zeros,
} from "../lang/index.ts";

describe("control flow", () => {
  test("loops with bounds known at run time, steps and carries that trade places", async () => {
    const k = kernel(
      { name: "loops", inputs: { n: scalar(i32) }, outputs: { out: tensor(i32, [3]) } },
      ({ n, out }) => {
        const [a, b] = loop(
          { from: 1, to: n, step: 2, carry: [constant(i32, 1), constant(i32, 100)] },
          (i, [left, right]) => [right.add(i), left],
        );
        out.at(0).store(a);
        out.at(1).store(b);
        out.at(2).store(loop({ from: n, to: 0, carry: n }, (_, carry) => carry.add(1)));
      },
    );
    const run = await runKernel(k, { n: 8 });
    let [a, b] = [1, 100];
    for (let i = 1; i < 8; i += 2) [a, b] = [b + i, a];
    expect(run.numbers("out")).toEqual([a, b, 8]);
  });

  test("a loop counts in i64 where its bounds are", async () => {
    const k = kernel(
      { name: "wide", inputs: { n: scalar(i64) }, outputs: { out: tensor(i64, [1]) } },
      ({ n, out }) => {
        out.at(0).store(
          whileLoop(
            n,
            (x) => x.lt(1000n),
            (x) => x.mul(x),
          ),
        );
      },
    );
    expect((await runKernel(k, { n: 3n })).numbers("out")).toEqual([6561]);
  });

  test("tiles carried through nested loops keep their values apart", async () => {
    const k = kernel({ name: "nested", outputs: { out: tensor(i32, [4]) } }, ({ out }) => {
      const sums = loop({ to: 3, carry: zeros(i32, [4]) }, (i, outer) => {
        const inner = loop({ to: 2, carry: outer }, (j, tile) =>
          tile.add(iota(i32, [4], { axis: 0 }).add(j)),
        );
        return inner.add(outer).add(i);
      });
      out.store(sums);
    });
    const reference = [0, 1, 2, 3].map((element) => {
      let outer = 0;
      for (let i = 0; i < 3; i++) {
        let inner = outer;
        for (let j = 0; j < 2; j++) inner += element + j;
        outer = inner + outer + i;
      }
      return outer;
    });
    expect((await runKernel(k)).numbers("out")).toEqual(reference);
  });

  test("conditionals and switches give results, and a switch clamps", async () => {
    const k = kernel(
      { name: "branches", grid: { i: 5 }, outputs: { out: tensor(i32, [5]) } },
      ({ i, out }) => {
        const chosen = switchCase(i.sub(1), [() => i.mul(10), () => i.mul(100), () => i.mul(1000)]);
        out.at(i).store(
          when(
            i.eq(2),
            () => chosen.neg(),
            () => chosen,
          ),
        );
      },
    );
    expect((await runKernel(k)).numbers("out")).toEqual([0, 10, -200, 3000, 4000]);
  });

  test("warps run the body each with its index, and meet afterwards", async () => {
    const k = kernel(
      { name: "warped", outputs: { out: tensor(i32, [4]) }, scratch: { buffer: smem(i32, [4]) } },
      ({ out, buffer }) => {
        const base = constant(i32, 5);
        warps((warp) => {
          buffer.at(warp).store(warp.add(base));
        });
        out.store(buffer.load());
      },
    );
    for (const schedule of schedules) {
      const run = await runKernel(k, {}, schedule);
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual([5, 6, 7, 8]);
    }
  });
});

describe("scoped allocation", () => {
  test("all threads share a scope outside of thread code", async () => {
    const k = kernel(
      { name: "shared", threads: ["a", "b"], outputs: { out: tensor(i32, [2, 2]) } },
      ({ out }) => {
        const me = threadIndex();
        loop(2, (i) => {
          scoped({ buffer: smem(i32, [2]) }, ({ buffer }) => {
            buffer.at(me).store(me.add(i.mul(10)));
            blockSync();
            out.at(i, me).store(buffer.at(me.xor(1)).loadScalar());
          });
        });
      },
    );
    for (const schedule of schedules) {
      const run = await runKernel(k, {}, schedule);
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual([1, 0, 11, 10]);
    }
  });

  test("a thread has its own scope inside thread code, and scopes yield values", async () => {
    const k = kernel(
      { name: "private", threads: ["a", "b"], outputs: { out: tensor(f32, [2]) } },
      ({ a, b, out }) => {
        const body = (position: number) => (): void => {
          const sum = scoped({ buffer: smem(f32, [8]) }, ({ buffer }) => {
            buffer.store(full(f32, [8], position + 1));
            return buffer.load().sum();
          });
          out.at(position).store(sum);
        };
        a(body(0));
        b(body(1));
      },
    );
    for (const schedule of schedules) {
      const run = await runKernel(k, {}, schedule);
      expect(run.findings).toEqual([]);
      expect(run.numbers("out")).toEqual([8, 16]);
    }
  });
});

describe("debugging", () => {
  test("prints say which thread and block, and show tiles", async () => {
    const k = kernel(
      { name: "printed", grid: { i: 2 }, inputs: { x: tensor(f32, [2]) } },
      ({ i, x }) => {
        debugPrint("i = {}, x = {}!", i, x.load());
      },
    );
    const run = await runKernel(k, { x: fromNumbers(f32, [2], [1.5, -2]) });
    expect(run.printed).toEqual([
      "[thread main of block (i = 0)] i = 0, x = f32[2]\n[1.5, -2]!",
      "[thread main of block (i = 1)] i = 1, x = f32[2]\n[1.5, -2]!",
    ]);
  });

  test("a break goes on where no debugger is attached", async () => {
    const k = kernel(
      { name: "broken", inputs: { x: tensor(f32, [4]) }, outputs: { out: tensor(f32, [2]) } },
      ({ x, out }) => {
        const part = x.at(slice(1, 2)).load();
        debugBreak({ part, sum: part.sum() });
        out.store(part);
      },
    );
    const run = await runKernel(k, { x: fromNumbers(f32, [4], [1, 2, 3, 4]) });
    expect(run.numbers("out")).toEqual([2, 3]);
  });
});
