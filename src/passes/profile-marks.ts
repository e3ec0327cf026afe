/**
 * Profile scopes, taken out or made to write. A traced kernel has a mark at each edge of a scope:
 *
 *   profile_mark {edge = begin, name = "load"}        gone, unless a profile is asked for
 *   %5 = load %3                                       %5 = load %3
 *   profile_mark {edge = end, name = "load"}
 *
 * Where one is asked for, the kernel gets one more array (`ir/profile-ring.ts`), every mark writes the time there, and
 * two more marks stand at the kernel's start and end.
 */
import { changedOp, noSlots } from "../ir/make-op.ts";
import { u32 } from "../formats/dtype.ts";
import type { AnyOp, Kernel, Op, Region } from "../ir/node.ts";
import { headSlots, isMark, ringsPerBlock, slotWords } from "../ir/profile-ring.ts";
import { nextValueId } from "../ir/rewrite/analysis.ts";
import { changeBody, changeEachOp, changeOps, changeRegions } from "../ir/rewrite/substitute.ts";
import { addSizes, dimension, multiplySizes } from "../ir/size.ts";
import { walkOps } from "../ir/traverse.ts";
import { refType } from "../ir/types.ts";
import { verifyKernel } from "../ir/verify/index.ts";
import type { Location } from "../support/location.ts";

/** The kernel without the marks of scopes that nobody asked for. */
export function withoutMarks(kernel: Kernel): Kernel {
  if (!hasMarks(kernel)) return kernel;
  const isIdle = (op: AnyOp): boolean => isMark(op) && op.operands.ring === undefined;
  return changeBody(kernel, without(isIdle, kernel.body));
}

/** The op without any marks in its regions, and without requests to the compiler, for those to whom they are nothing that happens. */
export function unmarked(op: AnyOp): AnyOp {
  const isNothing = (inner: AnyOp): boolean => isMark(inner) || inner.kind === "print_layout";
  return changeRegions(op, (region) => without(isNothing, region));
}

function without(drop: (op: AnyOp) => boolean, region: Region): Region {
  const kept = region.ops.filter((op) => !drop(op));
  return changeOps(
    region,
    kept.map((op) => changeRegions(op, (inner) => without(drop, inner))),
  );
}

/** A scope, by the number under which a profiled kernel marks it. */
export interface ProfileSite {
  readonly name: string;
  readonly edge: "begin" | "end";
  readonly location: Location;
}

export interface ProfiledKernel {
  readonly kernel: Kernel;
  /** The array of rings, and the dimension that says how many edges each has room for. */
  readonly rings: string;
  readonly edges: string;
  readonly ringsPerBlock: number;
  readonly sites: readonly ProfileSite[];
}

/** The kernel with its marks writing; undefined where it has none. */
export function profiledKernel(kernel: Kernel): ProfiledKernel | undefined {
  return hasMarks(kernel) ? new RingWriter(kernel).build() : undefined;
}

function hasMarks({ body }: Kernel): boolean {
  let marked = false;
  walkOps(body, (op) => {
    marked ||= isMark(op);
  });
  return marked;
}

class RingWriter {
  readonly #kernel: Kernel;
  readonly #ring: Kernel["parameters"][number]["value"];
  readonly #sites: ProfileSite[] = [];
  readonly #rings: string;
  readonly #edges: string;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
    const { parameters, dimensions } = kernel;
    this.#rings = freeName("profile_rings", parameters);
    this.#edges = freeName("profile_edges", dimensions);
    const rings = multiplySizes(...kernel.grid.map(({ extent }) => extent), ringsPerBlock(kernel));
    const slots = addSizes(dimension(this.#edges), headSlots);
    const type = refType("gmem", u32, [rings, slots, slotWords]);
    this.#ring = Object.freeze({ id: nextValueId(kernel), type });
  }

  build(): ProfiledKernel {
    const { body, parameters, dimensions, location } = this.#kernel;
    const { ops } = this.#region(body);
    const all = [this.#mark("open", location), ...ops.slice(0, -1), this.#mark("close", location)];
    const last = ops.at(-1);
    const own = Object.freeze({ name: this.#rings, role: "inout", value: this.#ring } as const);
    const kernel = Object.freeze({
      ...this.#kernel,
      dimensions: Object.freeze([...dimensions, dimension(this.#edges)]),
      parameters: Object.freeze([...parameters, own]),
      body: Object.freeze({
        parameters: Object.freeze([...body.parameters, this.#ring]),
        ops: Object.freeze(last === undefined ? all : [...all, last]),
      }),
    });
    verifyKernel(kernel);
    return {
      kernel,
      rings: this.#rings,
      edges: this.#edges,
      ringsPerBlock: ringsPerBlock(this.#kernel),
      sites: this.#sites,
    };
  }

  #mark(edge: "open" | "close", location: Location): Op<"profile_mark"> {
    return Object.freeze({
      kind: "profile_mark",
      operands: Object.freeze({ ring: this.#ring }),
      attributes: Object.freeze({ edge, name: this.#kernel.name }),
      regions: noSlots,
      results: Object.freeze([]),
      location,
    });
  }

  #region(region: Region): Region {
    return changeEachOp(region, (op) =>
      changeRegions(this.#written(op), (inner) => this.#region(inner)),
    );
  }

  #written(op: AnyOp): AnyOp {
    if (!isMark(op)) return op;
    const { edge, name } = op.attributes;
    if (edge === "open" || edge === "close") return op;
    const site = this.#sites.push({ name, edge, location: op.location }) - 1;
    const attributes = Object.freeze({ ...op.attributes, site });
    return changedOp(op, { operands: Object.freeze({ ring: this.#ring }), attributes });
  }
}

/** A name that nothing in the list has. */
function freeName(wanted: string, taken: readonly { readonly name: string }[]): string {
  return taken.some(({ name }) => name === wanted) ? freeName(`${wanted}_`, taken) : wanted;
}
