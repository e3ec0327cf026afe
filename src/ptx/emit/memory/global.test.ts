import { describe, test } from "vitest";
import { expectSame } from "../../../../test/support/memory-kernels.ts";
import { bf16, bool, f32, f64, i32, i4, u8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import { all, tensor, cdiv, dim, gmem, kernel, slice } from "../../../lang/index.ts";
import type { Value } from "../../../ir/node.ts";
import { fitsShape } from "../../../layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { parseLayout } from "../../../layout/algebra/parse-layout.ts";

const layouts = [
  "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)",
  "(R0 L3 L4 R1 W0 W1 | L2 L0 L1)",
  "(L0 L1 L2 W0 W1 | R0 R1 R2 L3 L4)",
  "(W0 W1 | R0 R1 L0 L1 L2 L3)",
  "(L0 L1 L2 L3 L4 W0 |)",
  "(R2 R0 R1 L0 L1 L2 | R3 W0 L3 L4)",
  "flat(R0 R1 L0 L1 L2 L3 L4 W0 W1)",
  "flat(L0 L1 L2 L3 L4 W0 W1)",
  "(R0 R1)",
];

const [, , wide, , column, mixed, flat] = layouts.map((text) => parseLayout(text));

/** Copies tiles of [16, 24] of an array of [22, 40], one for each block. */
function copy(dtype: DType) {
  return kernel(
    {
      name: "copy",
      grid: { i: 2, j: 2 },
      inputs: { x: tensor(dtype, [22, 40]) },
      outputs: { out: tensor(dtype, [22, 40]) },
    },
    ({ i, j, x, out }) => {
      const here = [slice(i.mul(16), 16), slice(j.mul(24), 24)] as const;
      out.at(...here).store(x.at(...here).load());
    },
  );
}

const cases = [
  ...[i4, bf16].flatMap((dtype) => layouts.map((text) => [dtype, text] as const)),
  ...[u8, bool, f32, f64].flatMap((dtype) =>
    layouts.filter((_, index) => index % 3 === 0).map((text) => [dtype, text] as const),
  ),
];

describe("overhanging tiles", () => {
  test.each(cases.map(([dtype, text]) => [dtype.name, text, dtype] as const))(
    "%s in %s",
    async (name, text, dtype) => {
      const layout = parseLayout(text);
      const { kernel: body } = copy(dtype);
      await expectSame({ kernel: body, layout: () => layout }, 1, `${name} in ${text}`);
    },
  );
});

const n = dim("n");
const even = dim("k", { multipleOf: 8 });

const windows = {
  "from before the array's start": () =>
    kernel(
      {
        name: "shifted",
        grid: { i: 3 },
        inputs: { x: tensor(bf16, [16, 32]) },
        outputs: { out: tensor(bf16, [3, 16, 16]) },
      },
      ({ i, x, out }) => {
        const rows = slice(i.mul(5).sub(3), 16);
        const columns = slice(i.mul(16).sub(7), 16);
        out.at(i).store(x.at(rows, columns).load({ fill: 3 }));
      },
    ),
  "of a window that overhangs": () =>
    kernel(
      {
        name: "nested",
        grid: { i: 4 },
        inputs: { x: tensor(f32, [20, 20]) },
        outputs: { out: tensor(f32, [4, 8, 8]) },
      },
      ({ i, x, out }) => {
        const outer = x.at(slice(i.mul(6), 12), slice(4, 14));
        out.at(i).store(outer.at(slice(i.mul(3), 8), slice(i.mul(4), 8)).load({ fill: -1 }));
      },
    ),
  "that are transposed": () =>
    kernel(
      {
        name: "turned",
        grid: { i: cdiv(n, 16) },
        inputs: { x: tensor(u8, [n, 24]) },
        outputs: { out: tensor(u8, [24, n]) },
      },
      ({ i, x, out }) => {
        const tile = x
          .at(slice(i.mul(16), 16), all)
          .transpose()
          .load();
        out.at(all, slice(i.mul(16), 16)).store(tile);
      },
    ),
  "whose rows the launch decides": () =>
    kernel(
      {
        name: "rows",
        grid: { i: cdiv(n, 8), j: cdiv(even, 16) },
        inputs: { x: tensor(bf16, [n, even]) },
        outputs: { out: tensor(bf16, [n, even]) },
      },
      ({ i, j, x, out }) => {
        const here = [slice(i.mul(8), 8), slice(j.mul(16), 16)] as const;
        out.at(...here).store(x.at(...here).load());
      },
    ),
  "with strides of their own": () =>
    kernel(
      {
        name: "strided",
        grid: { i: 2 },
        inputs: { x: tensor(f32, [20, 16], { strides: [40, 2] }) },
        outputs: { out: tensor(f32, [20, 16], { strides: [1, 24] }) },
      },
      ({ i, x, out }) => {
        const here = slice(i.mul(16), 16);
        out.at(here).store(x.at(here).load());
      },
    ),
  "reshaped as a whole": () =>
    kernel(
      {
        name: "whole",
        grid: { i: 3 },
        inputs: { x: tensor(bf16, [n, 8, 4]) },
        outputs: { out: tensor(bf16, [n, 32]) },
      },
      ({ i, x, out }) => {
        const here = slice(i.mul(8), 8);
        out.at(here).store(x.reshape([n, 32]).at(here).load());
      },
    ),
  "reshaped after a slice": () =>
    kernel(
      {
        name: "sliced",
        grid: { i: 2 },
        inputs: { x: tensor(f32, [20, 4, 8]) },
        outputs: { out: tensor(f32, [2, 256]) },
      },
      ({ i, x, out }) => {
        out.at(i).store(
          x
            .at(slice(i.mul(8).add(2), 8))
            .reshape([256])
            .load(),
        );
      },
    ),
  "reshaped across gaps": () =>
    kernel(
      {
        name: "gaps",
        grid: { i: 3 },
        inputs: { x: tensor(bf16, [10, n]) },
        outputs: { out: tensor(bf16, [3, 6, 10]) },
      },
      ({ i, x, out }) => {
        const window = x.at(slice(i.mul(4), 10), slice(i.mul(2), 6));
        out.at(i).store(window.reshape([6, 10]).load({ fill: 5 }));
      },
    ),
  "cut from a reshaped one": () =>
    kernel(
      {
        name: "cut",
        grid: { i: 3 },
        inputs: { x: tensor(i4, [10, 12]) },
        outputs: { out: tensor(i4, [3, 8, 8]) },
      },
      ({ i, x, out }) => {
        const window = x.at(slice(1, 8), slice(2, 9)).reshape([9, 8]).transpose();
        out.at(i).store(window.at(slice(i.mul(2), 8), slice(i.mul(3), 8)).load());
      },
    ),
};

function fitting({ type }: Value, layout: RegisterLayout): RegisterLayout | undefined {
  return type.kind === "tile" && fitsShape(layout, type.shape) ? layout : undefined;
}

describe("windows", () => {
  test.each(Object.entries(windows))("%s", async (name, make) => {
    const { kernel: body } = make();
    for (const [index, layout] of [undefined, wide, column, mixed, flat].entries()) {
      const message = `${name}, ${layout?.text ?? "as placed"}`;
      const fits = layout && ((value: Value) => fitting(value, layout));
      const dimensions = { n: 21, k: 40 };
      await expectSame({ kernel: body, dimensions, layout: fits }, index, message);
    }
  });
});

describe("scalars", () => {
  test("are loaded by all lanes and stored by one", async () => {
    for (const dtype of [i4, u8, bool, bf16, f32, f64]) {
      const { kernel: body } = kernel(
        {
          name: "scalars",
          grid: { i: 5 },
          inputs: { x: tensor(dtype, [5, 3]) },
          outputs: { out: tensor(dtype, [7, 5]) },
        },
        ({ i, x, out }) => {
          out.at(i, 2).store(x.at(i, 1).loadScalar());
        },
      );
      await expectSame({ kernel: body }, 3, dtype.name);
    }
  });
});

test("a lone element of 4 bits in scratch whose bytes fill no word", async () => {
  const { kernel: body } = kernel(
    {
      name: "odd",
      inputs: { x: tensor(i4, [5]) },
      outputs: { out: tensor(i32, [5]) },
      scratch: { own: gmem(i4, [5]) },
    },
    ({ x, out, own }) => {
      own.store(x.load());
      own.at(slice(4, 1)).store(x.at(slice(1, 1)).load());
      out.store(own.load().cast(i32));
    },
  );
  await expectSame({ kernel: body, layout: () => parseLayout("(L0 L1 L2)") }, 1, "an odd number");
});

test("elements one by one of windows that begin before their array or end behind it", async () => {
  const { kernel: body } = kernel(
    {
      name: "before",
      grid: { i: 4 },
      inputs: { x: tensor(f32, [3, 22]) },
      outputs: { out: tensor(f32, [4, 2, 12]) },
      inouts: { y: tensor(f32, [4, 3, 22]) },
    },
    ({ i, x, out, y }) => {
      const here = [all, slice(i.mul(8).sub(3), 8)] as const;
      out.at(i).store(
        x
          .at(...here)
          .reshape([2, 12])
          .load(),
      );
      y.at(i)
        .at(...here)
        .reshape([2, 12])
        .store(x.at(slice(0, 2), slice(0, 12)).load());
    },
  );
  await expectSame({ kernel: body, layout: () => parseLayout("(R0 | L0 L1 L2 L3)") }, 1, "before");
});
