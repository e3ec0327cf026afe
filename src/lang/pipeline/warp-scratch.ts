/**
 * Where a pipeline's buffers and barriers are allocated: in a scope of its own or, for code that single warps run, in a scope around the warps, since
 * allocating takes all of them. Each warp then has its own:
 *
 *   warps((warp) => { pipeline(…) })                        tile: [4, depth, …]     warp w has tile.at(w)
 *   warps((warp) => { when(warp.eq(0), () => pipeline(…)) })    tile: [depth, …]     one warp opens it
 */
import { allocate } from "../allocate.ts";
import type { BarrierSpec, MemorySpec } from "../arguments.ts";
import { Barrier } from "../barriers.ts";
import { scoped } from "../control.ts";
import { Scalar } from "../elementwise.ts";
import { Ref } from "../ref.ts";
import type { DTypeName } from "../../formats/dtype.ts";
import type { Trace, WarpCode } from "../trace.ts";
import type { Tree } from "../tree.ts";

type Named = { readonly [name: string]: unknown };

/** What a pipeline allocates. */
export interface PipelineScratch {
  readonly [name: string]: MemorySpec<DTypeName, "smem"> | BarrierSpec;
}

/** Runs `body` with what the pipeline needs, and gives what it returns. */
export function withScratch(
  trace: Trace,
  scratch: PipelineScratch,
  body: (objects: Named) => Tree | undefined,
): unknown {
  const { warps } = trace;
  return warps === undefined ? scoped(scratch, body) : body(aroundWarps(trace, warps, scratch));
}

function aroundWarps(trace: Trace, warps: WarpCode, scratch: PipelineScratch): Named {
  const copies = warps.alone ? undefined : trace.context.warps;
  const made = trace.aroundWarps(warps, () =>
    Object.entries(scratch).map(
      ([name, spec]) =>
        [name, allocate(name, copies === undefined ? spec : each(spec, copies))] as const,
    ),
  );
  if (copies === undefined) return Object.fromEntries(made);
  const index = new Scalar<"i32">(warps.index);
  const own = (object: unknown): unknown =>
    object instanceof Ref || object instanceof Barrier ? object.at(index) : object;
  return Object.fromEntries(made.map(([name, object]) => [name, own(object)] as const));
}

/** The same for each of so many warps. */
function each(spec: PipelineScratch[string], copies: number): PipelineScratch[string] {
  return spec.kind === "memory"
    ? { ...spec, shape: [copies, ...spec.shape] }
    : { ...spec, count: copies * spec.count, shape: [copies, ...spec.shape] };
}
