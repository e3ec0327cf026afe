/**
 * The timelines of docs/pipelines.md: what `tilewright report FILE --timeline --svg` draws below the table.
 */
import { gemmOf } from "../examples/gemm.ts";
import { matmul } from "../examples/matmul.ts";
import { svgDocument } from "../src/layout/drawing/svg.ts";
import { kernelTimeline, timelineDrawing } from "../src/cli/report/timeline.ts";
import type { KernelDefinition } from "../src/lang/index.ts";
import { defaultTarget } from "../src/targets/target.ts";

const drawings: {
  readonly [name: string]: {
    readonly definition: KernelDefinition;
    readonly sizes: { readonly [dimension: string]: number };
  };
} = {
  matmul: { definition: matmul, sizes: { m: 128, n: 256, k: 512 } },
  gemm: { definition: gemmOf(), sizes: { m: 128, n: 256, k: 640 } },
};

export async function drawTimelines(): Promise<readonly { path: string; text: string }[]> {
  return Promise.all(
    Object.entries(drawings).map(async ([name, { definition, sizes }]) => ({
      path: `docs/images/timelines/${name}.svg`,
      text: svgDocument(
        timelineDrawing(await kernelTimeline({ name, definition }, sizes, defaultTarget)),
      ),
    })),
  );
}
