import { expect, test } from "vitest";
import { Random } from "./random.ts";
import { LruCache } from "./lru-cache.ts";

test("what has gone unused for longest makes room", () => {
  const recent = new LruCache<string, number>(2);
  recent.set("a", 1);
  recent.set("b", 2);
  expect(recent.get("a")).toBe(1);
  recent.set("c", 3);
  expect(recent.get("b")).toBeUndefined();
  expect(recent.get("a")).toBe(1);
  expect(recent.get("c")).toBe(3);
  expect(recent.size).toBe(2);
});

test("agrees with a list kept in order of use", () => {
  const random = new Random(5);
  const limit = 7;
  const recent = new LruCache<number, number>(limit);
  let list: (readonly [number, number])[] = [];
  for (let step = 0; step < 3000; step++) {
    const key = random.below(12);
    const found = list.find(([other]) => other === key);
    if (random.below(2) === 0) {
      expect(recent.get(key), `step ${step} of seed 5`).toBe(found?.[1]);
      if (found !== undefined) list = [...list.filter((each) => each !== found), found];
    } else {
      recent.set(key, step);
      list = [...list.filter(([other]) => other !== key), [key, step] as const].slice(-limit);
    }
  }
});
