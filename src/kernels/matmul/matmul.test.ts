import { expect, test } from "vitest";
import { bf16, f32 } from "../../formats/dtype.ts";
import { fromNumbers, toNumbers } from "../../formats/hostarray.ts";
import { open } from "../../runtime/open.ts";
import { matmul } from "./matmul.ts";

test("try", async () => {
  const op = matmul({ a: bf16, b: bf16, out: f32 });
  const device = await open("simulator");
  for (const [m, n, k] of [[70, 136, 72], [5, 7, 9]] as const) {
    const a = fromNumbers(bf16, [m, k], Array.from({ length: m * k }, (_, i) => (i % 7) - 3));
    const b = fromNumbers(bf16, [k, n], Array.from({ length: k * n }, (_, i) => (i % 5) - 2));
    console.log(op.plan({ m, n, k }).configuration);
    const { out } = await device.run(op, { a, b });
    const [x, y, z] = [toNumbers(a), toNumbers(b), toNumbers(out)];
    for (let i = 0; i < m; i++)
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let l = 0; l < k; l++) sum += (x[i * k + l] ?? 0) * (y[l * n + j] ?? 0);
        expect(z[i * n + j]).toBe(sum);
      }
  }
  device.dispose();
});
