import { describe, expect, test } from "vitest";
import { bodyText, testMistakes, trace } from "../../test/language.ts";
import type { Mistake } from "../../test/language.ts";
import { f32, i32 } from "../formats/dtype.ts";
import { all, tensor, barrier, dim, kernel, semaphore, slice, smem, zeros } from "./index.ts";
import type { Ref, Scalar } from "./index.ts";

const windows: readonly Mistake[] = [
  {
    name: "negative index",
    code: "TW1016",
    make: () => trace(({ x }) => x.at(-1)), // <- here
    message: "axis 0 of ref<gmem, f32, [8, 64]> has no element -1",
  },
  {
    name: "index beyond the axis",
    code: "TW1016",
    make: () => trace(({ x }) => x.at(all, 64)), // <- here
    message: "axis 1 of ref<gmem, f32, [8, 64]> has no element 64",
  },
  {
    name: "window on shared memory from below 0",
    code: "TW1016",
    make: () => trace(({ shared }) => shared.at(slice(-4, 8))), // <- here
    expected: "start and size within 8 elements",
  },
  {
    name: "window on shared memory that overhangs",
    code: "TW1016",
    make: () => trace(({ shared }) => shared.at(slice(4, 8))), // <- here
    message: "axis 0 of ref<smem, f32, [8, 64]> has no 8 elements from 4",
    expected: "start and size within 8 elements",
  },
  {
    name: "end of a slice of shared memory",
    code: "TW1036",
    make: () => trace(({ shared, i }) => shared.at(slice(0, 4, { end: i }))), // <- here
    message: "a slice of ref<smem, f32, [8, 64]> has an end of its own",
  },
  {
    name: "barrier beyond the array",
    code: "TW1016",
    make: () =>
      kernel({ name: "waits", scratch: { ready: barrier({ count: 2 }) } }, ({ ready }) => {
        ready.at(2).arrive(); // <- here
      }),
    message: "barrier<2, arrivals=1> has no element 2",
  },
  {
    name: "counter beyond the semaphore",
    code: "TW1016",
    make: () =>
      kernel({ name: "signals", scratch: { done: semaphore([2]) } }, ({ done }) => {
        done.at(5).signal(); // <- here
      }),
    message: "axis 0 of semaphore<[2]> has no element 5",
  },
  {
    name: "too many indices",
    code: "TW1017",
    make: () => trace(({ x, i }) => x.at(i, i, i)), // <- here
    message: "3 indices for ref<gmem, f32, [8, 64]>",
  },
  {
    name: "scalar of a window with axes",
    code: "TW1018",
    make: () => trace(({ x }) => x.at(0).loadScalar()), // <- here
    remedy: "write load()",
  },
  {
    name: "atomic update of a window by a number",
    code: "TW1032",
    make: () => trace(({ x }) => x.at(0).atomicAdd(1)), // <- here
    message: "atomic of a single value on ref<gmem, f32, [64]>",
    expected: "a tile of shape [64]",
  },
];

testMistakes("windows", windows);

/** The ops of a body with an array x of f32, [n, 64], and shared memory of f32, [8, 64]. */
function ops(
  body: (things: {
    readonly i: Scalar<"i32">;
    readonly x: Ref<"f32">;
    readonly count: Ref<"i32">;
    readonly shared: Ref<"f32">;
  }) => void,
): string {
  const definition = kernel(
    {
      name: "k",
      grid: { i: 4 },
      cluster: { i: 2 },
      inputs: { x: tensor(f32, [dim("n"), 64]) },
      inouts: { count: tensor(i32, [16]) },
      scratch: { shared: smem(f32, [8, 64]) },
    },
    body,
  );
  return bodyText(definition).split("\n").slice(2, -1).join("\n");
}

describe("refs", () => {
  test("a window and an index may end where shared memory ends", () => {
    expect(
      ops(({ shared }) => {
        shared.at(slice(4, 4), 63);
      }),
    ).toContain("slice_ref");
  });

  test("windows", () => {
    expect(
      ops(({ i, x }) => {
        x.at(slice(i.mul(8), 8));
        x.at(i, slice(16, 32));
        x.at(all, 3);
      }),
    ).toMatchInlineSnapshot(`
      "%4 = constant {value = 8, dtype = i32, shape = []} : i32
      %5 = binary %2, %4 {fn = mul} : i32
      %6 = constant {value = 0, dtype = i32, shape = []} : i32
      %7 = slice_ref %0 offsets(%5, %6) {sizes = [8, 64], dropped = []} : ref<gmem, f32, [8, 64]>
      %8 = constant {value = 16, dtype = i32, shape = []} : i32
      %9 = slice_ref %0 offsets(%2, %8) {sizes = [1, 32], dropped = [0]} : ref<gmem, f32, [32]>
      %10 = constant {value = 3, dtype = i32, shape = []} : i32
      %11 = slice_ref %0 offsets(%6, %10) {sizes = [n, 1], dropped = [1]} : ref<gmem, f32, [n]>"
    `);
  });

  test("views", () => {
    expect(
      ops(({ i, shared, x }) => {
        shared.transpose();
        shared.reshape([4, 2, 64]).transpose([2, 0, 1]);
        shared.peer(i.rem(2));
        x.reshape([64, dim("n")]);
      }),
    ).toMatchInlineSnapshot(`
      "%4 = transpose_ref %3 {permutation = [1, 0]} : ref<smem, f32, [64, 8]>
      %5 = reshape_ref %3 {shape = [4, 2, 64]} : ref<smem, f32, [4, 2, 64]>
      %6 = transpose_ref %5 {permutation = [2, 0, 1]} : ref<smem, f32, [64, 4, 2]>
      %7 = constant {value = 2, dtype = i32, shape = []} : i32
      %8 = binary %2, %7 {fn = rem} : i32
      %9 = peer_ref %3, %8 : ref<peer, f32, [8, 64]>
      %10 = reshape_ref %0 {shape = [64, n]} : ref<gmem, f32, [64, n]>"
    `);
  });

  test("know their shape, dtype and space", () => {
    ops(({ x, shared }) => {
      expect([x.dtype, x.space, shared.space]).toEqual([f32, "gmem", "smem"]);
      expect(shared.at(3).shape).toEqual([64]);
      expect(x.at(slice(0, 4)).transpose().shape).toEqual([64, 4]);
    });
  });

  test("windows on global memory may overhang", () => {
    expect(ops(({ count }) => count.at(slice(12, 32)).load())).toContain("tile<i32, [32]>");
    expect(ops(({ count }) => count.at(slice(100, 32)).load())).toContain("tile<i32, [32]>");
  });

  test("loads and stores", () => {
    expect(
      ops(({ x, shared, i }) => {
        const window = x.at(slice(0, 8));
        window.load({ fill: -Infinity });
        const element = x.at(i, i).loadScalar();
        shared.store(0);
        shared.store(element);
        shared.store(window.at(0).load());
        shared.at(0, 0).store(1);
      }),
    ).toMatchInlineSnapshot(`
      "%4 = constant {value = 0, dtype = i32, shape = []} : i32
      %5 = slice_ref %0 offsets(%4, %4) {sizes = [8, 64], dropped = []} : ref<gmem, f32, [8, 64]>
      %6 = constant {value = -inf, dtype = f32, shape = []} : f32
      %7 = load %5 fill(%6) : tile<f32, [8, 64]>
      %8 = slice_ref %0 offsets(%2, %2) {sizes = [1, 1], dropped = [0, 1]} : ref<gmem, f32, []>
      %9 = load %8 : f32
      %10 = constant {value = 0, dtype = f32, shape = [8, 64]} : tile<f32, [8, 64]>
      store %3, %10
      %11 = broadcast %9 {shape = [8, 64], axes = []} : tile<f32, [8, 64]>
      store %3, %11
      %12 = slice_ref %5 offsets(%4, %4) {sizes = [1, 64], dropped = [0]} : ref<gmem, f32, [64]>
      %13 = load %12 : tile<f32, [64]>
      %14 = broadcast %13 {shape = [8, 64], axes = [1]} : tile<f32, [8, 64]>
      store %3, %14
      %15 = slice_ref %3 offsets(%4, %4) {sizes = [1, 1], dropped = [0, 1]} : ref<smem, f32, []>
      %16 = constant {value = 1, dtype = f32, shape = []} : f32
      store %15, %16"
    `);
  });

  test("atomics", () => {
    expect(
      ops(({ count, i }) => {
        count.at(i).atomicAdd(1).add(1);
        count
          .at(slice(0, 4))
          .atomic("max", zeros(i32, [4]))
          .sum();
        count.at(0).compareExchange(0, i).add(1);
      }),
    ).toMatchInlineSnapshot(`
      "%4 = slice_ref %1 offsets(%2) {sizes = [1], dropped = [0]} : ref<gmem, i32, []>
      %5 = constant {value = 1, dtype = i32, shape = []} : i32
      %6 = atomic %4, %5 {fn = add} : i32
      %7 = binary %6, %5 {fn = add} : i32
      %8 = constant {value = 0, dtype = i32, shape = []} : i32
      %9 = slice_ref %1 offsets(%8) {sizes = [4], dropped = []} : ref<gmem, i32, [4]>
      %10 = constant {value = 0, dtype = i32, shape = [4]} : tile<i32, [4]>
      %11 = atomic %9, %10 {fn = max} : tile<i32, [4]>
      %12 = reduce %11 {fn = sum, axes = [0]} : i32
      %13 = slice_ref %1 offsets(%8) {sizes = [1], dropped = [0]} : ref<gmem, i32, []>
      %14 = atomic_compare_exchange %13, %8, %2 : i32
      %15 = binary %14, %5 {fn = add} : i32"
    `);
  });
});
