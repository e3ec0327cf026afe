/**
 * What programs may import, by the names they import it under. What few programs need is evaluated when one does: the library
 * starts in a fraction of the time.
 */
import * as library from "../../../../src/index.ts";
import * as testing from "../../../../src/testing/index.ts";

export type ModuleExports = { readonly [name: string]: unknown };

/** A module, or how to get it. */
export type Importable = ModuleExports | (() => Promise<ModuleExports>);

/** The examples and their helpers go by the paths that examples import them under. */
export const importable: { readonly [specifier: string]: Importable } = {
  tilewright: library,
  "tilewright/testing": testing,
  "tilewright/arrays": () => import("../../../../src/arrays/index.ts"),
  "tilewright/emulator": () => import("../../../../src/emulator/api/index.ts"),
  "tilewright/files": () => import("../../../../src/files/index.ts"),
  "tilewright/graph": () => import("../../../../src/graph/index.ts"),
  "./axpy.ts": () => import("../../../../examples/axpy.ts"),
  "./cluster.ts": () => import("../../../../examples/cluster.ts"),
  "./column-sum.ts": () => import("../../../../examples/column-sum.ts"),
  "./handoff.ts": () => import("../../../../examples/handoff.ts"),
  "./matmul.ts": () => import("../../../../examples/matmul.ts"),
  "./softmax.ts": () => import("../../../../examples/softmax.ts"),
  "./transpose.ts": () => import("../../../../examples/transpose.ts"),
  "./support/data.ts": () => import("../../../../examples/support/data.ts"),
  "./support/product.ts": () => import("../../../../examples/support/product.ts"),
  "./support/roundoff.ts": () => import("../../../../examples/support/roundoff.ts"),
};
