import { describe, expect, test } from "vitest";
import { Timeline } from "../../sim/order/knowledge.ts";
import { MapOrder } from "./map-order.ts";

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

  test("does not end when a map is acquired over and over", () => {
    const order = new MapOrder();
    const [writer] = warps();
    for (let round = 0; round < 200; round++) {
      const written = writer.count;
      order.release(writer);
      order.acquire(writer, 128);
      expect(order.visible(writer.knowledge, 128).includes(writer.agent, written)).toBe(true);
    }
  });
});
