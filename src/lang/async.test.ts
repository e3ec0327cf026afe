import { expect, test } from "vitest";
import { bodyText } from "../../test/language.ts";
import { bf16, f32 } from "../formats/dtype.ts";
import {
  accumulator,
  tensor,
  assert,
  barrier,
  blockSync,
  clusterArrive,
  clusterRank,
  clusterSync,
  clusterWait,
  commitGlobal,
  commitGroup,
  commitShared,
  copyAsync,
  debugBreak,
  debugPrint,
  full,
  gridSize,
  kernel,
  prefetch,
  semaphore,
  smem,
  waitGroup,
  wgmma,
  zeros,
} from "./index.ts";

test("copies, groups and fences", () => {
  const definition = kernel(
    {
      name: "k",
      grid: { i: 4 },
      cluster: { i: 2 },
      inputs: { x: tensor(bf16, [64, 64]) },
      inouts: { y: tensor(bf16, [64, 64]) },
      scratch: { tile: smem(bf16, [64, 64]), full: barrier({ count: 2 }), one: barrier() },
    },
    ({ i, x, y, tile, full, one }) => {
      prefetch(x);
      copyAsync(x, tile, { barrier: full.at(i), fill: "nan", multicast: ["i"] });
      copyAsync(x, tile, { barrier: one.at(0) });
      full.at(1).wait({ parity: 0 });
      commitShared();
      copyAsync(tile, y, { reduction: "add" });
      commitGroup();
      waitGroup(1, { read: true });
      waitGroup();
      commitGlobal();
      one.arrive({ peer: clusterRank("i") });
    },
  );
  expect(bodyText(definition)).toMatchInlineSnapshot(`
    "%2 = block_index {axis = "i"} : i32
    %3 = alloc {space = smem, dtype = bf16, shape = [64, 64], name = "tile"} : ref<smem, bf16, [64, 64]>
    %4 = alloc_barrier {count = 2, arrivals = 1, name = "full"} : barrier<2, arrivals=1>
    %5 = alloc_barrier {count = 1, arrivals = 1, name = "one"} : barrier<1, arrivals=1>
    prefetch %0
    copy_async %0, %3 barrier(%4) index(%2) {fill = nan, multicast = ["i"], reduction = none}
    copy_async %0, %3 barrier(%5) {fill = zero, multicast = [], reduction = none}
    %6 = constant {value = 1, dtype = i32, shape = []} : i32
    %7 = constant {value = 0, dtype = i32, shape = []} : i32
    barrier_wait %4 index(%6) parity(%7)
    proxy_fence {space = smem}
    copy_async %3, %1 {fill = zero, multicast = [], reduction = add}
    commit_group
    wait_group {pending = 1, read = true}
    wait_group {pending = 0, read = false}
    proxy_fence {space = gmem}
    %8 = cluster_rank {axis = "i"} : i32
    barrier_arrive %5 peer(%8)
    yield"
  `);
});

test("products with a tile in registers and initial sums", () => {
  const definition = kernel({ name: "k", scratch: { b: smem(bf16, [16, 8]) } }, ({ b }) => {
    const start = accumulator(f32, [64, 8], full(f32, [64, 8], 1));
    wgmma(start, zeros(bf16, [64, 16]), b)
      .wait()
      .mul(2);
  });
  expect(bodyText(definition)).toMatchInlineSnapshot(`
    "%0 = alloc {space = smem, dtype = bf16, shape = [16, 8], name = "b"} : ref<smem, bf16, [16, 8]>
    %1 = constant {value = 1, dtype = f32, shape = [64, 8]} : tile<f32, [64, 8]>
    %2 = accumulator initial(%1) {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
    %3 = constant {value = 0, dtype = bf16, shape = [64, 16]} : tile<bf16, [64, 16]>
    %4 = wgmma %2, %3, %0 : inflight<f32, [64, 8]>
    %5 = wgmma_wait %4 {pending = 0, gives = tile} : tile<f32, [64, 8]>
    %6 = constant {value = 2, dtype = f32, shape = [64, 8]} : tile<f32, [64, 8]>
    %7 = binary %5, %6 {fn = mul} : tile<f32, [64, 8]>
    yield"
  `);
});

test("products that begin sums in registers that nobody has written", () => {
  const scratch = { a: smem(bf16, [64, 16]), b: smem(bf16, [16, 8]) };
  const definition = kernel({ name: "k", grid: { i: 2 }, scratch }, ({ i, a, b }) => {
    wgmma(accumulator(f32, [64, 8], "anything"), a, b, { adds: i.lt(0) }).wait();
  });
  expect(bodyText(definition)).toContain(
    "= accumulator {dtype = f32, shape = [64, 8], anything = true} : inflight<f32, [64, 8]>",
  );
});

test("products that take the place of sums", () => {
  const scratch = { a: smem(bf16, [64, 16]), b: smem(bf16, [16, 8]) };
  const definition = kernel({ name: "k", grid: { i: 2 }, scratch }, ({ i, a, b }) => {
    wgmma(accumulator(f32, [64, 8]), a, b, { adds: i.gt(0) }).wait();
  });
  expect(bodyText(definition)).toMatchInlineSnapshot(`
    "%0 = block_index {axis = "i"} : i32
    %1 = alloc {space = smem, dtype = bf16, shape = [64, 16], name = "a"} : ref<smem, bf16, [64, 16]>
    %2 = alloc {space = smem, dtype = bf16, shape = [16, 8], name = "b"} : ref<smem, bf16, [16, 8]>
    %3 = accumulator {dtype = f32, shape = [64, 8]} : inflight<f32, [64, 8]>
    %4 = constant {value = 0, dtype = i32, shape = []} : i32
    %5 = compare %0, %4 {predicate = gt} : bool
    %6 = wgmma %3, %1, %2 adds(%5) : inflight<f32, [64, 8]>
    %7 = wgmma_wait %6 {pending = 0, gives = tile} : tile<f32, [64, 8]>
    yield"
  `);
});

test("semaphores and meetings", () => {
  const definition = kernel(
    { name: "k", grid: { i: 4 }, cluster: { i: 2 }, scratch: { done: semaphore([4, 2]) } },
    ({ i, done }) => {
      done.at(i).at(1).signal();
      done.at(i, 0).wait(gridSize("i"), { decrement: true });
      blockSync();
      clusterArrive();
      clusterWait();
      clusterSync();
    },
  );
  expect(bodyText(definition)).toMatchInlineSnapshot(`
    "%0 = block_index {axis = "i"} : i32
    %1 = alloc_semaphore {shape = [4, 2], name = "done"} : semaphore<[4, 2]>
    %2 = constant {value = 1, dtype = i32, shape = []} : i32
    semaphore_signal %1, %2 indices(%0, %2)
    %3 = grid_size {axis = "i"} : i32
    %4 = constant {value = 0, dtype = i32, shape = []} : i32
    semaphore_wait %1, %3 indices(%0, %4) {decrement = true}
    block_sync
    cluster_arrive
    cluster_wait
    cluster_arrive
    cluster_wait
    yield"
  `);
});

test("debugging", () => {
  const definition = kernel({ name: "k", inputs: { x: tensor(f32, [4]) } }, ({ x }) => {
    const tile = x.load();
    debugPrint("sum {} of {}", tile.sum(), tile);
    assert(tile.isFinite(), "x is finite");
    debugBreak({ tile });
    debugBreak();
  });
  expect(bodyText(definition)).toMatchInlineSnapshot(`
    "%1 = load %0 : tile<f32, [4]>
    %2 = reduce %1 {fn = sum, axes = [0]} : f32
    debug_print %2, %1 {format = "sum {} of {}"}
    %3 = classify %1 {fn = is_finite} : tile<bool, [4]>
    assert %3 {message = "x is finite"}
    debug_break %1 {names = ["tile"]}
    debug_break {names = []}
    yield"
  `);
});
