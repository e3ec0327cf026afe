/** Where the user reads of a product: at the call that led to its kernel, or at a line of a function of the user's own. */
import { expect, test } from "vitest";
import { bf16 } from "../../formats/dtype.ts";
import { walkOps } from "../../ir/traverse.ts";
import type { Tile } from "../../lang/index.ts";
import { captureLocation } from "../../support/location.ts";
import { matmul } from "./matmul.ts";
import type { MatmulConfiguration } from "./configuration.ts";

const configuration: MatmulConfiguration = {
  ...{ kernel: "persistent", consumers: 1, stages: 2 },
  ...{ schedule: "tiles", columns: 64, swapAB: false, cluster: 1 },
};

test("ops are where the kernel was asked for, and those of an epilogue where that is written", () => {
  const written = captureLocation().position?.line ?? NaN;
  const epilogue = ({ sums }: { readonly sums: Tile<"f32"> }): Tile => sums.mul(2).cast(bf16);
  const product = matmul({ a: bf16, b: bf16, configuration, epilogue });
  const [definition] = product.kernels({ m: 64, n: 64, k: 64 });
  const lines = new Map<number | undefined, Set<string>>();
  if (definition !== undefined)
    walkOps(definition.kernel.body, ({ kind, location: { position } }) => {
      const known = lines.get(position?.line) ?? new Set();
      lines.set(position?.line, known.add(kind));
    });
  expect(new Set(lines.keys())).toEqual(new Set([written + 1, written + 3]));
  expect(lines.get(written + 1)).toEqual(new Set(["binary", "cast", "constant"]));
});
