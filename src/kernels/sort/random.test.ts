/**
 * Orders and best elements of random arrays, exactly.
 *
 *   ORDER_CASES=200 ORDER_DEVICE=gpu ORDER_SEED=7 npx vitest run src/kernels/sort/random.test.ts
 */
import { expect, test } from "vitest";
import { bf16, f16, f32, f64, i16, i32, i8, u16, u32, u8 } from "../../formats/dtype.ts";
import type { DType } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { array } from "../../lang/index.ts";
import { open } from "../../runtime/open.ts";
import { Random } from "../../support/random.ts";
import { sort } from "./sort.ts";
import { topK } from "./top-k.ts";

const count = Number(process.env["ORDER_CASES"] ?? 3);
const seed = Number(process.env["ORDER_SEED"] ?? 1);
const kind = (process.env["ORDER_DEVICE"] ?? "emulator") as "emulator" | "gpu" | "simulator";

const formats: readonly DType[] = [bf16, f16, f32, f64, i8, i16, i32, u8, u16, u32];

interface OrderCase {
  readonly rows: number;
  readonly length: number;
  readonly dtype: DType;
  readonly descending: boolean;
  readonly k: number;
  readonly radix: boolean;
}

function randomCase(number: number): OrderCase {
  const random = new Random(number);
  const most = kind === "gpu" ? 2 ** 20 : 2 ** 10;
  const length = 1 + Math.floor(2 ** (random.uniform() * Math.log2(most)));
  return {
    length,
    rows: 1 + random.below(Math.max(1, Math.min(40, Math.floor(most / length)))),
    dtype: random.pick(formats),
    descending: random.uniform() < 0.5,
    k: 1 + random.below(Math.min(length, 600)),
    radix: random.uniform() < 0.5,
  };
}

/** Small whole numbers, so that many are equal, or numbers of all sizes. */
function numbersOf({ dtype, rows, length }: OrderCase, random: Random): readonly number[] {
  const spread = random.pick([3, 100, 2 ** Math.min(30, dtype.bits - 1)]);
  const lowest = dtype.kind === "unsigned" ? 0 : -spread / 2;
  const drawn = Array.from({ length: rows * length }, () =>
    Math.floor(lowest + spread * random.uniform()),
  );
  return [...toNumbers(fromNumbers(dtype, [rows, length], drawn))];
}

test(
  `orders of random arrays on the ${kind}, from seed ${seed}`,
  { timeout: 600_000 },
  async () => {
    const device = await open(kind);
    for (let number = seed; number < seed + count; number += 1) {
      const one = randomCase(number);
      const { dtype, rows, length, descending, k, radix } = one;
      const values = numbersOf(one, new Random(number + 1));
      const x = fromNumbers(dtype, [rows, length], values);
      const sign = descending ? -1 : 1;
      const placesOf = (row: number): readonly number[] =>
        Array.from({ length }, (_, place) => place).sort(
          (left, right) =>
            sign * ((values[row * length + left] ?? NaN) - (values[row * length + right] ?? NaN)) ||
            left - right,
        );
      const places = Array.from({ length: rows }, (_, row) => placesOf(row));
      const sorted = sort({
        ...{ x: array(dtype, [rows, length]), descending, indices: true },
        ...(radix && { configuration: { warps: 4, items: 4 } }),
      });
      const text = `seed ${number}: ${JSON.stringify({ ...one, dtype: dtype.name })}`;
      const { out, indices } = await device.run(sorted, { x });
      expect([...toNumbers(indices)], text).toEqual(places.flat());
      expect([...toNumbers(out)], text).toEqual(
        places.flatMap((own, row) => own.map((place) => values[row * length + place])),
      );
      const best = topK({ x: array(dtype, [rows, length]), k, least: !descending });
      const found = await device.run(best, { x });
      expect([...toNumbers(found.indices)], text).toEqual(places.flatMap((own) => own.slice(0, k)));
      if (kind === "gpu") console.log(`${text}: right`);
    }
    device.dispose();
  },
);
