import { describe, expect, test } from "vitest";
import { expectSame } from "../../../../test/support/memory-kernels.ts";
import { sampleOf } from "../../../../test/support/sample.ts";
import { bf16, bool, f32, f64, i32, i4, u8 } from "../../../formats/dtype.ts";
import type { DType } from "../../../formats/dtype.ts";
import type { Value } from "../../../ir/node.ts";
import {
  all,
  tensor,
  clusterRank,
  clusterSync,
  kernel,
  slice,
  smem,
  union,
} from "../../../lang/index.ts";
import type { Ref, Scalar } from "../../../lang/index.ts";
import { fitsShape } from "../../../layout/algebra/register-layout.ts";
import type { RegisterLayout } from "../../../layout/algebra/register-layout.ts";
import { byteOffset, parseSharedLayout } from "../../../layout/algebra/shared-layout.ts";
import { placeKernel } from "../../../layout/plan/place.ts";
import { defaultTarget } from "../../../targets/target.ts";
import { parseLayout } from "../../../layout/algebra/parse-layout.ts";
import { storedDigits, storedNumber } from "../../../layout/access/shared-storage.ts";

const registers = [
  "(L2 L3 L4 R1 W0 W1 | R0 L0 L1)",
  "(R0 L3 L4 R1 W0 W1 | L2 L0 L1)",
  "(L0 L1 L2 W0 W1 | R0 R1 R2 L3 L4)",
  "(L0 L1 L2 L3 L4 W0 |)",
  "(R2 R0 R1 L0 L1 L2 | R3 W0 L3 L4)",
  "flat(R0 R1 L0 L1 L2 L3 L4 W0 W1)",
].map((text) => parseLayout(text));

const stored = [
  "shared()",
  "shared(swizzle 128)",
  "shared(tile 8 32, swizzle 64)",
  "shared(order 1 0)",
  "shared(order 1 0, tile 32 8, swizzle 32)",
  "shared(tile 8 64, swizzle 128)",
];

/** Loads of even values and odd ones lie differently, so that stores and loads do. */
function alternating(layout: RegisterLayout, other: RegisterLayout) {
  return ({ id, type }: Value): RegisterLayout | undefined => {
    const own = id % 2 === 0 ? layout : other;
    return type.kind === "tile" && fitsShape(own, type.shape) ? own : undefined;
  };
}

/** Through shared memory and back, in stages that the block's index names. */
function through(dtype: DType, layout: string) {
  return kernel(
    {
      name: "through",
      grid: { i: 2 },
      inputs: { x: tensor(dtype, [2, 16, 64]) },
      outputs: { out: tensor(dtype, [2, 2, 16, 64]) },
      scratch: { buffer: smem(dtype, [2, 16, 64], { layout }) },
    },
    ({ i, x, out, buffer }) => {
      buffer.at(i).store(x.at(0).load());
      buffer.at(i.xor(1)).store(x.at(1).load());
      out.at(i, 0).store(buffer.at(i.xor(1)).load());
      out.at(i, 1).store(buffer.at(i).load());
    },
  );
}

const cases = [bf16, i4, u8, bool, f32, f64].flatMap((dtype, index) =>
  stored.flatMap((text, place) => {
    const layout = registers[(index + place) % registers.length];
    const other = registers[(2 * index + place + 1) % registers.length];
    return layout && other ? [{ dtype, text, layout, other, name: dtype.name }] : [];
  }),
);

describe("tiles through shared memory", () => {
  test.each(sampleOf(cases, 4))("$name in $text", async ({ dtype, text, layout, other, name }) => {
    const { kernel: body } = through(dtype, text);
    const message = `${name} in ${text}, ${layout.text} and ${other.text}`;
    await expectSame({ kernel: body, layout: alternating(layout, other) }, 1, message);
  });
});

/** Stores rows, then loads a window of the buffer. */
function viewed(
  layout: string,
  shape: readonly number[],
  view: (buffer: Ref<"bf16">, i: Scalar<"i32">) => Ref<"bf16">,
) {
  return kernel(
    {
      name: "viewed",
      grid: { i: 2 },
      inputs: { x: tensor(bf16, [48, 64]) },
      outputs: { out: tensor(bf16, [2, ...shape]) },
      scratch: { buffer: smem(bf16, [48, 64], { layout }) },
    },
    ({ i, x, out, buffer }) => {
      buffer.store(x.load());
      out.at(i).store(view(buffer, i).load());
    },
  );
}

const views: {
  readonly [name: string]: readonly [
    readonly number[],
    (buffer: Ref<"bf16">, i: Scalar<"i32">) => Ref<"bf16">,
  ];
} = {
  transposed: [[64, 48], (buffer) => buffer.transpose()],
  "split into three axes": [[3, 16, 64], (buffer) => buffer.reshape([3, 16, 64])],
  "joined to one axis": [[3072], (buffer) => buffer.reshape([3072])],
  "cut at run time, off the tiles": [
    [20, 24],
    (buffer, i) => buffer.at(slice(i.mul(3).add(5), 20), slice(i.mul(7), 24)),
  ],
  "cut at run time, on the tiles": [
    [16, 32],
    (buffer, i) => buffer.at(slice(i.mul(16), 16), slice(i.mul(32), 32)),
  ],
  "a column": [[48], (buffer, i) => buffer.at(all, i.mul(9))],
  "cut and reshaped across gaps": [
    [6, 40],
    (buffer, i) => buffer.at(slice(i.mul(4), 24), slice(3, 10)).reshape([6, 40]),
  ],
};

describe("windows on shared memory", () => {
  test.each(Object.entries(views))("%s", async (name, [shape, view]) => {
    for (const [index, text] of ["shared()", "shared(tile 8 64, swizzle 128)"].entries()) {
      const { kernel: body } = viewed(text, shape, view);
      const layout = registers[index] ?? registers[0];
      const lies = layout && alternating(layout, layout);
      await expectSame({ kernel: body }, index, `${name} in ${text}`);
      await expectSame({ kernel: body, layout: lies }, index, `${name} in ${text}, other tiles`);
    }
  });
});

test("a tile leaves what lies beside its last row and column alone", async () => {
  const { kernel: body } = kernel(
    {
      name: "beside",
      inputs: { x: tensor(f32, [4, 16]), y: tensor(f32, [3, 5]) },
      outputs: { out: tensor(f32, [4, 16]) },
      scratch: { buffer: smem(f32, [4, 16]) },
    },
    ({ x, y, out, buffer }) => {
      buffer.store(x.load());
      buffer.at(slice(0, 3), slice(4, 5)).store(y.load());
      out.store(buffer.load());
    },
  );
  const layouts = ["(L0 L1 | R0 L2 L3)", "(L0 L1 | R0 R1 L2)", "(R0 L1 | R1 R2 L0)"];
  for (const text of layouts) {
    const narrow = parseLayout(text);
    const wide = parseLayout("(L0 L1 | L2 L3 L4 R0)");
    const layout = ({ type }: Value): RegisterLayout =>
      type.kind === "tile" && type.shape[1] === 5 ? narrow : wide;
    await expectSame({ kernel: body, layout }, 1, text);
  }
});

test("members of a union lie where their group says", async () => {
  const { kernel: body } = kernel(
    {
      name: "members",
      grid: { i: 1 },
      inputs: { x: tensor(f32, [64]) },
      outputs: { out: tensor(f32, [64]) },
      scratch: {
        both: union({ a: smem(u8, [24]), b: smem(f32, [64]) }, { c: smem(f64, [8]) }),
      },
    },
    ({ x, out, both }) => {
      both.b.store(x.load());
      out.store(both.b.load());
    },
  );
  await expectSame({ kernel: body }, 1, "members");
});

test("a swizzle moves the last bytes of a buffer within it", async () => {
  const { kernel: body } = kernel(
    {
      name: "odd",
      grid: { i: 1 },
      inputs: { x: tensor(bf16, [120]) },
      outputs: { out: tensor(bf16, [120]) },
      scratch: { buffer: smem(bf16, [120], { layout: "shared(swizzle 32)" }) },
    },
    ({ x, out, buffer }) => {
      buffer.store(x.load());
      out.store(buffer.load());
    },
  );
  await expectSame({ kernel: body }, 1, "odd");
});

test("a member of a union has whole chunks of its swizzle", () => {
  const { kernel: body } = kernel(
    {
      name: "cramped",
      grid: { i: 1 },
      inputs: {},
      outputs: { out: tensor(bf16, [120]) },
      scratch: {
        both: union({ a: smem(bf16, [120], { layout: "shared(swizzle 32)" }), b: smem(u8, [16]) }),
      },
    },
    ({ out, both }) => {
      both.a.store(out.load());
    },
  );
  expect(() => placeKernel(body, defaultTarget)).toThrow("stores multiples of 32 bytes");
});

test("a block reads, writes and updates the memory of its peer", async () => {
  const { kernel: body } = kernel(
    {
      name: "peers",
      grid: { i: 4 },
      cluster: { i: 2 },
      inputs: { x: tensor(i32, [4, 64]) },
      outputs: { out: tensor(i32, [4, 3, 64]) },
      scratch: {
        mine: smem(i32, [64], { layout: "shared(swizzle 128)" }),
        given: smem(i32, [64]),
        sums: smem(i32, [64]),
      },
    },
    ({ i, x, out, mine, given, sums }) => {
      const other = clusterRank("i").xor(1);
      mine.store(x.at(i).load());
      sums.store(x.at(i).load());
      clusterSync();
      given.peer(other).store(x.at(i).load().mul(3));
      sums.peer(other).atomicAdd(x.at(i).load());
      out.at(i, 0).store(mine.peer(other).load());
      clusterSync();
      out.at(i, 1).store(given.load());
      out.at(i, 2).store(sums.load());
    },
  );
  await expectSame({ kernel: body }, 1, "peers");
});

test("digits of the number lead to where the layout stores", () => {
  for (const text of [...stored, "shared(tile 2 4 16)", "shared(order 2 0 1, tile 3 4)"]) {
    const shape = [6, 8, 64];
    const layout = parseSharedLayout(text);
    const digits = storedDigits(layout, shape);
    const plain = { ...layout, swizzle: 0 } as const;
    const elements = Array.from({ length: (6 * 8 * 64) / 3 }, (_, index) => 3 * index);
    expect(
      elements.map((element) => storedNumber(digits, element) * 4),
      text,
    ).toEqual(elements.map((element) => byteOffset(plain, shape, 32, element)));
  }
});
