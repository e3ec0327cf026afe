import { describe, expect, test } from "vitest";
import { TilewrightError } from "../../support/diagnostics.ts";
import { locationAt } from "../../support/location.ts";
import { tensor } from "../evaluate/value.ts";
import type { Tensor } from "../evaluate/value.ts";
import type { Collective, CollectiveCall, Groups } from "./collective.ts";
import { groupsOfPairs } from "./collective.ts";
import { RankEndpoint } from "./endpoint.ts";
import { localLinks } from "./link.ts";

function ranks(size: number, timeout = 5000): readonly RankEndpoint[] {
  const connect = localLinks(size);
  return Array.from(
    { length: size },
    (_, rank) => new RankEndpoint({ rank, size, connect: connect(rank), timeout }),
  );
}

const f32 = (...values: number[]): Tensor =>
  tensor("f32", [values.length], Float32Array.from(values));

const everyone = (size: number): Groups => [Array.from({ length: size }, (_, rank) => rank)];
const sum: Collective = { kind: "all_reduce", reduction: "add" };

/** What each rank gets of a call with its own value. */
async function called(
  collective: Collective,
  values: readonly (readonly Tensor[])[],
  groups: Groups = everyone(values.length),
): Promise<readonly (readonly number[])[]> {
  const all = ranks(values.length);
  const results = await Promise.all(
    all.map((each, rank) => each.run({ collective, groups }, values[rank] ?? [])),
  );
  return results.map(([first]) => Array.from(first?.data ?? [], Number));
}

/** How each rank ends. */
async function ends(calls: readonly Promise<unknown>[]): Promise<readonly string[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((each) => {
    if (each.status === "fulfilled") return "passed";
    const reason: unknown = each.reason;
    return reason instanceof TilewrightError ? `${reason.code}: ${reason.found}` : String(reason);
  });
}

const at = (line: number, collective: Collective, groups: Groups): CollectiveCall => ({
  collective,
  groups,
  location: locationAt("train.ts", line, 3),
});

describe("collectives of ranks", () => {
  const four = [f32(1, 2, 3, 4), f32(10, 20, 30, 40), f32(100, 200, 300, 400), f32(0.5, 0, 0, 0)];
  const each = four.map((value) => [value]);

  test("all-reduce sums in the order of the group, in one shot and by shares", async () => {
    expect(await called(sum, each)).toEqual(four.map(() => [111.5, 222, 333, 444]));
    const large = Array.from({ length: 5 }, (_, rank) => [
      f32(...Array.from({ length: 10_007 }, (_each, i) => Math.sin(i + rank) * 2 ** (i % 40))),
    ]);
    const order = [3, 0, 4, 1, 2];
    const results = await called(sum, large, [order]);
    const expected = Array.from({ length: 10_007 }, (_, i) =>
      order
        .map((rank) => Number(large[rank]?.[0]?.data[i]))
        .reduce((left, right) => Math.fround(left + right)),
    );
    for (const result of results) expect(result).toEqual(expected);
  });

  test("gather, scatter, exchange, permute, broadcast and reduce", async () => {
    expect(
      await called({ kind: "all_gather", axis: 0 }, each, [
        [1, 0],
        [2, 3],
      ]),
    ).toEqual([
      [10, 20, 30, 40, 1, 2, 3, 4],
      [10, 20, 30, 40, 1, 2, 3, 4],
      [100, 200, 300, 400, 0.5, 0, 0, 0],
      [100, 200, 300, 400, 0.5, 0, 0, 0],
    ]);
    const scatter: Collective = { kind: "reduce_scatter", axis: 0, reduction: "add" };
    expect(await called(scatter, each)).toEqual([[111.5], [222], [333], [444]]);
    const exchange: Collective = { kind: "all_to_all", split: 0, concat: 0 };
    expect(await called(exchange, each, [[3, 0, 1, 2]])).toEqual([
      [0, 2, 20, 200],
      [0, 3, 30, 300],
      [0, 4, 40, 400],
      [0.5, 1, 10, 100],
    ]);
    const pairs = [[0, 1], [2, 2]]; // prettier-ignore
    expect(await called({ kind: "collective_permute", pairs }, each, groupsOfPairs(pairs))).toEqual(
      [
        [0, 0, 0, 0],
        [1, 2, 3, 4],
        [100, 200, 300, 400],
        [0, 0, 0, 0],
      ],
    );
    const first: Collective = { kind: "collective_broadcast", hasRoots: false };
    expect(await called(first, each, [[1, 0]])).toEqual([
      [10, 20, 30, 40],
      [10, 20, 30, 40],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ]);
    expect(await called({ kind: "collective_reduce", reduction: "maximum" }, each)).toEqual([
      [100, 200, 300, 400],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
      [0, 0, 0, 0],
    ]);
  });

  test("a world of one, no groups, and arrays without elements", async () => {
    expect(await called(sum, [[f32(3)]])).toEqual([[3]]);
    expect(await called(sum, each, [])).toEqual(four.map(() => [0, 0, 0, 0]));
    expect(await called(sum, [[f32()], [f32()]])).toEqual([[], []]);
  });

  test("what does not fit is refused in all ranks", async () => {
    const scatter: Collective = { kind: "reduce_scatter", axis: 0, reduction: "add" };
    const [first] = await ends(
      ranks(3).map((rank) => rank.run(at(1, scatter, everyone(3)), [f32(1, 2)])),
    );
    expect(first).toBe("TW9705: 2");
    const bits: Collective = { kind: "all_reduce", reduction: "xor" };
    const ended = await ends(ranks(2).map((rank) => rank.run(at(1, bits, everyone(2)), [f32(1)])));
    expect(ended).toEqual(["TW9705: xor of f32", "TW9705: xor of f32"]);
    const roots: Collective = { kind: "collective_broadcast", hasRoots: true };
    const root = tensor("i32", [1], Int32Array.of(2));
    expect(
      await ends(ranks(2).map((rank) => rank.run(at(1, roots, everyone(2)), [f32(1), root]))),
    ).toEqual(["TW9705: 2", "TW9705: 2"]);
  });
});

describe("what goes wrong between ranks", () => {
  test("another call, type or size is told at once, in all ranks, with both lines", async () => {
    const gather: Collective = { kind: "all_gather", axis: 0 };
    const found =
      "TW9701: rank 0 at call 1 of ranks 0, 1, all_reduce (add) of tensor<1xf32>, train.ts:1:3; " +
      "rank 1 at call 1 of ranks 0, 1, all_gather (axis 0) of tensor<1xf32>, train.ts:2:3";
    const [left, right] = ranks(2) as [RankEndpoint, RankEndpoint];
    expect(
      await ends([
        left.run(at(1, sum, everyone(2)), [f32(1)]),
        right.run(at(2, gather, everyone(2)), [f32(1)]),
      ]),
    ).toEqual([found, found]);
    const [a, b, c] = ranks(3) as [RankEndpoint, RankEndpoint, RankEndpoint];
    const outcomes = await ends([
      a.run(at(1, sum, everyone(3)), [f32(1)]),
      b.run(at(1, sum, everyone(3)), [f32(1, 2)]),
      c.run(at(1, sum, everyone(3)), [f32(1)]),
    ]);
    for (const outcome of outcomes) expect(outcome).toMatch(/^TW9701: .*rank 1 at .*2xf32/);
  });

  test("groups in another order are told at once", async () => {
    const [left, right] = ranks(2) as [RankEndpoint, RankEndpoint];
    const outcomes = await ends([
      left.run(at(1, sum, [[0, 1]]), [f32(1)]),
      right.run(at(7, sum, [[1, 0]]), [f32(1)]),
    ]);
    for (const outcome of outcomes) expect(outcome).toMatch(/^TW9701: .*train\.ts:1:3.*7:3/);
  });

  test("programs that differ are told before the first step", async () => {
    const outcomes = await ends(
      ranks(3).map((rank) => rank.agree(`program @main ${rank.rank === 2 ? "b" : "a"}`)),
    );
    for (const outcome of outcomes) expect(outcome).toMatch(/^TW9701: .*rank 2 at .*main b/);
  });

  test("who waits too long says where all are", async () => {
    const [a, b, c] = ranks(3, 50) as [RankEndpoint, RankEndpoint, RankEndpoint];
    const outcomes = await ends([
      a.run(at(4, sum, everyone(3)), [f32(1)]),
      b.run(at(4, sum, everyone(3)), [f32(1)]),
    ]);
    for (const outcome of outcomes) {
      expect(outcome).toContain("TW9702");
      expect(outcome).toMatch(/: rank 0 waits at call 1 of ranks 0, 1, 2, all_reduce/);
      expect(outcome).toMatch(/train\.ts:4:3, for 0\.\d s; .*rank 2 has called nothing yet$/);
    }
    // Too late: the call has failed for all.
    expect(await ends([c.run(at(4, sum, everyone(3)), [f32(1)])])).toEqual([outcomes[0]]);
  });

  test("a late rank is no error", async () => {
    const [a, b] = ranks(2) as [RankEndpoint, RankEndpoint];
    const early = a.run(at(1, sum, everyone(2)), [f32(1)]);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await b.run(at(1, sum, everyone(2)), [f32(2)]);
    expect((await early)[0]?.data[0]).toBe(3);
    expect(a.flightRecord.map(({ ended }) => ended !== undefined)).toEqual([true]);
  });

  test("a rank that ends, fails or is stopped ends the others", async () => {
    const [a, b] = ranks(2) as [RankEndpoint, RankEndpoint];
    const waiting = a.run(at(1, sum, everyone(2)), [f32(1)]);
    b.close();
    expect(await ends([waiting])).toEqual(["TW9703: rank 1, which has ended its work"]);
    expect(await ends([b.run(at(1, sum, everyone(2)), [f32(1)])])).toEqual([
      "TW9704: one that was closed",
    ]);
    const [c, d] = ranks(2) as [RankEndpoint, RankEndpoint];
    const stopped = c.run(at(1, sum, everyone(2)), [f32(1)]);
    d.abort(new Error("no data"));
    expect(await ends([stopped])).toEqual(["TW9703: Error: no data"]);
  });

  test("groups of two ranks that wait for each other crosswise are told at once", async () => {
    const [a, b, c] = ranks(3) as [RankEndpoint, RankEndpoint, RankEndpoint];
    const outcomes = await ends([
      a.run(at(1, sum, [[0, 1]]), [f32(1)]),
      b.run(at(2, sum, [[0, 1, 2]]), [f32(1)]),
      c.run(at(2, sum, [[0, 1, 2]]), [f32(1)]),
    ]);
    for (const outcome of outcomes) expect(outcome).toMatch(/^TW9701: rank 0 at .*; rank [12] at/);
  });
});
