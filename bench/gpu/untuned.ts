/**
 * How far what the model chooses lies behind the fastest of what was measured: products of random shapes, tuned on the spot.
 * Both times come from one run of the tuner, in which choices take turns. Each shape has its share of the time and is told of as
 * soon as it is done, so that a run that is stopped has told of those before.
 *
 *   node dist/cli/main.js run bench/gpu/untuned.ts -- [SHAPES] [SECONDS] [CHOICES] [SEED]
 */
import { bf16, open } from "tilewright";
import { matmul } from "tilewright/kernels";
import { tune } from "tilewright/tune";
import type { CaseReport } from "tilewright/tune";
import { Random } from "../../src/support/random.ts";
import { recordText } from "../../src/device/tuning/line.ts";
import type { Choice } from "../../src/device/tuning/line.ts";

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
const ratios: number[] = [];

/** Says how what the model chooses lies beside the fastest that was measured for a shape. */
function compare({ lines }: CaseReport, sizes: (typeof cases)[number]): void {
  const times = lines.flatMap((line) => ("rounds" in line ? [line] : []));
  const wanted = recordText(product.plan(sizes, device.target).configuration as Choice);
  const chosen = times.find(({ choice }) => recordText(choice) === wanted);
  const [best] = times;
  const name = `${sizes.m}x${sizes.n}x${sizes.k}`;
  if (best === undefined || chosen === undefined) {
    process.stdout.write(`${name}: not measured in time\n`);
    return;
  }
  const ratio = best.us / chosen.us;
  ratios.push(ratio);
  const told = [`tuned ${best.us.toFixed(1)} µs`, `untuned ${chosen.us.toFixed(1)} µs`];
  const other = ratio < 1 ? ` ${JSON.stringify(best.choice)}` : "";
  process.stdout.write(`${name}: ${told.join(", ")}, ${ratio.toFixed(3)} of tuned${other}\n`);
}

const until = performance.now() + 1000 * Number(seconds);
try {
  for (const [index, sizes] of cases.entries()) {
    // What shapes before did not use is there for those that follow.
    const share = (until - performance.now()) / 1000 / (cases.length - index);
    if (share <= 0) break;
    const report = await tune(device, product, {
      ...{ cases: [sizes], seconds: share, most: Number(most) },
    });
    for (const found of report.cases) compare(found, sizes);
  }
  const mean = Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
  const near = ratios.filter((ratio) => ratio >= 0.95).length;
  process.stdout.write(
    `worst ${Math.min(...ratios).toFixed(3)}, geometric mean ${mean.toFixed(3)} of ${ratios.length}, ${near} at 0.95 or more\n`,
  );
} finally {
  device.dispose();
}
