/** Elements of 4 bits that different program threads touch in one word: simulator and emulator agree on what is a race. */
import { expect, test } from "vitest";
import { i4 } from "../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../formats/hostarray.ts";
import { tensor, full, kernel, slice } from "../lang/index.ts";
import type { Ref } from "../lang/index.ts";
import { open } from "./open.ts";

type Touch = (x: Ref<"i4">) => void;

const store =
  (start: number, size: number): Touch =>
  (x) => {
    x.at(slice(start, size)).store(full(i4, [size], 5));
  };

/** Thread a stores element 0 alone, by updates of the word around it. */
async function outcome(kind: "simulator" | "emulator", touch: Touch): Promise<unknown> {
  const apart = kernel(
    { name: "apart", threads: ["a", "b"], inouts: { x: tensor(i4, [8]) } },
    ({ a, b, x }) => {
      a(() => store(0, 1)(x));
      b(() => touch(x));
    },
  );
  const device = await open(kind, { onNotes: () => undefined });
  try {
    const x = fromNumbers(i4, [8], [0, 1, 2, 3, 4, 5, 6, 7]);
    return [...toNumbers((await device.run(apart, { x })).x)];
  } catch (error) {
    return String(error).includes("TW8014") || String(error).includes("TW3001") ? "race" : error;
  } finally {
    device.dispose();
  }
}

test.each<readonly [string, Touch, unknown]>([
  ["the other half of the byte", store(1, 1), [5, 5, 2, 3, 4, 5, 6, 7]],
  ["another byte", store(2, 2), [5, 1, 5, 5, 4, 5, 6, 7]],
  ["two more bytes", store(4, 4), [5, 1, 2, 3, 5, 5, 5, 5]],
  [
    "what a load of another byte gives",
    (x) => x.at(slice(4, 2)).store(x.at(slice(2, 2)).load()),
    [5, 1, 2, 3, 2, 3, 6, 7],
  ],
  ["the whole byte", store(0, 2), "race"],
  ["a load of the byte", (x) => x.at(slice(2, 1)).store(x.at(slice(1, 1)).load()), "race"],
])("%s", async (_, touch, expected) => {
  for (const kind of ["simulator", "emulator"] as const)
    expect(await outcome(kind, touch), kind).toEqual(expected);
});
