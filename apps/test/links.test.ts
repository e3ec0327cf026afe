/** Programs in links, as they are written and read again, and links that hold something else. */
import { deflateRawSync } from "node:zlib";
import { expect, test } from "vitest";
import { readFragment, shareFragment } from "../playground/src/page/links.ts";
import { defaultSettings } from "../playground/src/protocol.ts";

const shared = (source: string) => ({
  program: { name: "mine.ts", language: "typescript" as const, source },
  settings: defaultSettings,
});

const link = (data: unknown): string =>
  `#p=${deflateRawSync(JSON.stringify(data)).toString("base64url")}`;

test("a link holds a program, whatever is written in it", async () => {
  const given = shared("const π = 3; // ✓ 𝟙");
  expect(await readFragment(await shareFragment(given))).toEqual(given);
});

test("a link that would inflate to more than a program ever has is none, and is not inflated to its end", async () => {
  const { name, language } = shared("").program;
  const program = (length: number) => ({
    name,
    language,
    source: " ".repeat(length),
    settings: {},
  });
  expect((await readFragment(link(program(2 ** 20))))?.program.source.length).toBe(2 ** 20);
  expect(await readFragment(link(program(2 ** 26)))).toBeUndefined();
});

test.each(["", "#", "#p=", "#p=not-a-program", "#p=AAAA", link(null), link({ name: 1 }), link([])])(
  "%s is no program",
  async (fragment) => {
    expect(await readFragment(fragment)).toBeUndefined();
  },
);
