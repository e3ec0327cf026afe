import { describe, expect, test } from "vitest";
import { Clock } from "./clock.ts";
import { completion, Knowledge, Timeline } from "./knowledge.ts";

function numbering(): () => number {
  let next = 0;
  return () => next++;
}

describe("a timeline", () => {
  test("knows its own step for ordinary accesses only", () => {
    const thread = new Timeline(numbering());
    expect(thread.count).toBe(1);
    expect(thread.knowledge.generic.get(thread.agent)).toBe(1);
    expect(thread.knowledge.shared.get(thread.agent)).toBe(0);
    expect(thread.knowledge.global.get(thread.agent)).toBe(0);
  });

  test("publishes the current step and goes on with the next", () => {
    const newAgent = numbering();
    const writer = new Timeline(newAgent);
    const reader = new Timeline(newAgent);
    const written = writer.count;
    const published = writer.publish();
    expect(writer.count).toBe(written + 1);
    expect(writer.knowledge.generic.get(writer.agent)).toBe(writer.count);
    reader.acquire(published);
    expect(reader.knowledge.generic.includes(writer.agent, written)).toBe(true);
    expect(reader.knowledge.generic.includes(writer.agent, writer.count)).toBe(false);
    expect(reader.knowledge.shared.includes(writer.agent, written)).toBe(false);
  });

  test.each([
    ["smem", "shared", "global"],
    ["gmem", "global", "shared"],
  ] as const)("fence(%s) adds what it knows to the %s clock alone", (space, clock, other) => {
    const newAgent = numbering();
    const thread = new Timeline(newAgent);
    const stranger = new Timeline(newAgent);
    const known = stranger.count;
    thread.acquire(stranger.publish());
    const before = thread.count;
    thread.fence(space);
    expect(thread.knowledge[clock].get(thread.agent)).toBe(before);
    expect(thread.knowledge[other].get(thread.agent)).toBe(0);
    expect(thread.knowledge[clock].get(stranger.agent)).toBe(known);
    expect(thread.knowledge[other].get(stranger.agent)).toBe(0);
    expect(stranger.count).toBe(known + 1);
    expect(thread.count).toBe(before + 1);
  });

  test("hands a fenced access on to the asynchronous operations of others", () => {
    const newAgent = numbering();
    const writer = new Timeline(newAgent);
    const issuer = new Timeline(newAgent);
    const written = writer.count;
    writer.fence("smem");
    issuer.acquire(writer.publish());
    expect(issuer.knowledge.shared.includes(writer.agent, written)).toBe(true);
  });

  test("starts with what it is given", () => {
    const newAgent = numbering();
    const parent = new Timeline(newAgent);
    const child = new Timeline(newAgent, parent.publish());
    expect(child.knowledge.generic.includes(parent.agent, 1)).toBe(true);
    expect(child.knowledge.generic.includes(child.agent, 1)).toBe(true);
  });

  test("numbers its waits for all proxies at once, and not as accesses", () => {
    const newAgent = numbering();
    const thread = new Timeline(newAgent);
    const first = thread.passWait();
    const second = thread.passWait();
    expect(first.agent).not.toBe(thread.agent);
    expect(second).toEqual({ agent: first.agent, count: first.count + 1 });
    for (const clock of ["generic", "shared", "global"] as const)
      expect(thread.knowledge[clock].includes(second.agent, second.count)).toBe(true);
    expect(thread.count).toBe(1);
  });
});

describe("the completion of an asynchronous operation", () => {
  test("tells of itself and of what it relied on, not of its issuer's accesses", () => {
    const newAgent = numbering();
    const issuer = new Timeline(newAgent);
    issuer.fence("smem");
    const fenced = issuer.count - 1;
    const waited = issuer.passWait();
    const operation = { agent: newAgent(), count: 1 };
    const told = completion(issuer.publish(), [operation]);
    for (const clock of ["generic", "shared", "global"] as const) {
      expect(told[clock].includes(operation.agent, operation.count)).toBe(true);
      expect(told[clock].includes(waited.agent, waited.count)).toBe(true);
      expect(told[clock].includes(issuer.agent, fenced + 1)).toBe(false);
    }
    expect(told.generic.includes(issuer.agent, fenced)).toBe(true);
    expect(told.shared.includes(issuer.agent, fenced)).toBe(true);
    expect(told.global.includes(issuer.agent, fenced)).toBe(false);
  });
});

describe("joining knowledge", () => {
  const clock = Clock.empty.with(0, 1);
  const more = clock.with(1, 1);

  test("gives back an input that covers the other", () => {
    const less = new Knowledge(clock, Clock.empty, Clock.empty);
    const all = new Knowledge(more, clock, clock);
    expect(less.join(all)).toBe(all);
    expect(all.join(less)).toBe(all);
    expect(all.join(all)).toBe(all);
  });

  test("keeps the clocks apart", () => {
    const left = new Knowledge(more, clock, Clock.empty);
    const right = new Knowledge(more, Clock.empty, clock);
    const joined = left.join(right);
    expect([joined.generic, joined.shared, joined.global]).toEqual([more, clock, clock]);
  });
});
