import { expect, test } from "vitest";
import { TilewrightError } from "../support/diagnostics.ts";
import { locationAt } from "../support/location.ts";
import { FindingList } from "./finding-list.ts";

function race(first: number, second: number, iteration: number): TilewrightError {
  return new TilewrightError({
    code: "TW3001",
    message: "data race",
    location: locationAt("ring.ts", first, 1),
    expected: "an order",
    found: `iteration ${iteration}`,
    notes: [{ message: "the other access", location: locationAt("ring.ts", second, 1) }],
  });
}

test("the same lines are one finding, whichever comes first", () => {
  const list = new FindingList();
  expect(list.addAll([race(4, 9, 0)], ["first run"])).toHaveLength(1);
  expect(list.addAll([race(9, 4, 3), race(4, 9, 1)], ["second run"])).toEqual([]);
  expect(list.findings.map(({ found }) => found)).toEqual(["iteration 0"]);
});

test("other lines are another finding", () => {
  const list = new FindingList();
  list.addAll([race(4, 9, 0)], ["first run"]);
  const [added] = list.addAll([race(4, 10, 0)], ["second run"]);
  expect(added?.notes.at(-1)?.message).toBe("second run");
  expect(list.findings).toHaveLength(2);
});
