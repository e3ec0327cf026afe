import { expect, test } from "vitest";
import { Knowledge } from "./knowledge.ts";
import { ProductOrder } from "./product-order.ts";

const epoch = { agent: 3, count: 2 };

test("what is issued is followed by its own form alone", () => {
  const known = Knowledge.none.withIssued("0 64 16", epoch);
  expect(known.following("0 64 16").generic.includes(3, 2)).toBe(true);
  expect(known.following("8 64 16").generic.includes(3, 2)).toBe(false);
  expect(known.generic.includes(3, 2)).toBe(false);
});

test("joins know of both, and are one of the two that covers the other", () => {
  const one = ProductOrder.none.with("a", 3, 2);
  const two = ProductOrder.none.with("b", 5, 1);
  const both = one.join(two);
  expect(both.of("a").includes(3, 2) && both.of("b").includes(5, 1)).toBe(true);
  expect(both.join(one)).toBe(both);
  expect(one.join(both)).toBe(both);
  expect(one.join(ProductOrder.none)).toBe(one);
  expect(ProductOrder.none.join(one)).toBe(one);
});
