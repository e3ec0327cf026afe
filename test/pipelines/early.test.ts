/** Steps that are shifted against each other are clean and give the same under every schedule, emulated, and debugged. */
import { describe, test } from "vitest";
import { choicesText } from "./choices.ts";
import { earlyChoices, earlyExpected, earlyKernel } from "./early.ts";
import { requireClean, requireEmulated } from "./run.ts";

describe.each(earlyChoices.map((choices) => ({ choices, title: choicesText(choices) })))(
  "early blocks with $title",
  ({ choices }) => {
    const expected = earlyExpected(choices);

    test("are clean and right under many schedules", async () => {
      await requireClean(earlyKernel(choices), expected);
    });

    test("give the same with every copy synchronous", async () => {
      await requireClean(earlyKernel({ ...choices, synchronous: true }), expected, 2);
    });

    test("give the same on the emulator", async () => {
      await requireEmulated(earlyKernel(choices), expected);
    });
  },
);
