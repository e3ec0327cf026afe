/**
 * Programs whose blocks hand data on through memory that they poll: a lock, a flag, and a scan that looks back. With the orders that they need
 * nothing may be found in them, and with relaxed ones their data must race.
 */
import { f32, i32 } from "../../src/formats/dtype.ts";
import { constant, gmem, kernel, slice, tensor, when, whileLoop } from "../../src/lang/index.ts";
import type { KernelDefinition, MemoryScope, Ref, Scalar } from "../../src/lang/index.ts";

/** What a program says of its accesses to what it polls. */
export interface Orders {
  readonly acquire: "acquire" | "relaxed";
  readonly release: "release" | "relaxed";
  readonly scope?: MemoryScope;
}

export const ordered: Orders = { acquire: "acquire", release: "release" };

function scoped({ scope }: Orders): { readonly scope?: MemoryScope } {
  return scope === undefined ? {} : { scope };
}

/** Waits until the element is at least `least`, and gives what it is then. */
function spin(flag: Ref<"i32">, least: Scalar<"i32"> | number, orders: Orders): Scalar<"i32"> {
  const first = constant(i32, -1);
  return whileLoop(
    { found: first },
    ({ found }) => found.lt(least),
    () => ({ found: flag.loadScalar({ memoryOrder: orders.acquire, ...scoped(orders) }) }),
  ).found;
}

/** Each block adds its number and 1 to a sum that a lock guards. */
export function lockedSum(blocks: number, orders: Orders): KernelDefinition {
  const words = tensor(i32, [1]);
  return kernel(
    { name: "locked_sum", grid: { i: blocks }, inouts: { lock: words, total: words } },
    ({ i, lock, total }) => {
      whileLoop(
        { found: constant(i32, 1) },
        ({ found }) => found.ne(0),
        () => ({
          found: lock
            .at(0)
            .compareExchange(0, 1, { memoryOrder: orders.acquire, ...scoped(orders) }),
        }),
      );
      total.at(0).store(total.at(0).loadScalar().add(i).add(1));
      lock.at(0).store(0, { memoryOrder: orders.release, ...scoped(orders) });
    },
  );
}

/** Every block but the first waits for the block before it, and adds 1 to the row that it has left. */
export function handedRows(blocks: number, orders: Orders): KernelDefinition {
  return kernel(
    {
      name: "handed_rows",
      grid: { i: blocks },
      inputs: { x: tensor(f32, [256]) },
      outputs: { rows: tensor(f32, [blocks, 256]) },
      inouts: { flags: tensor(i32, [blocks]) },
    },
    ({ i, x, rows, flags }) => {
      const row = when(
        i.eq(0),
        () => x.load(),
        () => {
          spin(flags.at(i.sub(1)), 1, orders);
          return rows.at(i.sub(1)).load().add(1);
        },
      );
      rows.at(i).store(row);
      flags.at(i).store(1, { memoryOrder: orders.release, ...scoped(orders) });
    },
  );
}

/**
 * A decoupled look-back: each block sums its part, tells that sum (1), looks back until a block that knows all before it (2), and
 * tells what it knows then.
 */
export function lookBackScan(blocks: number, orders: Orders): KernelDefinition {
  const length = 64;
  return kernel(
    {
      name: "look_back",
      grid: { i: blocks },
      inputs: { x: tensor(i32, [blocks * length]) },
      outputs: { out: tensor(i32, [blocks * length]) },
      inouts: { status: tensor(i32, [blocks]) },
      scratch: { sums: gmem(i32, [blocks]), prefixes: gmem(i32, [blocks]) },
    },
    ({ i, x, out, status, sums, prefixes }) => {
      const tell = (value: number): void => {
        status.at(i).store(value, { memoryOrder: orders.release, ...scoped(orders) });
      };
      const part = slice(i.mul(length), length);
      const own = x.at(part).load();
      const sum = own.sum();
      sums.at(i).store(sum);
      tell(1);
      const { before } = whileLoop(
        { block: i.sub(1), before: constant(i32, 0) },
        ({ block }) => block.ge(0),
        ({ block, before }) => {
          const found = spin(status.at(block), 1, orders);
          return when(
            found.eq(2),
            () => ({
              block: constant(i32, -1),
              before: before.add(prefixes.at(block).loadScalar()),
            }),
            () => ({ block: block.sub(1), before: before.add(sums.at(block).loadScalar()) }),
          );
        },
      );
      prefixes.at(i).store(before.add(sum));
      tell(2);
      out.at(part).store(own.cumsum({ axis: 0 }).add(before));
    },
  );
}
