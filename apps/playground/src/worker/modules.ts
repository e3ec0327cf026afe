/** What programs may import, by the names they import it under. */
import * as library from "../../../../src/index.ts";
import * as arrays from "../../../../src/arrays/index.ts";
import * as emulator from "../../../../src/emulator/api/index.ts";
import * as files from "../../../../src/files/index.ts";
import * as graph from "../../../../src/graph/index.ts";
import * as testing from "../../../../src/testing/index.ts";
import * as axpy from "../../../../examples/axpy.ts";
import * as cluster from "../../../../examples/cluster.ts";
import * as columnSum from "../../../../examples/column-sum.ts";
import * as handoff from "../../../../examples/handoff.ts";
import * as matmul from "../../../../examples/matmul.ts";
import * as softmax from "../../../../examples/softmax.ts";
import * as transpose from "../../../../examples/transpose.ts";
import * as data from "../../../../examples/support/data.ts";
import * as product from "../../../../examples/support/product.ts";
import * as roundoff from "../../../../examples/support/roundoff.ts";

export type ModuleExports = { readonly [name: string]: unknown };

/** The examples and their helpers go by the paths that examples import them under. */
export const importable: { readonly [specifier: string]: ModuleExports } = {
  tilewright: library,
  "tilewright/arrays": arrays,
  "tilewright/emulator": emulator,
  "tilewright/files": files,
  "tilewright/graph": graph,
  "tilewright/testing": testing,
  "./axpy.ts": axpy,
  "./cluster.ts": cluster,
  "./column-sum.ts": columnSum,
  "./handoff.ts": handoff,
  "./matmul.ts": matmul,
  "./softmax.ts": softmax,
  "./transpose.ts": transpose,
  "./support/data.ts": data,
  "./support/product.ts": product,
  "./support/roundoff.ts": roundoff,
};
