/**
 * The example of persistent products on blocks and pairs of blocks: right on simulator and emulator, taken by the assembler, and, of a pair, the bits of the
 * published model of tensor cores.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { f16, f32, hostArray, open } from "tilewright";
import type { HostArray } from "tilewright";
import { main, pairs, persistent, persistentOf } from "../examples/tcgen05-persistent.ts";
import { readNpz } from "../src/files/index.ts";
import { lower } from "../src/lower/stages.ts";
import { printPtx } from "../src/ptx/printer.ts";
import { targets } from "../src/targets/target.ts";
import { assemble } from "./support/accepted-assembly.ts";
import { hasPtxas } from "./support/assembler.ts";
import { takesAll, usually } from "./support/sample.ts";

type Kind = "simulator" | "emulator";

/** What the emulator runs is lowered from what the simulator runs: usually the example runs on one of them, and its pair on the other. */
test.each(usually<Kind>(["simulator"], ["emulator"]))("is right on the %s", async (kind) => {
  const device = await open(kind, { target: "sm_100a" });
  const { worst } = await main(device);
  device.dispose();
  expect(worst).toBeLessThanOrEqual(1);
});

test.skipIf(!hasPtxas)("is assembled, for a block and for a pair", () => {
  for (const { kernel } of [persistent, pairs])
    for (const target of usually<"sm_100a" | "sm_103a">(["sm_100a"], ["sm_103a"]))
      expect(assemble(printPtx(lower(kernel, targets[target]).module), target)).toBe("");
});

describe("a pair", () => {
  test.each(usually<Kind>(["emulator"], ["simulator"]))(
    "gives the model's bits on the %s",
    async (kind) => {
      const bytes = readFileSync("test/fixtures/ptx/triton/tensor-memory/f16-2cta.npz");
      const inputs = (await readNpz(bytes)) as Readonly<Record<string, HostArray>>;
      const { a, b, model_sha256: model } = inputs;
      if (a === undefined || b === undefined || model === undefined) throw new Error("no inputs");
      const [m, n, k] = [256, 128, 64];
      // Columns of the product are rows of b there.
      const codes = new Uint16Array(k * n);
      for (let at = 0; at < k * n; at += 1)
        codes[at] = Number(b.data[(at % n) * k + Math.floor(at / n)]);
      const left = hostArray(f16, [m, k], Uint16Array.from(a.data, Number));
      const right = hostArray(f16, [k, n], codes);
      const definition = persistentOf({
        pair: true,
        dtype: f16,
        result: f32,
        columns: n,
        workers: 1,
      });
      for (const seed of takesAll ? [0, 1, 2, 3, 4, 5, 6, 7] : [0]) {
        const device = await open(kind, { target: "sm_100a", seed });
        const { c } = await device.run(definition, { a: left, b: right });
        device.dispose();
        const { buffer, byteOffset, byteLength } = c.data;
        const hash = createHash("sha256").update(new Uint8Array(buffer, byteOffset, byteLength));
        expect(hash.digest("hex")).toBe(Buffer.from(model.data as Uint8Array).toString("hex"));
      }
    },
  );
});
