import { describe, expect, test } from "vitest";
import { Timeline } from "../../happens-before/knowledge.ts";
import { MapOrder } from "./tensor-map-order.ts";

function warps(): readonly [Timeline, Timeline, Timeline] {
  let agents = 0;
  const make = (): Timeline => new Timeline(() => agents++);
  return [make(), make(), make()];
}

describe("what a copy sees of a tensor map", () => {
  test("is what was released and acquired", () => {
    const order = new MapOrder();
    const [writer, reader] = warps();
    const written = writer.count;
    order.release(writer);
    reader.acquire(writer.publish());
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, written)).toBe(false);
    order.acquire(reader, 128);
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, written)).toBe(true);
    expect(order.visible(reader.knowledge, 256).includes(writer.agent, written)).toBe(false);
  });

  test("is nothing that was written behind the release", () => {
    const order = new MapOrder();
    const [writer, reader] = warps();
    order.release(writer);
    const written = writer.count;
    reader.acquire(writer.publish());
    order.acquire(reader, 128);
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, written)).toBe(false);
  });

  test("is nothing whose release the acquiring warp does not know of", () => {
    const order = new MapOrder();
    const [writer, reader] = warps();
    const written = writer.count;
    reader.acquire(writer.publish());
    order.release(writer);
    order.acquire(reader, 128);
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, written)).toBe(false);
  });

  test("is what others wrote before the release", () => {
    const order = new MapOrder();
    const [writer, releaser, reader] = warps();
    const written = writer.count;
    releaser.acquire(writer.publish());
    const later = writer.count;
    order.release(releaser);
    reader.acquire(releaser.publish());
    reader.acquire(writer.publish());
    order.acquire(reader, 128);
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, written)).toBe(true);
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, later)).toBe(false);
  });

  test("passes on to whoever knows of the acquire", () => {
    const order = new MapOrder();
    const [writer, reader, issuer] = warps();
    const written = writer.count;
    order.release(writer);
    reader.acquire(writer.publish());
    issuer.acquire(reader.publish());
    order.acquire(reader, 128);
    expect(order.visible(issuer.knowledge, 128).includes(writer.agent, written)).toBe(false);
    issuer.acquire(reader.publish());
    expect(order.visible(issuer.knowledge, 128).includes(writer.agent, written)).toBe(true);
  });

  test("does not end when others release and acquire over and over", () => {
    const order = new MapOrder();
    const [writer, reader, other] = warps();
    const written = writer.count;
    order.release(writer);
    reader.acquire(writer.publish());
    for (let round = 0; round < 600; round++) {
      order.release(other);
      order.acquire(other, 128);
    }
    order.acquire(reader, 128);
    for (let round = 0; round < 600; round++) order.acquire(other, 128);
    expect(order.visible(reader.knowledge, 128).includes(writer.agent, written)).toBe(true);
  });
});
