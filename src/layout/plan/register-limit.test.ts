import { describe, expect, test } from "vitest";
import { bf16, f32 } from "../../formats/dtype.ts";
import { tensor, full, kernel, slice, smem, warps, dot, zeros } from "../../lang/index.ts";
import type { KernelDefinition } from "../../lang/index.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { defaultTarget } from "../../targets/target.ts";
import { placeKernel } from "./place.ts";

function reportOf({ kernel }: KernelDefinition): TilewrightError | undefined {
  try {
    placeKernel(kernel, defaultTarget);
    return undefined;
  } catch (error) {
    if (error instanceof TilewrightError) return error;
    throw error;
  }
}

const copied = (rows: number, columns: number, dtype: typeof f32 | typeof bf16): KernelDefinition =>
  kernel(
    {
      name: "copied",
      inputs: { x: tensor(dtype, [rows, columns]) },
      outputs: { out: tensor(dtype, [rows, columns]) },
    },
    ({ x, out }) => out.store(x.load()),
  );

describe("tiles that no lane has registers for", () => {
  test.each([
    [128, 128, f32, undefined],
    [256, 127, f32, undefined],
    [256, 128, f32, "256 registers a thread"],
    [512, 512, f32, "2048 registers a thread"],
    [256, 128, bf16, undefined],
    [512, 128, bf16, "256 registers a thread"],
  ])("%d × %d of %s", (rows, columns, dtype, found) => {
    const report = reportOf(copied(rows, columns, dtype));
    expect(report?.code).toBe(found === undefined ? undefined : "TW6106");
    if (found !== undefined) expect(report?.found).toContain(found);
  });

  test.each([
    [16, 32768, undefined],
    [16, 65024, undefined],
    [16, 65536, "128 registers a thread"],
    [32, 65536, "64 registers a thread"],
  ] as const)(
    "%d warps and a row of %d, which a processor may not have room for",
    (count, columns, found) => {
      const report = reportOf(
        kernel(
          {
            name: "row",
            warps: count,
            inputs: { x: tensor(f32, [columns]) },
            outputs: { out: tensor(f32, [columns]) },
          },
          ({ x, out }) => out.store(x.load()),
        ),
      );
      expect(report?.code).toBe(found === undefined ? undefined : "TW6106");
      if (found !== undefined) expect(report?.found).toContain(found);
    },
  );

  test("the report names the load's line and how many parts would fit", () => {
    const report = reportOf(copied(512, 512, f32));
    expect(report?.position?.file).toContain("register-limit.test.ts");
    expect(report?.remedy).toContain("16 or more");
  });

  test("a warp on its own has a quarter of the lanes", () => {
    const make = (columns: number): KernelDefinition =>
      kernel(
        {
          name: "alone",
          inputs: { x: tensor(f32, [4, 32, columns]) },
          outputs: { out: tensor(f32, [4, 32, columns]) },
        },
        ({ x, out }) => {
          warps((warp) => out.at(warp).store(x.at(warp).load()));
        },
      );
    expect(reportOf(make(128))).toBeUndefined();
    expect(reportOf(make(512))?.message).toContain("the 32 threads of a warp");
  });

  test("one number for all elements takes one register", () => {
    const make = kernel(
      { name: "filled", outputs: { out: tensor(f32, [512, 512]) } },
      ({ out }) => {
        out.store(full(f32, [512, 512], 1));
      },
    );
    expect(reportOf(make)).toBeUndefined();
  });

  test("what wgmma reads from shared memory by itself takes none", () => {
    const make = kernel(
      {
        name: "product",
        inputs: { x: tensor(f32, [64, 8]) },
        outputs: { out: tensor(f32, [64, 8]) },
        scratch: { a: smem(bf16, [64, 1024]), b: smem(bf16, [1024, 8]) },
      },
      ({ x, out, a, b }) => {
        a.store(zeros(bf16, [64, 1024]));
        b.store(zeros(bf16, [1024, 8]));
        const sum = dot(a.load(), b.load(), { accumulator: x.at(slice(0, 64)).load() });
        out.store(sum);
      },
    );
    expect(reportOf(make)).toBeUndefined();
  });
});
