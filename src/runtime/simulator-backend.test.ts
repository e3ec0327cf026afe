import { expect, test } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { tensor, kernel, smem } from "../lang/index.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { open } from "./open.ts";

test("findings of one line that read alike are one note, with their number", async () => {
  const unrolled = kernel(
    {
      name: "unrolled",
      outputs: { out: tensor(f32, [4]) },
      scratch: { rows: smem(f32, [4, 4]), other: smem(f32, [4]) },
    },
    ({ out, rows, other }) => {
      let sum = other.load();
      for (let row = 0; row < 4; row++) sum = sum.add(rows.at(row).load());
      out.store(sum);
    },
  );
  const device = await open("simulator");
  let all = 0;
  const listening = await open("simulator", { onFindings: ({ length }) => (all = length) });
  try {
    const error: unknown = await device.run(unrolled, {}).catch((thrown: unknown) => thrown);
    if (!(error instanceof TilewrightError)) throw error;
    expect(error.summary).toBe("load of other, which nobody has written");
    expect(error.notes.map(({ message }) => message)).toEqual([
      "other is allocated here",
      "also TW3002: load of rows, which nobody has written, 4 times",
    ]);
    await expect(listening.run(unrolled, {})).rejects.toThrow("TW3002");
    expect(all).toBe(5);
  } finally {
    device.dispose();
    listening.dispose();
  }
});
