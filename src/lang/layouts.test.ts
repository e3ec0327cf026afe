/** Statements about layouts in the language: they are checked where they are written, and change no result. */
import { describe, expect, test } from "vitest";
import {
  tensor,
  bf16,
  f32,
  fromNumbers,
  kernel,
  open,
  smem,
  TilewrightError,
  toNumbers,
  union,
} from "tilewright";
import { bodyText } from "../../test/language.ts";
import { namedLayouts } from "../layout/algebra/named-layouts.ts";
import { sharedLayout } from "../layout/algebra/shared-layout.ts";
import { placeKernel } from "../layout/plan/place.ts";
import { placementReport } from "../layout/plan/report.ts";
import { parseModule } from "../ir/parser/parser.ts";
import { printKernel } from "../ir/printer.ts";
import { defaultTarget } from "../targets/target.ts";

function report(make: () => unknown): TilewrightError {
  try {
    make();
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
  throw new Error("nothing was reported");
}

const inputs = { x: tensor(f32, [64, 8]) };
const outputs = { out: tensor(f32, [64, 8]) };

describe("layoutCast", () => {
  test("takes a layout or its text, and keeps the canonical text", () => {
    const definition = kernel({ name: "k", inputs }, ({ x }) => {
      x.load().layoutCast(" ( L0 L1 R0 )").layoutCast(namedLayouts.wgmma);
    });
    expect(bodyText(definition)).toContain(
      'layout_cast %1 {layout = "(L0 L1)"} : tile<f32, [64, 8]>',
    );
    expect(bodyText(definition)).toContain('{layout = "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"}');
  });

  test("takes the name of a layout, and names namedLayouts where there is none of that name", () => {
    const definition = kernel({ name: "k", inputs }, ({ x }) => {
      x.load().layoutCast("wgmma").layoutHint("wgmmaTransposed").convertLayout("wgmma");
    });
    const { text } = namedLayouts.wgmma;
    expect(bodyText(definition)).toContain(`{layout = "${text}"}`);
    expect(bodyText(definition)).toContain(`layout = "${text}", convert = true}`);
    const found = report(() =>
      kernel({ name: "k", inputs }, ({ x }) => {
        x.load().layoutCast("wgma");
      }),
    );
    expect(found.code).toBe("TW6001");
    expect(found.position?.file).toContain("layouts.test.ts");
    expect(found.remedy).toContain("namedLayouts");
  });

  test("does not change results", async () => {
    const definition = kernel({ name: "k", inputs, outputs }, ({ x, out }) => {
      const pinned = x.load().layoutCast(namedLayouts.wgmma);
      out.store(pinned.add(pinned));
    });
    const numbers = Array.from({ length: 512 }, (_, index) => index);
    const device = await open("simulator");
    try {
      const { out } = await device.run(definition, { x: fromNumbers(f32, [64, 8], numbers) });
      expect([...toNumbers(out)]).toEqual(numbers.map((number) => 2 * number));
    } finally {
      device.dispose();
    }
  });

  test("reports text that is no layout at the line that says it", () => {
    const found = report(() =>
      kernel({ name: "k", inputs }, ({ x }) => {
        x.load().layoutCast("(L0 L9)");
      }),
    );
    expect(found.code).toBe("TW6002");
    expect(found.position?.file).toContain("layouts.test.ts");
  });

  test("with more axes than the tile is reported when the kernel is placed, with both lines", () => {
    const definition = kernel({ name: "k", inputs, outputs }, ({ x, out }) => {
      const column = x.load().sum({ axis: 1 });
      out.store(column.layoutCast(namedLayouts.wgmma).expand({ axis: 1 }));
    });
    const found = report(() => placeKernel(definition.kernel, defaultTarget));
    expect(found.code).toBe("TW6102");
    expect(found.expected).toBe("a layout of at most 1 axes");
    const [made] = found.notes;
    expect(made?.position?.line).toBe((found.position?.line ?? 0) - 1);
  });

  test("of a constant spreads a copy of it", () => {
    const definition = kernel({ name: "k", inputs, outputs }, ({ x, out }) => {
      const ones = x.load().mul(0).add(1);
      out.store(ones.layoutCast(namedLayouts.wgmma));
    });
    expect(placeKernel(definition.kernel, defaultTarget).conversions).toEqual([]);
  });
});

describe("convertLayout", () => {
  const double = kernel({ name: "k", inputs, outputs }, ({ x, out }) => {
    out.store(x.load().layoutCast("(W0 W1 L0 L1 L2 L3 | L4 R0 R1)").convertLayout("wgmma").mul(2));
  });

  test("moves a tile, and its cost is in the report", () => {
    const placement = placeKernel(double.kernel, defaultTarget);
    expect(placementReport(placement)).toMatch(
      /convertLayout reads layoutCast {2}\w+ {2}2048 bytes {2}\d+ cycles/,
    );
  });

  test.each(["simulator", "emulator"] as const)(
    "does not change results on the %s",
    async (kind) => {
      const numbers = Array.from({ length: 512 }, (_, index) => index);
      const device = await open(kind);
      try {
        const { out } = await device.run(double, { x: fromNumbers(f32, [64, 8], numbers) });
        expect([...toNumbers(out)]).toEqual(numbers.map((number) => 2 * number));
      } finally {
        device.dispose();
      }
    },
  );

  test("is in the text of the kernel, which is read back", () => {
    const text = printKernel(double.kernel);
    expect(text).toContain(", convert = true}");
    const [read] = parseModule(text).kernels;
    expect(read && printKernel(read)).toBe(text);
  });

  test("to one number is refused, where the tile has many", () => {
    const definition = kernel({ name: "k", inputs, outputs }, ({ x, out }) => {
      out.store(x.load().convertLayout("splat"));
    });
    const found = report(() => placeKernel(definition.kernel, defaultTarget));
    expect(found.code).toBe("TW6101");
    expect(found.remedy).toContain("remove this convertLayout");
  });
});

describe("smem with a layout", () => {
  test("keeps its text, in unions too", () => {
    const swizzled = sharedLayout({ swizzle: 128 });
    const scratch = {
      tile: smem(bf16, [64, 64], { layout: swizzled }),
      both: union({ part: smem(bf16, [8, 8], { layout: "shared(order 1 0)" }) }),
    };
    const text = bodyText(kernel({ name: "k", scratch }, () => undefined));
    expect(text).toContain('name = "tile", layout = "shared(swizzle 128)"}');
    expect(text).toContain('name = "part", layout = "shared(order 1 0)"}');
  });

  test.each([
    ["text that is no layout", "swizzled", "TW6001"],
    ["a swizzle that does not exist", "shared(swizzle 48)", "TW6006"],
    ["tiles that do not cover the shape", "shared(tile 8 48)", "TW6007"],
    ["more axes than there are", "shared(order 1 0 2)", "TW6007"],
  ])("%s is reported where it is written", (_, layout, code) => {
    const found = report(() => smem(bf16, [64, 64], { layout }));
    expect(found.code).toBe(code);
    expect(found.position?.file).toContain("layouts.test.ts");
  });
});
