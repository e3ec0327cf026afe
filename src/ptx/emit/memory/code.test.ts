import { describe, expect, test } from "vitest";
import { hasPtxas } from "../../../../test/ptxas.ts";
import { assemble } from "../../../../test/support/accepted-assembly.ts";
import { emitMoved, expectSame } from "../../../../test/support/memory-kernels.ts";
import type { MovedCase } from "../../../../test/support/memory-kernels.ts";
import { bf16, bool, dtypes, f32, f64, i4, u8 } from "../../../formats/dtype.ts";
import type { LoadOptions } from "../../../lang/index.ts";
import { all, tensor, cdiv, dim, kernel, loop, slice, smem } from "../../../lang/index.ts";
import { namedLayouts } from "../../../layout/algebra/named-layouts.ts";
import { parseLayout } from "../../../layout/algebra/parse-layout.ts";
import type { Instruction } from "../../module.ts";
import { printPtx } from "../../printer.ts";

/** All instructions of the kernel. */
function instructionsOf(moved: MovedCase): readonly Instruction[] {
  return emitMoved(moved).module.declarations.flatMap((each) =>
    each.kind === "function"
      ? (each.body ?? []).filter((statement) => statement.kind === "instruction")
      : [],
  );
}

function count(instructions: readonly Instruction[], start: string): number {
  return instructions.filter(({ opcode }) => opcode.startsWith(start)).length;
}

const n = dim("n", { multipleOf: 64 });
const odd = dim("odd");

function copyRows(rows: typeof n, options: LoadOptions<"bf16"> = {}) {
  return kernel(
    {
      name: "rows",
      grid: { i: cdiv(rows, 64) },
      inputs: { x: tensor(bf16, [rows, 128]) },
      outputs: { out: tensor(bf16, [rows, 128]) },
    },
    ({ i, x, out }) => {
      const here = slice(i.mul(64), 64);
      out.at(here).store(x.at(here).load(options));
    },
  );
}

describe("accesses to global memory", () => {
  test("hand the cache a policy where they are told to", async () => {
    const code = instructionsOf(copyRows(n, { evict: "last" }));
    expect(count(code, "createpolicy.fractional.L2::evict_last.b64")).toBe(1);
    expect(count(code, "ld.global.nc.L2::cache_hint.v4.b32")).toBe(8);
    expect(count(instructionsOf(copyRows(n)), "createpolicy")).toBe(0);
    expect(() => copyRows(n, { evict: "never" as "last" })).toThrow("TW2079");
    const { kernel: first } = copyRows(n, { evict: "first" });
    await expectSame({ kernel: first, dimensions: { n: 128 } }, 1, "evict first");
  });

  test("test nothing where the window is inside for certain", () => {
    const code = instructionsOf(copyRows(n));
    expect(count(code, "setp")).toBe(0);
    expect(code.filter(({ guard }) => guard !== undefined)).toEqual([]);
    expect(count(code, "ld.global.nc.v4.b32")).toBe(8);
    expect(count(code, "st.global.v4.b32")).toBe(8);
  });

  test("test each row of a lane once where rows may overhang", () => {
    const code = instructionsOf(copyRows(odd));
    expect(count(code, "setp")).toBe(16);
    expect(count(code, "ld.global.nc.v4.b32")).toBe(8);
    expect(count(code, "ld.global")).toBe(8);
    expect(count(code, "bra")).toBe(0);
  });

  test("take single elements aside where vectors may lie across the end", () => {
    const { kernel: body } = kernel(
      {
        name: "line",
        grid: { i: cdiv(odd, 1024) },
        inputs: { x: tensor(f32, [odd]) },
        outputs: { out: tensor(f32, [odd]) },
      },
      ({ i, x, out }) => {
        const here = slice(i.mul(1024), 1024);
        out.at(here).store(x.at(here).load());
      },
    );
    const code = instructionsOf({ kernel: body });
    const end = code.findIndex(({ opcode }) => opcode === "ret");
    const [near, far] = [code.slice(0, end), code.slice(end)];
    expect(count(near, "ld.global.nc.v4.b32")).toBe(2);
    expect(count(near, "ld.global")).toBe(2);
    expect(count(far, "ld.global.nc.b32")).toBe(8);
    expect(count(far, "st.global.b32")).toBe(8);
  });

  test("need no test in a loop over whole tiles, nor for a loop's counter", () => {
    const { kernel: body } = kernel(
      {
        name: "sums",
        grid: { i: cdiv(n, 64) },
        inputs: { x: tensor(f32, [64, n]) },
        outputs: { out: tensor(f32, [64]) },
      },
      ({ x, out }) => {
        const sum = loop({ to: n, step: 64, carry: x.at(all, 0).load() }, (step, total) =>
          total.add(x.at(all, slice(step, 64)).load().sum({ axis: 1 })),
        );
        out.store(sum);
      },
    );
    const code = instructionsOf({ kernel: body });
    const guarded = code.filter(({ guard, opcode }) => guard && opcode.startsWith("ld.global"));
    expect(guarded).toEqual([]);
  });
});

/** A tile in the layout of wgmma's accumulator, through shared memory and back. */
function throughMatrices(layout: string, turned: boolean) {
  return kernel(
    {
      name: "matrices",
      grid: { i: 2 },
      inputs: { x: tensor(bf16, [64, 64]) },
      outputs: { out: tensor(bf16, [2, 64, 64]) },
      scratch: { buffer: smem(bf16, [2, 64, 64], { layout }) },
    },
    ({ i, x, out, buffer }) => {
      const window = turned ? buffer.at(i).transpose() : buffer.at(i);
      window.store(x.load());
      out.at(i).store(window.load());
    },
  );
}

describe("matrices in shared memory", () => {
  test.each([
    ["shared(swizzle 128)", false],
    ["shared(tile 8 64, swizzle 128)", false],
    ["shared(tile 8 32, swizzle 64)", false],
    ["shared(tile 8 16, swizzle 32)", false],
    ["shared()", false],
    ["shared(order 1 0)", false],
    ["shared(tile 8 64, swizzle 128)", true],
    ["shared(swizzle 128)", true],
  ])("%s, transposed %s", async (text, turned) => {
    const moved = {
      kernel: throughMatrices(text, turned).kernel,
      layout: () => namedLayouts.wgmma,
    };
    const code = instructionsOf(moved);
    expect(count(code, "stmatrix.sync.aligned.m8n8.x4")).toBe(4);
    expect(count(code, "ldmatrix.sync.aligned.m8n8.x4")).toBe(4);
    // One exclusive or for each of the columns' chunks but the first, and one for the swizzle itself.
    expect(count(code, "xor")).toBeLessThanOrEqual(8);
    await expectSame(moved, 1, text);
  });
});

describe.runIf(hasPtxas)("the assembler accepts every format", () => {
  const layouts = [
    "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)",
    "(W0 W1 | R0 R1 R2 L0 L1 L2)",
    "(R0 L0 L1 L2 W0 W1 | L3 L4)",
    "flat(L0 L1 L2 L3 L4 W0 W1)",
  ].map((text) => parseLayout(text));

  test.each([...new Set([i4, u8, bool, bf16, f32, f64, ...Object.values(dtypes)])])(
    "$name",
    (dtype) => {
      const { kernel: body } = kernel(
        {
          name: "copies",
          grid: { i: cdiv(odd, 24) },
          inputs: { x: tensor(dtype, [odd, 48]) },
          outputs: { out: tensor(dtype, [odd, 48]) },
          scratch: { buffer: smem(dtype, [24, 48]) },
        },
        ({ i, x, out, buffer }) => {
          const here = slice(i.mul(24), 24);
          buffer.store(x.at(here).load());
          out.at(here).store(buffer.load());
          out.at(i, 0).store(x.at(i, 1).loadScalar());
        },
      );
      const layout = layouts[dtype.bits % layouts.length] ?? namedLayouts.replicated;
      const { module } = emitMoved({ kernel: body, layout: () => layout });
      expect(assemble(printPtx(module), "sm_90a")).toBe("");
    },
  );

  test("matrices", () => {
    const texts = ["shared(swizzle 128)", "shared(order 1 0)"];
    for (const text of texts) {
      const { kernel: body } = throughMatrices(text, false);
      const { module } = emitMoved({ kernel: body, layout: () => namedLayouts.wgmma });
      expect(assemble(printPtx(module), "sm_90a"), text).toBe("");
    }
  });
});
