/**
 * Who may be where at the same time: warps of a thread that fall behind, warps on their own in different
 * places of one body, memory and barriers that begin and end around them, products that are still running.
 */
import { bf16, f32, i32 } from "../../src/formats/dtype.ts";
import {
  accumulator,
  tensor,
  barrier,
  blockSync,
  commitGroup,
  commitShared,
  constant,
  copyAsync,
  dot,
  kernel,
  loop,
  returnIf,
  scoped,
  slice,
  smem,
  waitGroup,
  warps,
  wgmma,
  when,
  whileLoop,
} from "../../src/lang/index.ts";
import type { Ref } from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { convertHost, ordinaryNumbers } from "./inputs.ts";

const x = ordinaryNumbers(f32, [4, 32, 32], 5);
const inputs = { x: tensor(f32, [4, 32, 32]) };
const outputs = { out: tensor(f32, [4, 32, 32]) };
const buffer = smem(f32, [32, 32]);

function laggingCases(): readonly MatrixCase[] {
  return [
    exactCase("copies and waits with nothing between", { x }, () =>
      kernel(
        { name: "ahead", inputs, outputs, scratch: { buffer, landed: barrier() } },
        ({ x: source, out, buffer: own, landed }) => {
          loop(9, (round) => {
            copyAsync(source.at(round.rem(4)), own, { barrier: landed });
            landed.wait();
          });
          loop(4, (row) => out.at(row).store(own.load()));
        },
      ),
    ),
    exactCase("a hand-over after lanes have met", { x }, () =>
      kernel(
        { name: "handed", grid: { i: 4 }, inputs, outputs, scratch: { buffer } },
        ({ i, x: source, out, buffer: own }) => {
          own.store(source.at(i).load());
          blockSync();
          commitShared();
          copyAsync(own, out.at(i));
          commitGroup();
          waitGroup(0);
        },
      ),
    ),
    exactCase("a condition reads what is written behind the loop", { x }, () =>
      kernel(
        { name: "condition", inputs, outputs, scratch: { flag: smem(i32, [1]) } },
        ({ x: source, out, flag }) => {
          flag.at(0).store(0);
          blockSync();
          const rounds = whileLoop(
            constant(i32, 0),
            () => flag.at(0).loadScalar().lt(5),
            (round) => {
              flag.at(0).store(round.add(1));
              blockSync();
              return round.add(1);
            },
          );
          flag.at(0).store(rounds.add(100));
          out.store(source.load().add(flag.at(0).loadScalar().cast(f32)));
        },
      ),
    ),
  ];
}

/** Rounds and blocks that end before their last line, with lanes that read what others wrote before and behind. */
function earlyEndCases(): readonly MatrixCase[] {
  return [
    exactCase("rounds that end early, and blocks", { x }, () =>
      kernel(
        { name: "early", grid: { i: 3 }, inputs, outputs, scratch: { row: smem(f32, [1]) } },
        ({ i, x: source, out, row }) => {
          returnIf(i.eq(1));
          const sum = loop(
            { to: 6, carry: constant(f32, 0) },
            (k, before, { breakIf, continueIf }) => {
              continueIf(k.eq(i), before);
              row.at(0).store(before.add(1));
              const after = row.at(0).loadScalar();
              breakIf(after.gt(3), after.mul(10));
              return after;
            },
          );
          when(i.eq(2), () => {
            out.store(source.load().add(sum));
          });
        },
      ),
    ),
  ];
}

function warpCases(): readonly MatrixCase[] {
  return [
    exactCase("buffers of different warps", { x }, () =>
      kernel(
        { name: "apart", inputs, outputs, scratch: { a: buffer, b: buffer } },
        ({ x: source, out, a, b }) => {
          warps((warp) => {
            when(warp.eq(0), () => {
              a.store(source.at(0).load());
              out.at(0).store(a.transpose().load());
            });
            when(warp.eq(1), () => {
              b.store(source.at(1).load());
              out.at(1).store(b.transpose().load());
            });
          });
          out.at(slice(2, 2)).store(0);
        },
      ),
    ),
    exactCase("buffers of warps that are not at the same place", { x }, () =>
      kernel(
        {
          name: "in_turn",
          inputs,
          outputs,
          scratch: { a: smem(f32, [4, 32, 32]), b: smem(f32, [4, 32, 32]) },
        },
        ({ x: source, out, a, b }) => {
          warps((warp) => {
            const other = constant(i32, 3).sub(warp);
            a.at(warp).store(source.at(warp).load());
            b.at(other).store(a.at(warp).transpose().load().add(1));
            out.at(warp).store(b.at(other).transpose().load());
          });
        },
      ),
    ),
  ];
}

function allocationCases(): readonly MatrixCase[] {
  return [
    exactCase("a barrier allocated before a buffer", { x }, () =>
      kernel(
        {
          name: "first",
          inputs,
          outputs,
          scratch: { landed: barrier(), whole: smem(f32, [4, 32, 32]) },
        },
        ({ x: source, out, landed, whole }) => {
          copyAsync(source, whole, { barrier: landed });
          landed.wait();
          out.store(whole.load());
        },
      ),
    ),
    exactCase("a barrier that begins anew in every round", { x }, () =>
      kernel({ name: "anew", inputs, outputs }, ({ x: source, out }) => {
        loop(4, (round) => {
          scoped({ landed: barrier(), buffer }, ({ landed, buffer: own }) => {
            copyAsync(source.at(round), own, { barrier: landed });
            landed.wait();
            out.at(round).store(own.load());
          });
        });
      }),
    ),
  ];
}

/** Products of whole numbers, which are exact; the body gets their factors in shared memory. */
function products(
  name: string,
  body: (left: Ref<"bf16">, right: Ref<"bf16">, out: Ref<"f32">) => void,
): MatrixCase {
  const factor = (seed: number) => convertHost(ordinaryNumbers(i32, [4, 64, 64], seed), bf16);
  const factors = tensor(bf16, [4, 64, 64]);
  const held = smem(bf16, [4, 64, 64]);
  return exactCase(name, { a: factor(1), b: factor(2) }, () =>
    kernel(
      {
        name: "flight",
        inputs: { a: factors, b: factors },
        outputs: { out: tensor(f32, [4, 64, 64]) },
        scratch: { left: held, right: held, landed: barrier({ arrivals: 2 }) },
      },
      ({ a, b, out, left, right, landed }) => {
        copyAsync(a, left, { barrier: landed });
        copyAsync(b, right, { barrier: landed });
        landed.wait();
        out.store(0);
        body(left, right, out);
      },
    ),
  );
}

/** One thread stores factors, the other multiplies them; no word of proxies, since `dot` takes tiles. */
function storedFactors(): MatrixCase {
  const factor = (seed: number) => convertHost(ordinaryNumbers(i32, [64, 64], seed), bf16);
  const factors = tensor(bf16, [64, 64]);
  const held = smem(bf16, [64, 64]);
  return exactCase("factors that another thread stores", { a: factor(1), b: factor(2) }, () =>
    kernel(
      {
        name: "stored",
        threads: ["write", "multiply"],
        inputs: { a: factors, b: factors },
        outputs: { out: tensor(f32, [64, 64]) },
        scratch: { left: held, right: held, full: barrier(), empty: barrier() },
      },
      ({ a, b, out, left, right, full, empty, write, multiply }) => {
        write(() => {
          loop(3, (round) => {
            when(round.gt(0), () => empty.wait());
            left.store(a.load());
            right.store(b.load());
            full.arrive();
          });
        });
        multiply(() => {
          loop(3, (round) => {
            full.wait();
            out.store(dot(left.load(), right.load()));
            when(round.lt(2), () => empty.arrive());
          });
        });
      },
    ),
  );
}

function flightCases(): readonly MatrixCase[] {
  const fresh = () => accumulator(f32, [64, 64]);
  return [
    storedFactors(),
    products("a new accumulator in every round", (left, right, out) => {
      const carry = wgmma(fresh(), left.at(0), right.at(0));
      const last = loop({ to: 3, carry }, (round, running) => {
        out.at(round).store(running.wait());
        const next = round.add(1);
        return wgmma(fresh(), left.at(next), right.at(next));
      });
      out.at(3).store(last.wait());
    }),
    products("accumulators that change places", (left, right, out) => {
      const { p, q } = loop({ to: 3, carry: { p: fresh(), q: fresh() } }, (round, carry) => ({
        p: wgmma(carry.q, left.at(round), right.at(round)),
        q: wgmma(carry.p, left.at(round), right.at(0)),
      }));
      out.at(0).store(p.wait());
      out.at(1).store(q.wait());
    }),
    products("a left factor that changes while it is multiplied", (left, right, out) => {
      const carry = { sum: fresh(), factor: left.at(0).load() };
      const { sum, factor } = loop({ to: 4, carry }, (round, now) => ({
        sum: wgmma(now.sum, now.factor, right.at(round)),
        factor: now.factor.add(left.at(round).load()),
      }));
      out.at(0).store(sum.wait().add(factor.cast(f32)));
    }),
    products("left factors of two products under way", (left, right, out) => {
      const { p, q } = loop({ to: 4, carry: { p: fresh(), q: fresh() } }, (round, carry) => ({
        p: wgmma(carry.p, left.at(round).load(), right.at(round)),
        q: wgmma(carry.q, left.at(round).load().neg(), right.at(0)),
      }));
      out.at(0).store(p.wait());
      out.at(1).store(q.wait());
    }),
  ];
}

export function turnCases(): readonly MatrixCase[] {
  return [
    ...laggingCases(),
    ...warpCases(),
    ...earlyEndCases(),
    ...allocationCases(),
    ...flightCases(),
  ];
}
