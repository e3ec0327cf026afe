/** Calls of the functions on layouts. */
import * as library from "tilewright";
import { host } from "./bad-call.ts";
import type { BadCall } from "./bad-call.ts";
import { parameter } from "./junk.ts";
import { copy } from "./surroundings.ts";

const registers = parameter(() => library.parseLayout("(L2 L3 L4 R1 W0 W1 | R0 L0 L1)"));
const shape = parameter(() => [64, 8], "list", "numbers");
const shared = parameter(() => library.parseSharedLayout("shared(swizzle 128)"));
const view = (): unknown =>
  library.wholeView(library.parseSharedLayout("shared(swizzle 128)"), [64, 64], 16);
const bits = parameter(() => 16);
const element = parameter(() => 3, "zero");
const access = parameter(
  () => ({ registers: library.parseLayout("(L0 L1 L2 L3 L4 W0 W1)"), vectorBytes: 4 }),
  "undefined",
);

export const layoutCalls: readonly BadCall[] = [
  host(
    "bankConflicts",
    registers,
    parameter(() => library.wholeView(library.parseSharedLayout("shared()"), [64, 8], 32)),
    parameter(() => 4),
  ),
  host("holders", registers, shape, element),
  host("registersPerLane", registers, shape),
  host("replication", registers),
  host(
    "stridedLayout",
    parameter(() => 4),
  ),
  host(
    "coalescedLayout",
    shape,
    parameter(() => 4),
  ),
  host(
    "blockedLayout",
    parameter(() => ({ vector: 2, lanes: [4, 8], warps: [4, 1] })),
  ),
  host(
    "mmaFragment",
    parameter(() => "left"),
    bits,
    parameter(() => ({ rows: 2, columns: 2 }), "undefined"),
  ),
  host(
    "reduceLayout",
    registers,
    shape,
    parameter(() => [1], "list", "numbers"),
  ),
  host(
    "transposeLayout",
    registers,
    shape,
    parameter(() => [1, 0]),
  ),
  host(
    "broadcastLayout",
    registers,
    parameter(() => ({ from: [64, 8], to: [2, 64, 8], axes: [1, 2] })),
  ),
  host("byteOffset", shared, shape, bits, element),
  host("wholeView", shared, shape, bits),
  host(
    "sliceView",
    parameter(view),
    parameter(() => [0, 0]),
    parameter(() => [8, 8]),
    parameter(() => [], "undefined", "list", "numbers"),
  ),
  host(
    "transposeView",
    parameter(view),
    parameter(() => [1, 0]),
  ),
  host(
    "tmemPlace",
    parameter(() => library.parseTmemLayout("tmem(full)")),
    parameter(() => [128, 64], "list", "numbers"),
    parameter(() => 32),
    element,
  ),
  host(
    "tiling",
    parameter(
      () => [
        [64, 8],
        [16, 8],
        [8, 8],
        [1, 2],
      ],
      "list",
    ),
    parameter(() => ({ warps: [-8], lanes: [-4, -3], vector: -1 })),
  ),
  host("drawRegisterLayout", registers, shape),
  host("drawRelayout", registers, registers, shape),
  host("drawLayoutText", registers, shape),
  host("drawRelayoutText", registers, registers, shape),
  host("drawSharedLayout", parameter(view), access),
  host("drawSharedText", parameter(view), access),
  host(
    "planRelayout",
    registers,
    registers,
    shape,
    parameter(() => library.f32),
  ),
  host(
    "relayoutCost",
    parameter(() =>
      library.planRelayout(
        library.parseLayout("(L0 L1 L2 L3 L4 W0 W1)"),
        library.parseLayout("()"),
        [128],
        library.f32,
      ),
    ),
  ),
  host(
    "placementReport",
    parameter(() => library.placeKernel(copy.kernel, library.targets.sm_90a)),
  ),
];
