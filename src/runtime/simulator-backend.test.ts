import { expect, test, vi } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
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

test("a kernel that would not compile runs, and a note tells so once", async () => {
  const [rows, columns] = [256, 128];
  const large = kernel(
    {
      name: "large",
      inputs: { x: tensor(f32, [2 * rows, columns]) },
      outputs: { out: tensor(f32, [2 * rows, columns]) },
    },
    ({ x, out }) => {
      out.store(x.load().mul(2));
    },
  );
  const x = fromNumbers(f32, [2 * rows, columns], new Float32Array(2 * rows * columns).fill(1));
  const printed = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const codes: string[] = [];
  const devices = [
    await open("simulator"),
    await open("simulator", { seed: 1 }),
    await open("simulator", {
      onNotes: (_, notes) => codes.push(...notes.map(({ code }) => code)),
    }),
  ];
  try {
    for (const device of devices) {
      const { out } = await device.run(large, { x });
      expect(out.data[0]).toBe(2);
      const [note] = device.compilations.flatMap(({ notes }) => notes);
      expect(note?.code).toBe("TW7513");
      expect(note?.message).toContain("sm_90a refuses the kernel with TW6106: load is a tile");
      expect(note?.position?.file).toContain("simulator-backend.test.ts");
    }
    expect(printed.mock.calls.map(([text]: readonly unknown[]) => text)).toEqual([
      expect.stringContaining("kernel large runs on the simulator alone:\nTW7513: "),
    ]);
    expect(codes).toEqual(["TW7513"]);
  } finally {
    for (const device of devices) device.dispose();
    printed.mockRestore();
  }
});
