import { describe, test } from "vitest";
import { findingsOf } from "../../test/simulation.ts";
import { bf16, f32, tf32, u16 } from "../formats/dtype.ts";
import type { DType } from "../formats/dtype.ts";
import { accumulator, tensor, commitShared, full, kernel, smem, wgmma } from "../lang/index.ts";

const { expectFinding } = findingsOf(import.meta.url);

/** A product of ones with the same metadata everywhere. */
function product(dtype: DType<"bf16" | "tf32">, columns: number, metadata: number) {
  return kernel(
    {
      name: "sparse",
      outputs: { out: tensor(f32, [64, 8]) },
      scratch: { a: smem(dtype, [64, 32]), b: smem(dtype, [8, 64]) },
    },
    ({ out, a, b }) => {
      a.store(full(dtype, [64, 32], 1));
      b.store(full(dtype, [8, 64], 1));
      commitShared();
      const sparse = full(u16, [64, columns], metadata);
      out.store(wgmma(accumulator(f32, [64, 8]), a, b.transpose(), { sparse }).wait()); // sparse wgmma
    },
  );
}

describe("metadata of sparse products that mean nothing", () => {
  test("name an element twice", async () => {
    const text = /both indices are the same/;
    const marks = ["sparse wgmma"];
    await expectFinding(product(bf16, 4, 0x4454), {}, { code: "TW3024", marks, text });
  });

  test("name halves of two tf32", async () => {
    const marks = ["sparse wgmma"];
    const text = /of tf32 there are 0b0100 and 0b1110/;
    await expectFinding(product(tf32, 8, 0x4448), {}, { code: "TW3024", marks, text });
  });
});
