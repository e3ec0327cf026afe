/** Time and memory of the shadow grow with the number of accesses, not with who came before. */
import { describe, expect, test } from "vitest";
import { expectWithin } from "../../test/support/processor-time.ts";
import type { AnyOp } from "../ir/node.ts";
import { unknownLocation } from "../support/location.ts";
import type { AccessMode } from "./access.ts";
import { Clock } from "./clock.ts";
import { Knowledge, Timeline } from "./knowledge.ts";
import { ShadowMemory } from "./shadow.ts";

const op: AnyOp = {
  kind: "block_sync",
  operands: {},
  attributes: {},
  regions: {},
  results: [],
  location: unknownLocation,
};
const place = { thread: "main", axes: [], block: [], iterations: [] };

function begin(shadow: ShadowMemory, agent: number, mode: AccessMode, knowledge: Knowledge) {
  return shadow.begin({ agent, count: 1, mode, proxy: "generic", op, place, member: 0 }, knowledge);
}

describe("shadow memory", () => {
  test("touches a granule in nanoseconds", () => {
    const width = 64;
    const rows = 4096;
    const shadow = new ShadowMemory({ granules: width * rows, space: "smem", initialised: true });
    let next = 0;
    const thread = new Timeline(() => next++);
    const pass = (mode: AccessMode) => {
      const cursor = begin(shadow, thread.agent, mode, thread.knowledge);
      for (let row = 0; row < rows; row++) cursor.run(row * width, width);
      return cursor.conflicts.length;
    };
    pass("write");
    // 64 passes over 262144 granules: 16.8 million touches.
    expectWithin(500, () => {
      for (let round = 0; round < 32; round++)
        for (const mode of ["write", "read"] as const) expect(pass(mode)).toBe(0);
    });
  });

  test("takes many unordered readers, and a writer ordered after all", () => {
    const readers = 20_000;
    // Readers times readers would take minutes.
    expectWithin(10_000, () => {
      const shadow = new ShadowMemory({ granules: 64, space: "gmem", initialised: true });
      let all = Clock.empty;
      for (let agent = 0; agent < readers; agent++) {
        const own = Clock.empty.with(agent, 1);
        begin(shadow, agent, "read", new Knowledge(own, Clock.empty, Clock.empty)).run(0, 64);
        all = all.with(agent, 1);
      }
      const writer = begin(shadow, readers, "write", new Knowledge(all, Clock.empty, Clock.empty));
      writer.run(0, 64);
      expect(writer.conflicts).toEqual([]);
    });
  });

  test("remembers of each agent the last read only", () => {
    const granules = 4096;
    const shadow = new ShadowMemory({ granules, space: "smem", initialised: true });
    let next = 0;
    const [left, right, writer] = [0, 1, 2].map(() => new Timeline(() => next++));
    if (left === undefined || right === undefined || writer === undefined) throw new Error();
    for (let round = 0; round < 10_000; round++)
      for (const { agent, knowledge } of [left, right])
        begin(shadow, agent, "read", knowledge).run(0, granules);
    for (const reader of [left, right]) writer.acquire(reader.publish());
    // A write compares with all that is remembered: 80 million comparisons if that were every read.
    expectWithin(400, () => {
      for (let granule = 0; granule < granules; granule++)
        begin(shadow, writer.agent, "write", writer.knowledge).run(granule, 1);
    });
  });

  test("stays as small as the memory is", () => {
    const shadow = new ShadowMemory({ granules: 256, space: "smem", initialised: true });
    let next = 0;
    const thread = new Timeline(() => next++);
    let conflicts = 0;
    for (let round = 0; round < 20_000; round++) {
      const mode = round % 4 === 0 ? "write" : "read";
      const cursor = begin(shadow, thread.agent, mode, thread.knowledge);
      cursor.run((round * 37) % 192, 64);
      conflicts += cursor.conflicts.length;
    }
    expect(conflicts).toBe(0);
    expect(shadow.stateCount).toBeLessThan(2048);
  });

  test("finds a race although the states were collected in between", () => {
    const shadow = new ShadowMemory({ granules: 64, space: "smem", initialised: true });
    let next = 0;
    const [first, second, stranger] = [0, 1, 2].map(() => new Timeline(() => next++));
    if (first === undefined || second === undefined || stranger === undefined) throw new Error();
    begin(shadow, first.agent, "write", first.knowledge).run(0, 32);
    for (let round = 0; round < 10_000; round++)
      begin(shadow, second.agent, "write", second.knowledge).run(32, 32);
    const cursor = begin(shadow, stranger.agent, "read", stranger.knowledge);
    cursor.run(16, 1);
    expect(cursor.conflicts).toMatchObject([{ kind: "race", earlier: { agent: first.agent } }]);
  });
});
