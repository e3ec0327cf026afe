/** Kernels that show what lowering decides: products through shared memory, and a sort of moved payloads. */
import {
  accumulator,
  tensor,
  bf16,
  commitShared,
  dim,
  dot,
  f32,
  i32,
  iota,
  kernel,
  loop,
  slice,
  smem,
  u8,
  wgmma,
  zeros,
} from "tilewright";
import type { KernelDefinition } from "tilewright";

/** Loads, stores to shared memory and multiplies: by wgmma where there is one, elsewhere by mma.sync. */
export function pipelinedDot(): KernelDefinition {
  const [m, k, n] = [
    dim("m", { multipleOf: 128 }),
    dim("k", { multipleOf: 64 }),
    dim("n", { multipleOf: 128 }),
  ];
  return kernel(
    {
      name: "matmul",
      grid: { i: 4, j: 4 },
      inputs: { a: tensor(bf16, [m, k]), b: tensor(bf16, [k, n]) },
      outputs: { c: tensor(bf16, [m, n]) },
      scratch: { sa: smem(bf16, [128, 64]), sb: smem(bf16, [64, 128]) },
    },
    ({ i, j, a, b, c, sa, sb }) => {
      const [rows, columns] = [slice(i.mul(128), 128), slice(j.mul(128), 128)];
      const sum = loop({ to: 8, carry: zeros(f32, [128, 128]) }, (step, running) => {
        const depth = slice(step.mul(64), 64);
        sa.store(a.at(rows, depth).load());
        sb.store(b.at(depth, columns).load());
        return dot(sa.load(), sb.load(), { accumulator: running });
      });
      c.at(rows, columns).store(sum.cast(bf16));
    },
  );
}

/** Products of `depth` that may be loops of their instructions, each started before the one in front of it is over. */
export function rolledProducts(depth = 64): KernelDefinition {
  const [height, width] = [64, 16];
  return kernel(
    {
      name: "rolled",
      inputs: { x: tensor(bf16, [height, depth]), y: tensor(bf16, [depth, width]) },
      outputs: { out: tensor(f32, [height, width]) },
      scratch: { a: smem(bf16, [height, depth]), b: smem(bf16, [depth, width]) },
    },
    ({ x, y, out, a, b }) => {
      a.store(x.load());
      b.store(y.load());
      commitShared();
      const carry = accumulator(f32, [height, width], "anything");
      const sums = loop({ to: 3, carry }, (step, before) =>
        wgmma(before, a, b, { adds: step.gt(0), rolled: true }).waitPending(1),
      );
      out.store(sums.wait());
    },
  );
}

/** Keys narrower than their payload, which is then needed in another layout. */
export function sortedRows(): KernelDefinition {
  const shape = [128, 4] as const;
  return kernel(
    {
      name: "order",
      inputs: { keys: tensor(u8, shape) },
      outputs: { order: tensor(i32, shape), other: tensor(i32, [4, 128]) },
    },
    ({ keys, order, other }) => {
      const [, moved] = keys.load().sortWith([iota(i32, shape, { axis: 0 })], { axis: 0 });
      order.store(moved);
      other.store(moved.sort({ axis: 0 }).transpose());
    },
  );
}
