/**
 * How far what the model chooses lies behind the fastest of what was measured: products of random shapes, tuned on the spot.
 * Both times come from one run of the tuner, in which choices take turns.
 *
 *   node dist/cli/main.js run bench/gpu/untuned.ts -- [SHAPES] [SECONDS] [CHOICES] [SEED]
 */
import { bf16, open } from "tilewright";
import { matmul } from "tilewright/kernels";
import { tune } from "tilewright/tune";
import { Random } from "../../src/support/random.ts";
import { recordText } from "../../src/device/tuning/line.ts";
import type { Choice } from "../../src/device/tuning/line.ts";
import { textTable } from "../report.ts";

const [shapes = "30", seconds = "500", most = "12", seed = "1"] = process.argv.slice(2);
const random = new Random(Number(seed));

/** Sizes of all magnitudes alike, most of them such that the copy engine takes rows as they are. */
function size(least: number, greatest: number): number {
  const drawn = least * (greatest / least) ** random.uniform();
  const unit = random.uniform() < 0.8 ? 64 : 8;
  return drawn < unit ? Math.round(drawn) : Math.round(drawn / unit) * unit;
}

const cases = Array.from({ length: Number(shapes) }, () => ({
  m: size(1, 8192),
  n: size(256, 8192),
  k: size(256, 8192),
}));

const product = matmul({ a: bf16, b: bf16 });
const device = await open("gpu", { onNotes: () => undefined });
try {
  const report = await tune(device, product, {
    ...{ cases, seconds: Number(seconds), most: Number(most) },
    onProgress: ({ done, all }) => {
      process.stderr.write(`${done} of ${all}\n`);
    },
  });
  const found = report.cases.flatMap(({ sizes, lines }) => {
    const { configuration } = product.plan(sizes, device.target);
    const times = lines.flatMap((line) => ("rounds" in line ? [line] : []));
    const wanted = recordText(configuration as Choice);
    const chosen = times.find(({ choice }) => recordText(choice) === wanted);
    const [best] = times;
    return best === undefined || chosen === undefined ? [] : [{ sizes, best, chosen }];
  });
  const ratios = found.map(({ best, chosen }) => best.us / chosen.us);
  const rows = found.map(({ sizes: { m, n, k }, best, chosen }, index) => [
    `${m}x${n}x${k}`,
    best.us.toFixed(1),
    chosen.us.toFixed(1),
    (ratios[index] ?? NaN).toFixed(3),
    JSON.stringify(best.choice),
  ]);
  process.stdout.write(
    textTable([["m×n×k", "tuned, µs", "untuned, µs", "untuned, times tuned", "tuned"], ...rows]),
  );
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  process.stdout.write(
    `worst ${Math.min(...ratios).toFixed(3)}, geometric mean ${mean.toFixed(3)} of ${ratios.length}\n`,
  );
} finally {
  device.dispose();
}
