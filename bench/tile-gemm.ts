/**
 * A bf16 matrix product of one tile a block, with every barrier written out: the smaller of the two kernels whose compilation is timed.
 * A thread copies ahead into a ring of buffers and two multiply, 64 rows each; `full` says that a pair of tiles has landed,
 * `empty` that both consumers are done with it.
 */
import {
  accumulator,
  tensor,
  barrier,
  bf16,
  cdiv,
  commitGroup,
  commitShared,
  copyAsync,
  dim,
  f32,
  kernel,
  loop,
  setRegisters,
  slice,
  smem,
  union,
  waitGroup,
  wgmma,
  when,
} from "tilewright";

const [m, n, k] = [dim("m"), dim("n", { multipleOf: 8 }), dim("k", { multipleOf: 8 })];
const [rows, columns, depth, stages] = [128, 256, 64, 4];
const half = rows / 2;

export const tileGemm = () =>
  kernel(
    {
      name: "tile_gemm",
      grid: { j: cdiv(n, columns), i: cdiv(m, rows) },
      threads: ["copy", "first", "second"],
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { c: tensor(bf16, [m, n]) },
      scratch: {
        memory: union(
          {
            tileA: smem(bf16, [stages, rows, depth]),
            tileB: smem(bf16, [stages, depth, columns]),
          },
          { result: smem(bf16, [2, half, columns]) },
        ),
        full: barrier({ count: stages, arrivals: 2 }),
        empty: barrier({ count: stages, arrivals: 2 }),
        drained: barrier({ arrivals: 2 }),
      },
    },
    ({ i, j, a, b, c, memory, full, empty, drained, copy, first, second }) => {
      const { tileA, tileB, result } = memory;
      const steps = cdiv(k, depth);
      const top = i.mul(rows);
      const left = slice(j.mul(columns), columns);
      copy(() => {
        setRegisters(40);
        loop(steps, (step) => {
          const slot = step.rem(stages);
          when(step.ge(stages), () => {
            empty.at(slot).wait();
          });
          const along = slice(step.mul(depth), depth);
          const landed = { barrier: full.at(slot) };
          copyAsync(a.at(slice(top, rows), along), tileA.at(slot), landed);
          copyAsync(b.at(along, left), tileB.at(slot), landed);
        });
      });
      [first, second].forEach((multiply, part) => {
        multiply(() => {
          setRegisters(232);
          const product = loop(
            { to: steps, carry: accumulator(f32, [half, columns]) },
            (step, sum) => {
              const slot = step.rem(stages);
              full.at(slot).wait();
              const mine = tileA.at(slot, slice(part * half, half));
              const running = wgmma(sum, mine, tileB.at(slot)).waitPending(1);
              // The step before this one is over, so its slot may be refilled.
              when(step.gt(0), () => {
                empty.at(step.add(stages - 1).rem(stages)).arrive();
              });
              return running;
            },
          ).wait();
          drained.arrive();
          drained.wait();
          const own = result.at(part);
          own.store(product.cast(bf16));
          commitShared();
          copyAsync(own, c.at(slice(top.add(part * half), half), left));
          commitGroup();
          waitGroup(0, { read: true });
        });
      });
    },
  );
