import { describe, expect, test } from "vitest";
import { expectGolden } from "../../../test/golden.ts";
import { namedLayouts, stridedLayout } from "../algebra/named-layouts.ts";
import { splat } from "../algebra/register-layout.ts";
import { sharedLayout } from "../algebra/shared-layout.ts";
import { transposeView, wholeView } from "../algebra/shared-view.ts";
import { parseLayout } from "../algebra/parse-layout.ts";
import { drawRegisterLayout, drawRelayout } from "./register-drawing.ts";
import { drawSharedLayout } from "./shared-drawing.ts";
import { drawLayoutText, drawRelayoutText, drawSharedText } from "./text-drawing.ts";

const golden = (name: string, text: string) => expectGolden(`test/golden/layout/${name}`, text);
const small = parseLayout("(L0 W0 | R0 L1)");

/** Every tag that opens closes, in order. */
function isBalanced(svg: string): boolean {
  const open: string[] = [];
  for (const [, closing, name, single] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
    if (single === "/") continue;
    if (closing === "") open.push(name ?? "");
    else if (open.pop() !== name) return false;
  }
  return open.length === 0;
}

function countOf(text: string, part: string): number {
  return text.split(part).length - 1;
}

describe("SVG", () => {
  test("register layout", () => {
    const svg = drawRegisterLayout(small, [4, 4]);
    expect(isBalanced(svg)).toBe(true);
    golden("register.svg", svg);
  });

  test("relayout", () => {
    const svg = drawRelayout(small, parseLayout("(L0 W0 | L1 R0)"), [4, 4]);
    expect(isBalanced(svg)).toBe(true);
    golden("relayout.svg", svg);
  });

  test("swizzled memory with the worst access marked", () => {
    const view = wholeView(sharedLayout({ swizzle: 32 }), [4, 8], 32);
    const access = { registers: parseLayout("(L0 L1 | R0 R1 L2)"), vectorBytes: 16 };
    const svg = drawSharedLayout(view, access);
    expect(isBalanced(svg)).toBe(true);
    golden("shared.svg", svg);
  });

  test("large tiles are cut to an atom, with a note", () => {
    const svg = drawRegisterLayout(namedLayouts.wgmma, [128, 256]);
    expect(svg).toContain("shown: 64 × 8 of 128 × 256");
    expect(svg).toContain("wgmma (L2 L3 L4 R1 W0 W1 | R0 L0 L1)");
    expect(countOf(svg, "<title>")).toBe(64 * 8);
    expect(svg).toContain("(63, 7): warp 3 lane 31 register 3");
  });

  test("relayouts count the elements that change threads", () => {
    const { wgmma, wgmmaTransposed } = namedLayouts;
    expect(drawRelayout(wgmma, wgmmaTransposed, [64, 8])).toContain(
      "256 of 512 elements change threads",
    );
    expect(drawRelayout(splat, wgmma, [64, 8])).toContain("every element stays in its thread");
    expect(drawRelayout(wgmma, parseLayout("()"), [64, 8])).toContain("512 of 512");
  });

  test("any rank, any layout", () => {
    expect(drawRegisterLayout(splat, [64, 64])).toContain("each element in 128 threads");
    expect(drawRegisterLayout(stridedLayout(2), [3, 5, 7])).toContain("of 3 × 5 × 7");
    const row = drawRegisterLayout(namedLayouts.wgmmaRow, [50]);
    expect(countOf(row, "<title>")).toBe(50);
    expect(row).toContain("(49): warp 3 lane 4 register 0, and 3 more");
    expect(drawRegisterLayout(namedLayouts.wgmmaRow, [4096])).toContain("the first 64 of 4096");
    expect(drawRegisterLayout(parseLayout("()"), [])).toContain("tile ");
  });

  test("tall grids are folded, narrow ones show an atom of 128 rows", () => {
    const folded = drawRegisterLayout(namedLayouts.tcgen05, [128, 64]);
    expect(countOf(folded, "<title>")).toBe(128 * 8);
    expect(Number(/height="(\d+)"/.exec(folded)?.[1])).toBeLessThan(1000);
  });

  test("the legend names the warps that are there", () => {
    const svg = drawRegisterLayout(parseLayout("(W1 L0)"), [64]);
    expect(svg).toContain("several warps");
    expect(drawRegisterLayout(namedLayouts.wgmma, [32, 8])).not.toContain(">warp 2<");
    expect(drawRelayout(namedLayouts.wgmma, namedLayouts.wgmma, [64, 8])).not.toContain(
      ">changes threads<",
    );
  });

  test("conflicts are red, other accesses black", () => {
    const plain = wholeView(sharedLayout({}), [64, 64], 16);
    const access = { registers: namedLayouts.wgmma, vectorBytes: 4 };
    const conflicting = drawSharedLayout(plain, access);
    expect(conflicting).toContain("512 wavefronts, 64 at best");
    expect(countOf(conflicting, 'stroke="#c0392b"')).toBe(32 + 1);
    expect(conflicting).toContain("threads wait");
    const swizzled = drawSharedLayout(
      wholeView(sharedLayout({ swizzle: 128 }), [64, 64], 16),
      access,
    );
    expect(countOf(swizzled, 'stroke="#c0392b"')).toBe(0);
    expect(countOf(swizzled, 'stroke="#222222"')).toBe(32 + 1);
    const turned = transposeView(plain, [1, 0]);
    expect(drawSharedLayout(turned, access)).toContain("cannot access it 4 bytes at a time");
  });
});

describe("text", () => {
  test("register layout", () => {
    expect(drawLayoutText(small, [4, 4])).toBe(
      [
        "(L0 W0 | R0 L1)",
        "tile 4 × 4, 2 registers a thread, each element in 16 threads",
        "         0      1      2      3",
        "  0  0.0:0  0.0:1  0.2:0  0.2:1",
        "  1  0.1:0  0.1:1  0.3:0  0.3:1",
        "  2  1.0:0  1.0:1  1.2:0  1.2:1",
        "  3  1.1:0  1.1:1  1.3:0  1.3:1",
        "cells: warp.lane:register",
        "",
      ].join("\n"),
    );
    expect(drawLayoutText(namedLayouts.wgmmaLeft8, [64, 64])).toContain(
      "shown: 64 × 16 of 64 × 64",
    );
  });

  test("relayout", () => {
    const after = parseLayout("(L0 W0 | L1 R0)");
    expect(drawRelayoutText(small, after, [2, 4]).split("\n")).toEqual([
      "4 of 8 elements change threads",
      "",
      "(L0 W0 | R0 L1)",
      "tile 2 × 4, 2 registers a thread, each element in 16 threads",
      "          0       1       2       3",
      "  0   0.0:0  0.0:1*  0.2:0*   0.2:1",
      "  1   0.1:0  0.1:1*  0.3:0*   0.3:1",
      "",
      "(L0 W0 | L1)",
      "tile 2 × 4, 2 registers a thread, each element in 16 threads",
      "          0       1       2       3",
      "  0   0.0:0  0.2:0*  0.0:1*   0.2:1",
      "  1   0.1:0  0.3:0*  0.1:1*   0.3:1",
      "",
      "cells: warp.lane:register, * changes threads",
      "",
    ]);
    expect(drawRelayoutText(small, small, [4, 4])).not.toContain("*");
  });

  test("a tile of one axis runs on from line to line", () => {
    const lines = drawLayoutText(namedLayouts.wgmmaRow, [20]).split("\n");
    expect(lines.slice(3, 5)).toEqual([
      expect.stringMatching(/^ {2}0 {3}0\.0:0 .* 0\.28:1$/),
      " 16   1.0:0   1.4:0   1.8:0  1.12:0",
    ]);
  });

  test("narrow elements share a cell, those of a turned tile have their own", () => {
    const plain = wholeView(sharedLayout({}), [4, 8], 16);
    expect(drawSharedText(plain).split("\n").slice(1, 4)).toEqual([
      "4 × 8 elements of 16 bits; each cell is 2 elements, a word, and shows its bank",
      "      0   2   4   6",
      "  0   0   1   2   3",
    ]);
    expect(drawSharedText(wholeView(sharedLayout({}), [4, 8], 64))).toContain("its first bank\n");
    const turned = drawSharedText(transposeView(plain, [1, 0]));
    expect(turned).toContain("each cell is an element");
    expect(turned).toContain("\n  1   0   4   8  12\n");
  });

  test("shared memory", () => {
    const view = wholeView(sharedLayout({ swizzle: 32 }), [9, 8], 32);
    const access = { registers: parseLayout("(L0 L1 L2 L3 |)"), vectorBytes: 4 };
    expect(drawSharedText(view, access)).toBe(
      [
        "shared(swizzle 32)",
        "9 × 8 elements of 32 bits; each cell is an element and shows its bank",
        "(L0 L1 L2 L3 |), 4 bytes a thread: 64 wavefronts, 32 at best",
        "       0    1    2    3    4    5    6    7",
        "  0   0*    1    2    3    4    5    6    7",
        "  1   8+    9   10   11   12   13   14   15",
        "  2  16+   17   18   19   20   21   22   23",
        "  3  24+   25   26   27   28   29   30   31",
        "  4   4+    5    6    7    0    1    2    3",
        "  5  12+   13   14   15    8    9   10   11",
        "  6  20+   21   22   23   16   17   18   19",
        "  7  28+   29   30   31   24   25   26   27",
        "  8   0*    1    2    3    4    5    6    7",
        "+ accessed at one moment, * in each other's way",
        "",
      ].join("\n"),
    );
  });
});
