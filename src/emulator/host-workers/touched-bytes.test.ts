import { describe, expect, test } from "vitest";
import { kernelText } from "../../../test/support/emulated-blocks.ts";
import { Random } from "../../support/random.ts";
import { targets } from "../../targets/target.ts";
import { globalBase } from "../addresses.ts";
import { prepareOn } from "../prepare.ts";
import { Grid } from "../machine/grid.ts";
import { EmulatedMemory } from "../memory.ts";
import { parsePtx } from "../../ptx/parser/index.ts";
import { areApart, Marks, marksSize } from "./touched-bytes.ts";

const size = 256;

/** What marks say, byte by byte: "." untouched, "r" read, "w" written, "b" both. */
function textOf(marks: Marks, start: number, end: number): string {
  return Array.from({ length: end - start }, (_, at) => {
    const byte = start + at;
    const bits = (marks.bytes[byte >>> 2] ?? 0) >>> (byte & 3);
    return ".rwb"[(bits & 1) + 2 * ((bits >>> 4) & 1)];
  }).join("");
}

interface Touch {
  readonly offset: number;
  readonly length: number;
  readonly mode: "read" | "write";
}

function randomTouches(random: Random): readonly Touch[] {
  return Array.from({ length: 1 + random.below(3) }, () => {
    const offset = random.below(size - 24);
    const mode = random.below(2) === 0 ? "read" : "write";
    return { offset, length: random.below(24), mode };
  });
}

function marksOf(touches: readonly Touch[]): Marks {
  const marks = Marks.of(size);
  for (const { offset, length, mode } of touches) marks.touch(offset, length, mode);
  return marks;
}

function expectedText(touches: readonly Touch[]): string {
  return Array.from({ length: size }, (_, byte) => {
    const has = (wanted: Touch["mode"]): boolean =>
      touches.some(
        ({ offset, length, mode }) => mode === wanted && byte >= offset && byte < offset + length,
      );
    return ".rwb"[(has("read") ? 1 : 0) + (has("write") ? 2 : 0)];
  }).join("");
}

describe("marks", () => {
  test("hold bytes of any run", () => {
    for (let seed = 0; seed < 200; seed++) {
      const touches = randomTouches(new Random(seed));
      expect(textOf(marksOf(touches), 0, size), `seed ${seed}`).toBe(expectedText(touches));
    }
  });

  test("are apart unless one wrote what another touched", () => {
    const seen = { apart: 0, together: 0 };
    for (let seed = 0; seed < 400; seed++) {
      const random = new Random(seed);
      const all = [randomTouches(random), randomTouches(random), randomTouches(random)];
      const texts = all.map(expectedText);
      const meets = Array.from({ length: size }, (_, byte) => byte).some((byte) =>
        texts.some(
          (text, one) =>
            "wb".includes(text[byte] ?? "") &&
            texts.some((other, two) => two !== one && other[byte] !== "."),
        ),
      );
      expect(areApart(all.map(marksOf)), `seed ${seed}`).toBe(!meets);
      seen[meets ? "together" : "apart"] += 1;
    }
    expect(seen.apart).toBeGreaterThan(20);
    expect(seen.together).toBeGreaterThan(20);
  });

  test("are those of a part of a larger buffer, and can be cleared", () => {
    const marks = new Marks(new ArrayBuffer(4096), size);
    expect(marks.bytes.length).toBe(marksSize(size));
    marks.touch(size - 1, 1, "write");
    marks.clear();
    expect(textOf(marks, 0, size)).toBe(".".repeat(size));
  });
});

/** The marks of the first 64 bytes of an array, behind one lane that ran a body. */
function marksBehind(body: string, checks: boolean): string {
  const memory = new EmulatedMemory();
  const array = new Uint32Array(16);
  const address = memory.allocate(array.byteLength);
  memory.write(address, new Uint8Array(array.buffer));
  const module = parsePtx(
    kernelText({
      body: `${body} ret;`,
      arrays: [array],
      module: ".shared .align 16 .b8 box[256];",
    }),
  );
  const marks = Marks.of(memory.extent);
  const parameters = [new Uint8Array(BigUint64Array.of(BigInt(address)).buffer)];
  const shape = { blocks: [1, 1, 1], threads: [1, 1, 1], sharedBytes: 0 } as const;
  const launch = { entry: "kernel", ...shape, parameters };
  const options = { target: targets.sm_90a, checks };
  const state = prepareOn(memory, module, launch, new Float64Array(), options, marks);
  const grid = new Grid(state, launch);
  while (grid.begin()) while (grid.advance());
  const start = address - globalBase;
  return textOf(marks, start, start + 64).replace(/\.+$/, "");
}

describe.each([false, true])("instructions mark what they touch, checks: %s", (checks) => {
  test.each([
    ["ld.global.u8 %h0, [%d0+3];", "...r"],
    ["ld.global.s16 %h0, [%d0+6];", "......rr"],
    ["ld.b32 %r0, [%d0+4];", "....rrrr"],
    ["ld.global.b64 %d1, [%d0+8];", `${".".repeat(8)}${"r".repeat(8)}`],
    ["ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d0+16];", `${".".repeat(16)}${"r".repeat(16)}`],
    ["mov.b16 %h0, 1; st.global.b8 [%d0+1], %h0;", ".w"],
    ["mov.b16 %h0, 1; st.b16 [%d0+2], %h0;", "..ww"],
    ["mov.b32 %r0, 1; st.global.b32 [%d0], %r0;", "wwww"],
    [
      "mov.b64 %d1, 1; st.global.v2.b64 [%d0+32], {%d1, %d1};",
      `${".".repeat(32)}${"w".repeat(16)}`,
    ],
    ["mov.b32 %r0, 1; st.global.b32 [%d0], %r0; ld.global.b16 %h0, [%d0+2];", "wwbb"],
    ["mov.b32 %r0, 1; setp.eq.u32 %p0, %r0, 2; @%p0 st.global.b32 [%d0], %r0;", ""],
    ["mov.b32 %r0, 1; mov.u32 %r1, box; st.shared.b32 [%r1], %r0; ld.shared.b32 %r0, [%r1];", ""],
  ])("%s", (body, expected) => {
    expect(marksBehind(body, checks)).toBe(expected);
  });

  test("copies of either direction", () => {
    const fill =
      "mov.u32 %r1, box; mov.b32 %r0, 1; st.shared.v4.b32 [%r1], {%r0, %r0, %r0, %r0}; fence.proxy.async;";
    const store = "cp.async.bulk.global.shared::cta.bulk_group [%d0+16], [%r1], 16;";
    // What a copy writes it has also looked up.
    expect(
      marksBehind(
        `${fill} ${store} cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;`,
        checks,
      ),
    ).toBe(`${".".repeat(16)}${"b".repeat(16)}`);
    const load =
      "mov.u32 %r1, box; cp.async.ca.shared.global [%r1], [%d0+8], 8; cp.async.wait_all;";
    expect(marksBehind(load, checks)).toBe(`${".".repeat(8)}${"r".repeat(8)}`);
  });
});
