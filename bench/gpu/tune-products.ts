/**
 * Tunes products for the shapes of the benchmark, into a file that comes with the package or that `TILEWRIGHT_TUNING`
 * names. A run that is stopped goes on where it was.
 *
 *   node dist/cli/main.js run bench/gpu/tune-products.ts -- FILE [SECONDS] [kn|nk] [bf16|f16] [CHOICES] [MxNxK …]
 *
 * Of each shape so many choices are measured, those that the model thinks fastest; all of them by default. Shapes are those of the
 * benchmark unless others are named.
 */
import { tensor, bf16, dim, f16, open } from "tilewright";
import { matmul } from "tilewright/kernels";
import { tune } from "tilewright/tune";
import { productShapes } from "./parts.ts";

const [file = "tuning.jsonl", seconds = "500", lies = "kn", name = "bf16", most, ...named] =
  process.argv.slice(2);
const shapes =
  named.length === 0 ? productShapes : named.map((shape) => shape.split("x").map(Number));
const [m, n, k] = [dim("m"), dim("n"), dim("k")];
const format = name === "f16" ? f16 : bf16;
const product = matmul({
  a: tensor(format, [m, k]),
  b: tensor(format, [k, n], lies === "nk" ? { strides: [1, k] } : {}),
});
const device = await open("gpu");
try {
  const report = await tune(device, product, {
    cases: shapes.map(([rows, columns, depth]) => ({ m: rows, n: columns, k: depth })),
    file,
    seconds: Number(seconds),
    ...(most !== undefined && { most: Number(most) }),
    onProgress: ({ done, all, doing, sizes }) => {
      process.stderr.write(`${JSON.stringify(sizes)} ${doing}: ${done} of ${all}\n`);
    },
  });
  process.stdout.write(report.table());
} finally {
  device.dispose();
}
