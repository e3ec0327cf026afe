/** Some changed texts from fixed seeds, and what keeps the fuzzer worth its time. `npm run fuzz:text` runs on. */
import { describe, expect, test } from "vitest";
import { isGraphOpKind } from "../../../src/graph/ops/table.ts";
import { Random } from "../../../src/support/random.ts";
import { open } from "../../../src/index.ts";
import { takesAll } from "../../support/sample.ts";
import { opNames } from "./pools.ts";
import { seedsOf } from "../../fuzz/jobs.ts";
import { tryTexts } from "./campaign.ts";
import { corpus } from "./corpus.ts";
import { judge } from "./judge.ts";
import { shrinkText } from "./shrink.ts";

describe("the corpus", () => {
  test("names every op, in the short form that it has and in the generic one", () => {
    const all = corpus().join("\n");
    const generic = new Set(Array.from(all.matchAll(/"([\w.-]+)"\(/g), ([, name]) => name));
    const short = new Set(Array.from(all.matchAll(/ ([a-z]+\.[\w-]+)\b/g), ([, name]) => name));
    expect(opNames.filter((name) => !generic.has(name))).toEqual([]);
    expect(
      [...short].filter((name) => name !== undefined && isGraphOpKind(name)).length,
    ).toBeGreaterThan(100);
  });

  test("is refused nowhere without a code, and agrees with itself", async () => {
    const texts = corpus().filter((_, place) => takesAll || place % 16 === 0);
    for (const text of texts) expect((await judge(text)).problem, text).toBeUndefined();
  });
});

describe("changed texts", () => {
  test("are refused with a code and a line, or run alike everywhere", async () => {
    const device = await open("simulator");
    const count = takesAll ? 5000 : 100;
    const { failures, stages } = await tryTexts(seedsOf({ first: 1, count }), device, false);
    expect(failures.map(({ seed, why }) => `seed ${seed}: ${why}`)).toEqual([]);
    expect(stages["compiled"]).toBeGreaterThan(count / 20);
    device.dispose();
  });

  test("that fail are made small", async () => {
    const random = new Random(1);
    const lines = Array.from({ length: 40 }, () => `a b ${random.below(100)} c\n`);
    const text = [...lines.slice(0, 20), "x wrong y\n", ...lines.slice(20)].join("");
    const smallest = await shrinkText(text, async (each) => each.includes("wrong"));
    expect(smallest.trim()).toBe("wrong");
  });
});
