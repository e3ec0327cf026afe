import { describe, expect, test } from "vitest";
import type { AnyOp } from "../ir/node.ts";
import { unknownLocation } from "../support/location.ts";
import type { Access, AccessMode, Proxy } from "./access.ts";
import { Clock } from "./clock.ts";
import { Knowledge, Timeline } from "./knowledge.ts";
import type { Epoch } from "./knowledge.ts";
import { ShadowMemory } from "./shadow.ts";
import type { Conflict } from "./shadow.ts";

const place = { thread: "main", axes: [], block: [], iterations: [] };

function newOp(): AnyOp {
  return {
    kind: "block_sync",
    operands: {},
    attributes: {},
    regions: {},
    results: [],
    location: unknownLocation,
  };
}

function accessBy(
  { agent, count }: Epoch,
  mode: AccessMode,
  options: { readonly op?: AnyOp; readonly proxy?: Proxy; readonly member?: number } = {},
): Access {
  return { agent, count, mode, proxy: "generic", op: newOp(), place, member: 0, ...options };
}

function memory(options: { granules?: number; initialised?: boolean } = {}): ShadowMemory {
  return new ShadowMemory({ granules: 16, space: "smem", initialised: true, ...options });
}

function touch(
  shadow: ShadowMemory,
  access: Access,
  knowledge: Knowledge,
  [start, length]: readonly [number, number] = [0, 1],
): readonly Conflict[] {
  const cursor = shadow.begin(access, knowledge);
  cursor.run(start, length);
  return cursor.conflicts;
}

function threads(): () => Timeline {
  let next = 0;
  return () => new Timeline(() => next++);
}

/** An access by a thread, now. */
function act(shadow: ShadowMemory, thread: Timeline, mode: AccessMode): readonly Conflict[] {
  return touch(shadow, accessBy(thread, mode), thread.knowledge);
}

const modes = ["read", "write", "atomic"] as const;
const pairs = modes.flatMap((first) => modes.map((second) => [first, second] as const));
const harmless = new Set(["read read", "atomic atomic"]);

describe("a pair of accesses", () => {
  test.each(pairs)("%s then %s by unordered agents", (first, second) => {
    const thread = threads();
    const shadow = memory();
    expect(act(shadow, thread(), first)).toEqual([]);
    const conflicts = act(shadow, thread(), second);
    if (harmless.has(`${first} ${second}`)) expect(conflicts).toEqual([]);
    else
      expect(conflicts).toMatchObject([
        { kind: "race", earlier: { mode: first }, current: { mode: second }, missing: "order" },
      ]);
  });

  test.each(pairs)("%s then %s by ordered agents", (first, second) => {
    const thread = threads();
    const shadow = memory();
    const [earlier, later] = [thread(), thread()];
    act(shadow, earlier, first);
    later.acquire(earlier.publish());
    expect(act(shadow, later, second)).toEqual([]);
  });

  test.each(pairs)("%s then %s by the same agent", (first, second) => {
    const shadow = memory();
    const thread = threads()();
    act(shadow, thread, first);
    expect(act(shadow, thread, second)).toEqual([]);
  });

  test("an access after the release is not covered by it", () => {
    const thread = threads();
    const shadow = memory();
    const [earlier, later] = [thread(), thread()];
    const published = earlier.publish();
    act(shadow, earlier, "write");
    later.acquire(published);
    expect(act(shadow, later, "read")).toHaveLength(1);
  });

  test("on different granules is none", () => {
    const thread = threads();
    const shadow = memory();
    const [left, right] = [thread(), thread()];
    expect(touch(shadow, accessBy(left, "write"), left.knowledge, [0, 8])).toEqual([]);
    expect(touch(shadow, accessBy(right, "write"), right.knowledge, [8, 8])).toEqual([]);
    expect(touch(shadow, accessBy(right, "read"), right.knowledge, [6, 4])).toMatchObject([
      { granule: 6 },
    ]);
  });
});

describe("several accesses since the last write", () => {
  test.each([
    ["read", "write"],
    ["read", "atomic"],
    ["atomic", "read"],
    ["atomic", "write"],
  ] as const)("%ss are all remembered for a later %s", (mode, final) => {
    for (let missed = 0; missed < 20; missed++) {
      const thread = threads();
      const shadow = memory();
      const many = Array.from({ length: 20 }, thread);
      for (const one of many) act(shadow, one, mode);
      const last = thread();
      many.forEach((one, position) => {
        if (position !== missed) last.acquire(one.publish());
      });
      const conflicts = act(shadow, last, final);
      expect(conflicts, `missed ${missed}`).toMatchObject([
        { kind: "race", earlier: { agent: many[missed]?.agent } },
      ]);
    }
  });

  test("a later atomic does not hide the reads from another", () => {
    const thread = threads();
    const shadow = memory();
    const [reader, ordered, other] = [thread(), thread(), thread()];
    act(shadow, reader, "read");
    ordered.acquire(reader.publish());
    expect(act(shadow, ordered, "atomic")).toEqual([]);
    expect(act(shadow, other, "atomic")).toMatchObject([{ earlier: { mode: "read" } }]);
  });

  test("a later read does not hide the write or the atomics from another", () => {
    for (const mode of ["write", "atomic"] as const) {
      const thread = threads();
      const shadow = memory();
      const [first, ordered, other] = [thread(), thread(), thread()];
      act(shadow, first, mode);
      ordered.acquire(first.publish());
      act(shadow, ordered, "read");
      expect(act(shadow, other, "read")).toMatchObject([{ earlier: { mode } }]);
    }
  });

  test("an ordered write replaces them", () => {
    const thread = threads();
    const shadow = memory();
    const [reader, writer, last] = [thread(), thread(), thread()];
    act(shadow, reader, "read");
    writer.acquire(reader.publish());
    act(shadow, writer, "write");
    // Knows the write alone, and with it everything before.
    const known = new Knowledge(
      last.knowledge.generic.with(writer.agent, writer.count),
      Clock.empty,
      Clock.empty,
    );
    expect(touch(shadow, accessBy(last, "write"), known)).toEqual([]);
  });

  test.each(modes)("after writes that race, a %s must come after both", (mode) => {
    const thread = threads();
    const shadow = memory();
    const [first, second, third] = [thread(), thread(), thread()];
    act(shadow, first, "write");
    expect(act(shadow, second, "write")).toHaveLength(1);
    third.acquire(second.publish());
    expect(act(shadow, third, mode)).toMatchObject([{ earlier: { agent: first.agent } }]);
    third.acquire(first.publish());
    expect(act(shadow, third, mode)).toEqual([]);
  });

  test("a write that comes after the last one forgets what that one raced with", () => {
    const thread = threads();
    const shadow = memory();
    const [first, second, third] = [thread(), thread(), thread()];
    act(shadow, first, "write");
    act(shadow, second, "write");
    third.acquire(second.publish());
    expect(act(shadow, third, "write")).toHaveLength(1);
    expect(act(shadow, third, "write")).toEqual([]);
  });
});

describe("proxies", () => {
  const operation = { agent: 1000, count: 1 };

  test("a copy needs the fence of the writer", () => {
    const thread = threads();
    const [writer, issuer] = [thread(), thread()];
    const shadow = memory();
    act(shadow, writer, "write");
    issuer.acquire(writer.publish());
    const copy = accessBy(operation, "read", { proxy: "async" });
    expect(touch(shadow, copy, issuer.knowledge)).toMatchObject([{ missing: "fence" }]);
  });

  test("the fence of the writer lets a copy go", () => {
    const thread = threads();
    const [writer, issuer] = [thread(), thread()];
    const shadow = memory();
    act(shadow, writer, "write");
    writer.fence("smem");
    issuer.acquire(writer.publish());
    const copy = accessBy(operation, "read", { proxy: "async" });
    expect(touch(shadow, copy, issuer.knowledge)).toEqual([]);
  });

  test("a fence for the other memory does not", () => {
    const thread = threads();
    for (const [space, fence] of [
      ["smem", "gmem"],
      ["gmem", "smem"],
    ] as const) {
      const writer = thread();
      const shadow = new ShadowMemory({ granules: 1, space, initialised: true });
      act(shadow, writer, "write");
      writer.fence(fence);
      const copy = accessBy(operation, "read", { proxy: "async" });
      expect(touch(shadow, copy, writer.knowledge)).toMatchObject([{ missing: "fence" }]);
    }
  });

  test("a fenced reader does not stand for earlier ones that have no fence", () => {
    const thread = threads();
    const readers = Array.from({ length: 40 }, thread);
    const shadow = memory();
    let handed = Knowledge.none;
    for (const reader of readers) {
      act(shadow, reader, "read");
      if (reader === readers.at(-1)) reader.fence("smem");
      handed = handed.join(reader.publish());
    }
    const copy = accessBy(operation, "write", { proxy: "async" });
    const conflicts = touch(shadow, copy, handed);
    expect(conflicts).toHaveLength(readers.length - 1);
    for (const conflict of conflicts) expect(conflict).toMatchObject({ missing: "fence" });
  });

  test.each(["write", "atomic"] as const)(
    "a copy that reads does not stand for a reader whose fence it lacks, when an asynchronous %s comes",
    (mode) => {
      const thread = threads();
      const [reader, issuer] = [thread(), thread()];
      const shadow = memory();
      act(shadow, reader, "read");
      issuer.acquire(reader.publish());
      const engine = thread();
      expect(touch(shadow, accessBy(engine, "read", { proxy: "async" }), issuer.publish())).toEqual(
        [],
      );
      issuer.finish(engine);
      const copy = accessBy(thread(), mode, { proxy: "async" });
      expect(touch(shadow, copy, issuer.knowledge)).toMatchObject([
        { earlier: { agent: reader.agent }, missing: "fence" },
      ]);
    },
  );

  test("the accesses of one operation do not conflict with each other", () => {
    const issuer = threads()();
    const shadow = memory();
    for (const mode of ["write", "read", "atomic", "write"] as const) {
      const access = accessBy(operation, mode, { proxy: "async" });
      expect(touch(shadow, access, issuer.knowledge)).toEqual([]);
    }
  });

  test("an ordinary access needs the completion of a copy", () => {
    const issuer = threads()();
    const shadow = memory();
    const copy = accessBy(operation, "write", { proxy: "async" });
    touch(shadow, copy, issuer.knowledge);
    expect(act(shadow, issuer, "read")).toMatchObject([{ missing: "order" }]);
    issuer.finish(operation);
    expect(act(shadow, issuer, "write")).toEqual([]);
  });
});

describe("contents", () => {
  test("reading what nobody wrote is reported once an access", () => {
    const thread = threads()();
    for (const mode of ["read", "atomic"] as const) {
      const shadow = memory({ initialised: false });
      touch(shadow, accessBy(thread, "write"), thread.knowledge, [4, 4]);
      const conflicts = touch(shadow, accessBy(thread, mode), thread.knowledge, [0, 16]);
      expect(conflicts).toMatchObject([{ kind: "uninitialised", granule: 0 }]);
      expect(touch(shadow, accessBy(thread, "read"), thread.knowledge, [4, 4])).toEqual([]);
    }
  });

  test("memory that comes with contents may be read", () => {
    const thread = threads()();
    expect(act(memory({ initialised: true }), thread, "read")).toEqual([]);
  });

  test("a write makes them; clearing forgets them and all accesses", () => {
    const thread = threads();
    const shadow = memory({ initialised: false });
    const [first, second] = [thread(), thread()];
    expect(act(shadow, first, "write")).toEqual([]);
    expect(act(shadow, first, "read")).toEqual([]);
    shadow.clear();
    expect(act(shadow, second, "read")).toMatchObject([{ kind: "uninitialised" }]);
    expect(shadow.stateCount).toBe(2);
  });

  test.each([
    ["write", 1, 2, ["union"]],
    ["atomic", 1, 2, ["union"]],
    ["write", 2, 2, []],
    ["write", 0, 2, []],
    ["write", 1, 0, []],
  ] as const)("after a %s to member %i, member %i reads: %j", (mode, written, read, kinds) => {
    const thread = threads()();
    const shadow = memory();
    const before = accessBy(thread, mode, { member: written });
    touch(shadow, before, thread.knowledge);
    const conflicts = touch(shadow, accessBy(thread, "read", { member: read }), thread.knowledge);
    expect(conflicts.map(({ kind }) => kind)).toEqual(kinds);
    if (kinds.length > 0) expect(conflicts).toMatchObject([{ earlier: before }]);
  });

  test("another member may be written over", () => {
    const thread = threads()();
    const shadow = memory();
    touch(shadow, accessBy(thread, "write", { member: 1 }), thread.knowledge);
    expect(touch(shadow, accessBy(thread, "write", { member: 2 }), thread.knowledge)).toEqual([]);
    expect(touch(shadow, accessBy(thread, "read", { member: 2 }), thread.knowledge)).toEqual([]);
  });
});

describe("a cursor", () => {
  test("reports a pair of ops once, different pairs apart", () => {
    const thread = threads();
    const shadow = memory();
    const op = newOp();
    for (let granule = 0; granule < 8; granule++) {
      const writer = thread();
      const same = accessBy(writer, "write", granule === 5 ? {} : { op });
      touch(shadow, same, writer.knowledge, [granule, 1]);
    }
    const reader = thread();
    const conflicts = touch(shadow, accessBy(reader, "read"), reader.knowledge, [0, 8]);
    expect(conflicts.map(({ granule }) => granule)).toEqual([0, 5]);
  });

  test.each(modes)("merges granules that differ no more after a %s", (mode) => {
    const thread = threads()();
    const shadow = memory();
    touch(shadow, accessBy(thread, "write"), thread.knowledge, [0, 16]);
    for (const start of [0, 3, 5, 8])
      touch(shadow, accessBy(thread, mode), thread.knowledge, [start, 6]);
    const before = shadow.stateCount;
    touch(shadow, accessBy(thread, mode), thread.knowledge, [0, 16]);
    expect(shadow.stateCount).toBe(before + 1);
  });

  test("may touch a granule twice", () => {
    const thread = threads();
    const operation = { agent: 1000, count: 1 };
    for (const mode of modes) {
      const shadow = memory();
      const access = accessBy(operation, mode, { proxy: "async" });
      const cursor = shadow.begin(access, thread().knowledge);
      for (let round = 0; round < 3; round++) cursor.run(0, 4);
      expect(cursor.conflicts).toEqual([]);
      expect(shadow.stateCount).toBe(2);
    }
  });

  test("refuses granules the memory does not have", () => {
    const thread = threads()();
    const cursor = memory().begin(accessBy(thread, "read"), thread.knowledge);
    expect(() => cursor.run(10, 7)).toThrow("granules 10 to 17 of 16");
    expect(() => cursor.run(-1, 2)).toThrow("granules -1 to 1 of 16");
  });
});
