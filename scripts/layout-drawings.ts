/**
 * The drawings of docs/layouts.md, in the order of the page. `npm run docs` writes them together with the
 * other generated pages.
 */
import {
  drawRegisterLayout,
  drawRelayout,
  drawSharedLayout,
  mmaFragment,
  namedLayouts,
  parseLayout,
  parseSharedLayout,
  stridedLayout,
  wholeView,
} from "../src/index.ts";

const { tmemNative, wgmma, wgmmaRow, wgmmaTransposed } = namedLayouts;

/** bf16 tiles of 64 × 64, accessed as wgmma leaves them, two neighbours at a time. */
function accessedMemory(layout: string): string {
  const view = wholeView(parseSharedLayout(layout), [64, 64], 16);
  return drawSharedLayout(view, { registers: wgmma, vectorBytes: 4 });
}

const drawings: { readonly [name: string]: () => string } = {
  first: () => drawRegisterLayout(parseLayout("(L0 L1 L2 W0 W1 | R0 L3 L4)"), [32, 8]),
  wgmma: () => drawRegisterLayout(wgmma, [64, 8]),
  "mma-accumulator": () =>
    drawRegisterLayout(mmaFragment("accumulator", 16, { rows: 2, columns: 2 }), [32, 16]),
  "tmem-native": () => drawRegisterLayout(tmemNative, [128, 4]),
  "wgmma-row": () => drawRegisterLayout(wgmmaRow, [64]),
  strided: () => drawRegisterLayout(stridedLayout(4), [32, 16]),
  plain: () => accessedMemory("shared()"),
  swizzled: () => accessedMemory("shared(swizzle 128)"),
  relayout: () => drawRelayout(wgmma, wgmmaTransposed, [16, 8]),
};

/** Every drawing: its path, and the SVG. */
export function drawLayouts(): readonly { path: string; text: string }[] {
  return Object.entries(drawings).map(([name, draw]) => ({
    path: `docs/images/layouts/${name}.svg`,
    text: draw(),
  }));
}
