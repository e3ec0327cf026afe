import { describe, expect, test } from "vitest";
import { parseModule } from "../parser/parser.ts";
import { kernelCost } from "./index.ts";

function kernelOf(text: string) {
  const [kernel] = parseModule(text).kernels;
  return kernel ?? expect.fail("the text has a kernel");
}

const noDimensions = new Map<string, number>();
const none = { read: 0, written: 0 };
const noProducts = { f64: 0, f32: 0, tf32: 0, half: 0, byte: 0 };

/** A kernel of one block, with some constants and a window of 8 floats. */
function body(lines: string, threads = "main", warps = "") {
  return kernelOf(`kernel @k grid [i = 1] threads [${threads}]${warps} (
    inout %x "x": ref<gmem, f32, [8]>,
    scalar %flag "flag": bool,
    scalar %count "count": i32
  ) {
    %0 = constant {value = 0, dtype = i32, shape = []} : i32
    %1 = constant {value = 1, dtype = i32, shape = []} : i32
    %10 = constant {value = 10, dtype = i32, shape = []} : i32
    %tile = load %x : tile<f32, [8]>
    ${lines}
    yield
  }`);
}

/** The flops that `lines` cost. */
function flops(lines: string, threads?: string): number {
  return kernelCost(body(lines, threads), noDimensions).flops;
}

test("axpy: two flops an element, two arrays read and one written", () => {
  const axpy = kernelOf(`kernel @axpy dimensions [n] grid [i = ceildiv(n, 1024)] threads [main] (
    input %x "x": ref<gmem, f32, [n]>,
    input %y "y": ref<gmem, f32, [n]>,
    output %out "out": ref<gmem, f32, [n]>
  ) {
    %i = block_index {axis = "i"} : i32
    %size = constant {value = 1024, dtype = i32, shape = []} : i32
    %from = binary %i, %size {fn = mul} : i32
    %a = slice_ref %x offsets(%from) {sizes = [1024], dropped = []} : ref<gmem, f32, [1024]>
    %b = slice_ref %y offsets(%from) {sizes = [1024], dropped = []} : ref<gmem, f32, [1024]>
    %c = slice_ref %out offsets(%from) {sizes = [1024], dropped = []} : ref<gmem, f32, [1024]>
    %two = constant {value = 2, dtype = f32, shape = [1024]} : tile<f32, [1024]>
    %xs = load %a : tile<f32, [1024]>
    %ys = load %b : tile<f32, [1024]>
    %scaled = binary %xs, %two {fn = mul} : tile<f32, [1024]>
    %sum = binary %scaled, %ys {fn = add} : tile<f32, [1024]>
    store %c, %sum
    yield
  }`);
  const n = 1 << 20;
  expect(kernelCost(axpy, new Map([["n", n]]))).toEqual({
    flops: 2 * n,
    products: noProducts,
    transcendentals: 0,
    bytes: { gmem: { read: 8 * n, written: 4 * n }, smem: none },
    memoryBytes: 12 * n,
    unknownLoops: [],
  });
});

test("matmul: 2mnk flops, rows and columns read once for each block", () => {
  const [m, n, k, tile] = [256, 512, 128, 64];
  const matmul =
    kernelOf(`kernel @matmul dimensions [k] grid [i = ${m / tile}, j = ${n / tile}] threads [main] (
    input %a "a": ref<gmem, bf16, [${m}, k]>,
    input %b "b": ref<gmem, bf16, [k, ${n}]>,
    output %c "c": ref<gmem, f32, [${m}, ${n}]>
  ) {
    %0 = constant {value = 0, dtype = i32, shape = []} : i32
    %32 = constant {value = 32, dtype = i32, shape = []} : i32
    %k = size {of = k} : i32
    %zero = constant {value = 0, dtype = f32, shape = [64, 64]} : tile<f32, [64, 64]>
    %sum = loop %0, %k, %32 initial(%zero) body(%at: i32, %before: tile<f32, [64, 64]>) {
      %aw = slice_ref %a offsets(%0, %at) {sizes = [64, 32], dropped = []} : ref<gmem, bf16, [64, 32]>
      %bw = slice_ref %b offsets(%at, %0) {sizes = [32, 64], dropped = []} : ref<gmem, bf16, [32, 64]>
      %at1 = load %aw : tile<bf16, [64, 32]>
      %bt1 = load %bw : tile<bf16, [32, 64]>
      %after = dot %at1, %bt1 accumulator(%before) {dtype = f32, precision = native} : tile<f32, [64, 64]>
      yield %after
    } : tile<f32, [64, 64]>
    %cw = slice_ref %c offsets(%0, %0) {sizes = [64, 64], dropped = []} : ref<gmem, f32, [64, 64]>
    store %cw, %sum
    yield
  }`);
  const blocks = (m / tile) * (n / tile);
  expect(kernelCost(matmul, new Map([["k", k]]))).toEqual({
    flops: 2 * m * n * k,
    products: { ...noProducts, half: 2 * m * n * k },
    transcendentals: 0,
    bytes: { gmem: { read: blocks * 2 * tile * k * 2, written: 4 * m * n }, smem: none },
    // What another block has read comes from the cache.
    memoryBytes: 2 * m * k + 2 * k * n + 4 * m * n,
    unknownLoops: [],
  });
});

describe("how often ops run", () => {
  const negate = "%n = unary %tile {fn = neg} : tile<f32, [8]>";

  test("trips are rounded up, and none is none", () => {
    const loop = (bounds: string) => flops(`loop ${bounds} body(%i: i32) { ${negate} yield }`);
    expect(loop("%0, %10, %1")).toBe(80);
    expect(loop("%1, %10, %10")).toBe(8);
    expect(loop("%10, %0, %1")).toBe(0);
  });

  test("bounds are computed from constants and the grid", () => {
    const lines = `%g = grid_size {axis = "i"} : i32
      %s = binary %10, %10 {fn = mul} : i32
      %t = binary %s, %g {fn = sub} : i32
      loop %0, %t, %1 body(%i: i32) { ${negate} yield }`;
    expect(flops(lines)).toBe(99 * 8);
  });

  test("loops with unknown bounds count once and are listed", () => {
    const kernel = body(`loop %0, %count, %1 body(%i: i32) { ${negate} yield }
      while condition { yield %flag } body { %m = unary %tile {fn = abs} : tile<f32, [8]> yield }`);
    const cost = kernelCost(kernel, noDimensions);
    expect(cost.flops).toBe(16);
    expect(cost.unknownLoops.map(({ kind }) => kind)).toEqual(["loop", "while"]);
  });

  /** A kernel of some blocks whose program is `lines`; each `%n` is 8 flops. */
  const blocksOf = (blocks: number, lines: string) =>
    kernelCost(
      kernelOf(`kernel @k grid [i = ${blocks}] threads [main] (inout %x "x": ref<gmem, f32, [8]>) {
        %0 = constant {value = 0, dtype = i32, shape = []} : i32
        %1 = constant {value = 1, dtype = i32, shape = []} : i32
        %block = block_index {axis = "i"} : i32
        %blocks = grid_size {axis = "i"} : i32
        %tile = load %x : tile<f32, [8]>
        ${lines}
        yield
      }`),
      noDimensions,
    );

  test("tiles that blocks deal among themselves are all counted", () => {
    for (const [blocks, tiles] of [
      [132, 143],
      [7, 7],
      [132, 100],
      [4, 1000],
    ] as const) {
      const cost = blocksOf(
        blocks,
        `%tiles = constant {value = ${tiles}, dtype = i32, shape = []} : i32
         loop %block, %tiles, %blocks body(%at: i32) { ${negate} yield }`,
      );
      expect(cost).toMatchObject({ flops: 8 * tiles, unknownLoops: [] });
    }
  });

  test("a loop whose end is the counter of another is walked step by step", () => {
    const cost = blocksOf(
      3,
      `loop %0, %blocks, %1 body(%row: i32) {
         %end = binary %row, %block {fn = add} : i32
         loop %0, %end, %1 body(%column: i32) { ${negate} yield }
         yield
       }`,
    );
    const steps = [0, 1, 2].flatMap((block) => [0, 1, 2].map((row) => row + block));
    expect(cost.flops).toBe(8 * steps.reduce((sum, count) => sum + count));
    expect(cost.unknownLoops).toEqual([]);
  });

  test("branches on the block are taken by the blocks that take them", () => {
    const cost = blocksOf(
      10,
      `%first = compare %block, %1 {predicate = lt} : bool
       if %first then { ${negate} yield } otherwise { yield }
       %limit = select %first, %0, %1 : i32
       loop %0, %limit, %1 body(%i: i32) { %m = unary %tile {fn = abs} : tile<f32, [8]> yield }`,
    );
    expect(cost.flops).toBe(8 + 9 * 8);
  });

  test("of very many blocks an even sample is walked", () => {
    const cost = blocksOf(100_000, `loop %0, %block, %1 body(%i: i32) { ${negate} yield }`);
    const all = (8 * (100_000 * 99_999)) / 2;
    expect(Math.abs(cost.flops / all - 1)).toBeLessThan(0.01);
  });

  test("of unknown branches the costliest counts, of known ones the one taken", () => {
    const branches = `then { ${negate} yield } otherwise { yield }`;
    expect(flops(`if %flag ${branches}`)).toBe(8);
    const known = (value: boolean) =>
      flops(`%known = constant {value = ${value}, dtype = bool, shape = []} : bool
        if %known ${branches}`);
    expect([known(true), known(false)]).toEqual([8, 0]);
    expect(flops(`switch %10 cases { yield } cases { ${negate} yield }`)).toBe(8);
    expect(flops(`switch %0 cases { yield } cases { ${negate} yield }`)).toBe(0);
  });

  test("every program thread that runs an op pays for it, and every warp", () => {
    expect(flops(negate, "a, b, c")).toBe(24);
    expect(flops(`on_threads {threads = [0, 2]} body { ${negate} yield }`, "a, b, c")).toBe(16);
    const asked = `%thread = thread_index : i32
      %first = compare %thread, %0 {predicate = eq} : bool`;
    expect(
      flops(`${asked} if %first then { yield } otherwise { ${negate} yield }`, "a, b, c"),
    ).toBe(16);
    expect(flops(`warps body(%w: i32) { ${negate} yield }`)).toBe(32);
  });

  test("warps are as many as the kernel says, and one that works alone pays alone", () => {
    const alone = `%first = compare %w, %0 {predicate = eq} : bool
      if %first then { ${negate} yield } otherwise { yield }`;
    expect(flops(`warps body(%w: i32) { ${alone} yield }`)).toBe(8);
    const eight = body(`warps body(%w: i32) { ${negate} yield }`, "main", " warps 8");
    expect(kernelCost(eight, noDimensions).flops).toBe(64);
    const data = `warps body(%w: i32) { loop %w, %count, %1 body(%i: i32) { ${negate} yield } yield }`;
    expect(kernelCost(body(data), noDimensions).unknownLoops).toHaveLength(1);
  });
});

test("what single ops cost", () => {
  expect(flops("%r = fma %tile, %tile, %tile : tile<f32, [8]>")).toBe(16);
  expect(flops("%r = reduce %tile {fn = sum, axes = [0]} : f32")).toBe(7);
  expect(flops("%r = sort %tile {axis = 0, descending = false} : tile<f32, [8]>")).toBe(24);
  expect(flops("%r = binary %10, %10 {fn = add} : i32")).toBe(0);
  const exp = kernelCost(body("%r = unary %tile {fn = exp} : tile<f32, [8]>"), noDimensions);
  expect(exp).toMatchObject({ flops: 0, transcendentals: 8 });
});

test("copies pay on both sides, multicast for each receiver", () => {
  const kernel = kernelOf(`kernel @k grid [i = 4 cluster 2] threads [main] (
    input %x "x": ref<gmem, f32, [64]>
  ) {
    %s = alloc {space = smem, dtype = f32, shape = [64]} : ref<smem, f32, [64]>
    %b = alloc_barrier {count = 1, arrivals = 1} : barrier<1, arrivals=1>
    copy_async %x, %s barrier(%b) {fill = zero, multicast = ["i"], reduction = none}
    yield
  }`);
  expect(kernelCost(kernel, noDimensions).bytes).toEqual({
    gmem: { read: 4 * 256, written: 0 },
    smem: { read: 0, written: 4 * 2 * 256 },
  });
});
