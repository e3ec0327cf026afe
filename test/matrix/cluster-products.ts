/**
 * Products in blocks of a cluster, of operands that take several boxes: an H200 has the rank of a block in its shared
 * addresses, and descriptors of operands have no room for it.
 */
import { bf16, f32 } from "../../src/formats/dtype.ts";
import {
  accumulator,
  tensor,
  barrier,
  clusterRank,
  clusterSync,
  copyAsync,
  kernel,
  slice,
  smem,
  wgmma,
} from "../../src/lang/index.ts";
import { exactCase } from "./case.ts";
import type { MatrixCase } from "./case.ts";
import { ordinaryNumbers } from "./inputs.ts";

const [rows, columns, depth] = [64, 128, 64];

export function clusterProductCases(): readonly MatrixCase[] {
  const a = ordinaryNumbers(bf16, [rows, depth], 1);
  const b = ordinaryNumbers(bf16, [depth, columns], 2);
  return [2, 4].flatMap((size) =>
    (["depth", "columns"] as const).map((shared) =>
      exactCase(`products in clusters of ${size}, ${shared} shared`, { a, b }, () =>
        kernel(
          {
            name: "cluster_product",
            grid: { i: 2, rank: size },
            cluster: { rank: size },
            inputs: { a: tensor(bf16, [rows, depth]), b: tensor(bf16, [depth, columns]) },
            outputs: { out: tensor(f32, [2, size, rows, columns]) },
            scratch: {
              left: smem(bf16, [rows, depth]),
              right: smem(bf16, [depth, columns]),
              landed: barrier({ arrivals: 1 + size }),
            },
          },
          ({ i, rank, a: ofRows, b: ofColumns, out, left, right, landed }) => {
            copyAsync(ofRows, left, { barrier: landed });
            const share = (shared === "depth" ? depth : columns) / size;
            const mine = slice(clusterRank("rank").mul(share), share);
            const all = slice(0, depth);
            const [source, target] =
              shared === "depth"
                ? [ofColumns.at(mine), right.at(mine)]
                : [ofColumns.at(all, mine), right.at(all, mine)];
            copyAsync(source, target, { barrier: landed, multicast: ["rank"] });
            landed.wait();
            const product = wgmma(accumulator(f32, [rows, columns]), left, right).wait();
            out.at(i, rank).store(product);
            clusterSync();
          },
        ),
      ),
    ),
  );
}
