/** Works and estimates of kernels small enough to be counted by hand. */
import { describe, expect, test } from "vitest";
import { defaultTarget } from "../../targets/target.ts";
import { parseModule } from "../parser/parser.ts";
import { launchEstimate, launchWork, ratesOf } from "./index.ts";
import type { LaunchWork } from "./index.ts";

const n = 1 << 20;
const rates = ratesOf(defaultTarget);

/** A kernel over two arrays of 2^20 floats whose blocks begin at %from, each 128 elements after the one before. */
function kernelOf(lines: string, blocks: number) {
  const [kernel] = parseModule(`kernel @k grid [i = ${blocks}] threads [main] (
    input %x "x": ref<gmem, f32, [${n}]>,
    input %rows "rows": ref<gmem, i32, [${n}]>,
    output %y "y": ref<gmem, f32, [${n}]>
  ) {
    %i = block_index {axis = "i"} : i32
    %0 = constant {value = 0, dtype = i32, shape = []} : i32
    %1 = constant {value = 1, dtype = i32, shape = []} : i32
    %128 = constant {value = 128, dtype = i32, shape = []} : i32
    %from = binary %i, %128 {fn = mul} : i32
    %own = slice_ref %y offsets(%from) {sizes = [128], dropped = []} : ref<gmem, f32, [128]>
    %lane = iota {dtype = i32, shape = [128], axis = 0} : tile<i32, [128]>
    %start = broadcast %from {shape = [128], axes = []} : tile<i32, [128]>
    %place = binary %lane, %start {fn = add} : tile<i32, [128]>
    ${lines}
    store %own, %value
    yield
  }`).kernels;
  return kernel ?? expect.fail("the text has a kernel");
}

function workOf(lines: string, blocks = n / 128): LaunchWork {
  const each = { instructions: 1, special: 0 };
  return launchWork(kernelOf(lines, blocks), new Map(), () => each, rates.l2);
}

/** What a launch moves of its arrays, in the order of its parameters. */
function traffic({ arrays }: LaunchWork): readonly (readonly number[])[] {
  return [...arrays.values()].map(({ used, read, written }) => [used, read, written]);
}

const picked = (places: string): string =>
  `%value = load %x indices(${places}) {indexed = [0]} : tile<f32, [128]>`;

describe("what accesses touch", () => {
  test("neighbours fill their sectors", () => {
    const [x, rows, y] = traffic(workOf(picked("%place")));
    expect(x).toEqual([4 * n, 4 * n, 0]);
    expect(rows).toEqual([0, 0, 0]);
    expect(y).toEqual([0, 0, 4 * n]);
  });

  test("a stride of 8 elements takes a sector each", () => {
    const lines = `%8 = constant {value = 8, dtype = i32, shape = [128]} : tile<i32, [128]>
      %far = binary %place, %8 {fn = mul} : tile<i32, [128]>
      ${picked("%far")}`;
    // The 128 elements of a block in the middle of 1024 are 1024 elements apart from end to end.
    const [x] = traffic(workOf(lines, 1024));
    expect(x).toEqual([4 * 128 * 1024, 32 * 128 * 1024, 0]);
  });

  test("the same element for all lanes is one sector", () => {
    const lines = `%all = broadcast %i {shape = [128], axes = []} : tile<i32, [128]>
      ${picked("%all")}`;
    expect(traffic(workOf(lines, 10))[0]).toEqual([10 * 4, 10 * 32, 0]);
  });

  test("places that are read from memory lie anywhere within their bounds", () => {
    const lines = `%to = load %rows indices(%place) {indexed = [0]} : tile<i32, [128]>
      ${picked("%to")}`;
    const [x, rows] = traffic(workOf(lines, 100));
    expect(rows).toEqual([4 * 12_800, 4 * 12_800, 0]);
    expect(x?.[1]).toBeGreaterThan(0.98 * 32 * 12_800);
  });

  test("what is outside of the array is not touched", () => {
    const end = `%end = constant {value = ${n - 64}, dtype = i32, shape = []} : i32
      %window = slice_ref %x offsets(%end) {sizes = [128], dropped = []} : ref<gmem, f32, [128]>
      %value = load %window : tile<f32, [128]>`;
    expect(traffic(workOf(end, 1))[0]).toEqual([4 * 64, 4 * 64, 0]);
  });

  test("a loop over neighbours touches each sector once", () => {
    const lines = `%trips = constant {value = 64, dtype = i32, shape = []} : i32
      %64 = constant {value = 64, dtype = i32, shape = [128]} : tile<i32, [128]>
      %first = binary %place, %64 {fn = mul} : tile<i32, [128]>
      %zero = constant {value = 0, dtype = f32, shape = [128]} : tile<f32, [128]>
      %value = loop %0, %trips, %1 initial(%zero) body(%k: i32, %sum: tile<f32, [128]>) {
        %step = broadcast %k {shape = [128], axes = []} : tile<i32, [128]>
        %at = binary %first, %step {fn = add} : tile<i32, [128]>
        %read = load %x indices(%at) {indexed = [0]} : tile<f32, [128]>
        %next = binary %sum, %read {fn = add} : tile<f32, [128]>
        yield %next
      } : tile<f32, [128]>`;
    const work = workOf(lines, 64);
    const [used = 0, read = 0] = traffic(work)[0] ?? [];
    expect(used).toBe(64 * 64 * 128 * 4);
    // Of 8 turns one leaves the sectors of the turn before.
    expect(read).toBe(used);
    expect(work.unknownLoops).toBe(0);
  });
});

describe("estimates", () => {
  const estimate = (lines: string, blocks?: number) =>
    launchEstimate(workOf(lines, blocks), defaultTarget, rates);

  test("a copy takes what its bytes take", () => {
    const { seconds, bound } = estimate(picked("%place"));
    expect(bound).toBe("launch");
    expect(seconds).toBeCloseTo(2.5e-6 + (8 * n) / 4.2e12, 7);
  });

  const walk = (
    trips: string,
  ): string => `%zero = constant {value = 0, dtype = i32, shape = [128]} : tile<i32, [128]>
    %last = loop %0, ${trips}, %1 initial(%zero) body(%k: i32, %at: tile<i32, [128]>) {
      %next = load %rows indices(%at) {indexed = [0]} : tile<i32, [128]>
      yield %next
    } : tile<i32, [128]>
    ${picked("%last")}`;
  const constant = (value: number): string =>
    `%trips = constant {value = ${value}, dtype = i32, shape = []} : i32\n`;

  test("lanes that follow a list wait for each of its elements", () => {
    const { seconds, bound } = estimate(constant(4000) + walk("%trips"), 1);
    expect(bound).toBe("latency");
    // 4,000 times the latency of the cache, which holds the array.
    expect(seconds).toBeGreaterThan(500e-6);
    expect(seconds).toBeLessThan(1500e-6);
    const twice = estimate(constant(8000) + walk("%trips"), 1).seconds;
    expect(twice / seconds).toBeCloseTo(2, 1);
  });

  test("a loop whose turns are data counts once, and is told of", () => {
    const lines = `%one = slice_ref %rows offsets(%i) {sizes = [1], dropped = [0]} : ref<gmem, i32, []>
      %trips = load %one : i32
      ${walk("%trips")}`;
    const work = workOf(lines, 4);
    expect(work.unknownLoops).toBe(1);
    const { seconds } = launchEstimate(work, defaultTarget, rates);
    expect(seconds).toBeLessThan(5e-6);
  });

  test("few blocks leave processors idle", () => {
    const heavy = (blocks: number) => {
      const costly = { instructions: 4000, special: 0 };
      const kernel = kernelOf(
        `${picked("%place")}\n%more = binary %value, %value {fn = add} : tile<f32, [128]>`,
        blocks,
      );
      const work = launchWork(kernel, new Map(), () => costly, rates.l2);
      return launchEstimate(work, defaultTarget, rates).parts.instructions;
    };
    // One block or 132 take as long, 133 twice as long.
    expect(heavy(132)).toBeCloseTo(heavy(1), 9);
    expect(heavy(133)).toBeCloseTo(2 * heavy(1), 9);
  });
});
