import { expect, test } from "vitest";
import {
  lanesOf,
  layoutOf,
  placesOf,
  randomShape,
  randomSpelling,
  spellingOf,
  volume,
} from "../../../test/layout-oracle.ts";
import { Random } from "../../support/random.ts";
import { joinElements, splitElements, splitShape } from "./bit-widths.ts";
import { parseLayout } from "./parse-layout.ts";
import { splat } from "./register-layout.ts";
import type { RegisterLayout } from "./register-layout.ts";

function lanes(layout: RegisterLayout, shape: readonly number[]) {
  if (layout.kind === "splat") throw new Error("a splat has no places");
  return lanesOf(placesOf(spellingOf(layout), shape), volume(shape));
}

test.each([
  ["(L0 L1)", [4], 4, "(R0 R1 L0 L1)"],
  ["(R0 L0)", [4], 2, "(R0 R1 L0)"],
  ["(L2 L3 L4 R1 W0 W1 | R0 L0 L1)", [64, 8], 2, "(L2 L3 L4 R2 W0 W1 | R0 R1 L0 L1)"],
  ["(L0 L1)", [12], 2, "(R0 L0 L1)"],
  ["()", [3, 5], 8, "()"],
  ["(L0 L1 |)", [4, 1], 2, "(L0 L1 |)"],
])("%s on %j in %i parts", (text, shape, parts, expected) => {
  const layout = splitElements(parseLayout(text), shape, parts);
  expect(layout?.text).toBe(parseLayout(expected).text);
  expect(
    lanes(joinElements(parseLayout(expected), splitShape(shape, parts), parts) ?? splat, shape),
  ).toEqual(lanes(parseLayout(text), shape));
});

test("parts that lie in several lanes are no element", () => {
  expect(joinElements(parseLayout("(L0 L1 R0 R1)"), [16], 2)).toBeUndefined();
  expect(joinElements(parseLayout("(R0 L0 R1)"), [8], 4)).toBeUndefined();
  expect(splitElements(splat, [8], 2)).toBeUndefined();
});

test("parts lie in the lanes of their elements, in any layout", () => {
  let found = 0;
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    const rank = 1 + random.below(3);
    const layout = layoutOf(randomSpelling(random, rank, 2));
    const shape = randomShape(random, rank);
    const parts = random.pick([2, 4, 8, 16]);
    const message = `seed ${seed}: ${layout.text} on [${shape.join(", ")}] in ${parts}`;
    const result = splitElements(layout, shape, parts);
    if (result === undefined) continue;
    found += 1;
    const own = lanes(layout, shape);
    const narrow = splitShape(shape, parts);
    const expected = Array.from(
      { length: volume(narrow) },
      (_, part) => own[Math.floor(part / parts)],
    );
    expect(lanes(result, narrow), message).toEqual(expected);
    const back = joinElements(result, narrow, parts);
    if (back !== undefined) expect(lanes(back, shape), message).toEqual(own);
  }
  // Nearly every layout has one for the parts.
  expect(found).toBeGreaterThan(50);
});
