/**
 * Verifies that memory is used as it was declared: inputs are only read, and shared memory that one
 * program thread keeps to itself is not reached from other blocks.
 *
 *   %6 = slice_ref %0 …      a window is traced back to what it was made from:
 *   %7 = transpose_ref %6    %7 ← %6 ← %0, the input x
 *   store %7, …              refused
 */
import { noSlots } from "../make-op.ts";
import type { AnyOp, Kernel, Op, Region, Value } from "../node.ts";
import { opName } from "../op-names.ts";
import { accessesOf, chosenAmong, traitsOf, windowedBy } from "../traits.ts";
import { regionList } from "../traverse.ts";
import { reject } from "./report.ts";
import { visitEach } from "../../support/visit-each.ts";

/** What a window was made from, where that matters. */
type Source =
  | { readonly kind: "input"; readonly name: string }
  | { readonly kind: "private"; readonly allocation: AnyOp };

class MemoryCheck {
  readonly #kernel: Kernel;
  readonly #sources = new Map<Value, Source>();

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
    for (const { name, role, value } of kernel.parameters)
      if (role === "input") this.#sources.set(value, { kind: "input", name });
  }

  verify(region: Region, threadPrivate: boolean): void {
    visitEach(region.ops, (op) => {
      this.#follow(op, threadPrivate);
      this.#verifyWrite(op);
      if (op.kind === "peer_ref") this.#verifyPeer(op);
      if (op.kind === "select_ref") this.#verifySelection(op);
      const some =
        op.kind === "on_threads" && op.attributes.threads.length < this.#kernel.threads.length;
      if (op.regions !== noSlots)
        for (const inner of regionList(op)) this.verify(inner, threadPrivate || some);
    });
  }

  #follow(op: AnyOp, threadPrivate: boolean): void {
    const made = windowedBy(op);
    const inputs = chosenAmong(op).flatMap((array) => this.#sources.get(array) ?? []);
    const source =
      made === undefined
        ? (inputs[0] ?? allocationSource(op, threadPrivate))
        : this.#sources.get(made);
    if (source !== undefined) for (const result of op.results) this.#sources.set(result, source);
  }

  #verifyWrite(op: AnyOp): void {
    const accesses = accessesOf(op);
    if (accesses.length === 0) return;
    for (const { mode, value } of accesses) {
      const source = mode === "write" ? this.#sources.get(value) : undefined;
      if (source?.kind === "input") this.#rejectWrite(op, source);
    }
  }

  #rejectWrite(op: AnyOp, source: Source & { readonly kind: "input" }): never {
    return reject(op, "TW2220", `${opName(op)} writes ${source.name}, which is an input`, {
      expected: "an output, an inout or scratch memory",
      found: `the input ${source.name}`,
      notes: [{ message: "the kernel is declared here", location: this.#kernel.location }],
    });
  }

  /** What is known of the arrays alike is how they lie: they begin where parameters do, in row-major order. */
  #verifySelection(op: Op<"select_ref">): void {
    const { parameters } = this.#kernel;
    const isWhole = (ref: Value): boolean =>
      parameters.some(({ value, strides }) => value === ref && strides === undefined);
    if (op.operands.refs.every(isWhole)) return;
    reject(op, "TW2225", "select_ref selects what is no parameter in row-major order", {
      expected: "parameters of the kernel without strides",
      found: "a window, an allocation or a parameter with strides",
    });
  }

  #verifyPeer(op: Op<"peer_ref">): void {
    const source = this.#sources.get(op.operands.ref);
    if (source?.kind !== "private") return;
    reject(op, "TW2221", `${opName(op)} reaches memory that belongs to one program thread`, {
      expected: "shared memory of the whole block",
      found: "memory allocated in the code of some threads",
      notes: [{ message: "it is allocated here", location: source.allocation.location }],
    });
  }
}

function allocationSource(op: AnyOp, threadPrivate: boolean): Source | undefined {
  return traitsOf(op).results === "memory" && threadPrivate
    ? { kind: "private", allocation: op }
    : undefined;
}

export function verifyMemory(kernel: Kernel): void {
  new MemoryCheck(kernel).verify(kernel.body, false);
}
