/** Kernels whose shared memory would have to be stored in two ways at once, or in one that there is not. */
import {
  accumulator,
  all,
  tensor,
  barrier,
  bf16,
  copyAsync,
  f32,
  f8e4m3fn,
  i32,
  i8,
  kernel,
  slice,
  smem,
  tf32,
  union,
  wgmma,
} from "tilewright";
import type { KernelDefinition } from "tilewright";
import { contradictions } from "./contradiction.ts";

const plain = "shared()";
const columns = "shared(order 1 0)";

/** The layout to state, or none once the kernel is fixed. */
const pin = (layout: string, fixed: boolean): { readonly layout?: string } =>
  fixed ? {} : { layout };

const inputs = { x: tensor(bf16, [64, 64]), bytes: tensor(i8, [64, 64]) };
const outputs = { out: tensor(f32, [64, 64]), sums: tensor(i32, [64, 64]) };

export const sharedContradictions = contradictions(import.meta.url, [
  {
    name: "right operand in plain order",
    remedy: "remove the layout of b",
    make: (fixed): KernelDefinition => {
      const b = smem(bf16, [64, 64], pin(plain, fixed)); // <- right operand in plain order, one
      const scratch = { a: smem(bf16, [64, 64]), b };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 64]);
        const product = wgmma(sum, things.a, things.b); // <- right operand in plain order, other
        things.out.store(product.wait());
      });
    },
  },
  {
    name: "left operand in plain order",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const a = smem(bf16, [64, 64], pin(plain, fixed)); // <- left operand in plain order, one
      const scratch = { a, b: smem(bf16, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 64]);
        const product = wgmma(sum, things.a, things.b); // <- left operand in plain order, other
        things.out.store(product.wait());
      });
    },
  },
  {
    name: "left operand by columns",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const a = smem(bf16, [64, 64], pin(columns, fixed)); // <- left operand by columns, one
      const scratch = { a, b: smem(bf16, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 64]);
        const product = wgmma(sum, things.a, things.b); // <- left operand by columns, other
        things.out.store(product.wait());
      });
    },
  },
  {
    name: "tiles that are too narrow",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const narrow = "shared(tile 8 32, swizzle 128)";
      const a = smem(bf16, [64, 64], pin(narrow, fixed)); // <- tiles that are too narrow, one
      const scratch = { a, b: smem(bf16, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 64]);
        const product = wgmma(sum, things.a, things.b); // <- tiles that are too narrow, other
        things.out.store(product.wait());
      });
    },
  },
  {
    name: "tiles of four rows",
    remedy: "remove the layout of b",
    make: (fixed): KernelDefinition => {
      const low = "shared(tile 4 64, swizzle 128)";
      const b = smem(bf16, [64, 128], pin(low, fixed)); // <- tiles of four rows, one
      const scratch = { a: smem(bf16, [64, 64]), b };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 128]);
        const product = wgmma(sum, things.a, things.b); // <- tiles of four rows, other
        things.out.store(product.wait().slice([0, 0], [64, 64]));
      });
    },
  },
  {
    name: "stages stored side by side",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const mixed = "shared(order 1 0 2)";
      const a = smem(bf16, [2, 64, 64], pin(mixed, fixed)); // <- stages stored side by side, one
      const scratch = { a, b: smem(bf16, [64, 64]) };
      return kernel({ name: "program", grid: { i: 2 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 64]);
        const product = wgmma(sum, things.a.at(things.i), things.b); // <- stages stored side by side, other
        things.out.store(product.wait());
      });
    },
  },
  {
    name: "bytes with n in front",
    remedy: "remove the layout of b",
    make: (fixed): KernelDefinition => {
      const b = smem(i8, [64, 64], pin("shared(swizzle 64)", fixed)); // <- bytes with n in front, one
      const scratch = { a: smem(i8, [64, 64]), b };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(i32, [64, 64]);
        const product = wgmma(sum, things.a, things.b); // <- bytes with n in front, other
        things.sums.store(product.wait());
      });
    },
  },
  {
    name: "bytes with m in front",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const turned = "shared(order 1 0, swizzle 64)";
      const a = smem(f8e4m3fn, [64, 64], pin(turned, fixed)); // <- bytes with m in front, one
      const scratch = { a, b: smem(f8e4m3fn, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 64]);
        const product = wgmma(sum, things.a, things.b); // <- bytes with m in front, other
        things.out.store(product.wait());
      });
    },
  },
  {
    name: "tf32 with n in front",
    remedy: "remove the layout of b",
    make: (fixed): KernelDefinition => {
      const b = smem(tf32, [32, 32], pin("shared(swizzle 128)", fixed)); // <- tf32 with n in front, one
      const scratch = { a: smem(tf32, [64, 32]), b };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(f32, [64, 32]);
        const product = wgmma(sum, things.a, things.b); // <- tf32 with n in front, other
        things.out.at(slice(0, 64), slice(0, 32)).store(product.wait());
      });
    },
  },
  {
    name: "transposed bytes",
    remedy: "remove the layout of b",
    make: (fixed): KernelDefinition => {
      const turned = "shared(order 1 0, swizzle 64)";
      const b = smem(i8, [64, 64], pin(turned, fixed)); // <- transposed bytes, one
      const scratch = { a: smem(i8, [64, 64]), b };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const sum = accumulator(i32, [64, 64]);
        const product = wgmma(sum, things.a, things.b.transpose()); // <- transposed bytes, other
        things.sums.store(product.wait());
      });
    },
  },
  {
    name: "bytes on both sides",
    remedy: "a buffer of its own",
    make: (fixed): KernelDefinition => {
      const scratch = { a: smem(i8, [64, 64]), copy: smem(i8, [64, 64]), b: smem(i8, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const { a, copy, b, sums } = things;
        const first = wgmma(accumulator(i32, [64, 64]), a, b); // <- bytes on both sides, one
        const other = fixed ? copy : a;
        const second = wgmma(first, b.transpose(), other); // <- bytes on both sides, other
        sums.store(second.wait());
      });
    },
  },
  {
    name: "bytes and their transpose",
    remedy: "a buffer of its own",
    make: (fixed): KernelDefinition => {
      const scratch = { a: smem(i8, [64, 64]), copy: smem(i8, [64, 64]), b: smem(i8, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const { a, copy, b, sums } = things;
        const first = wgmma(accumulator(i32, [64, 64]), a, b); // <- bytes and their transpose, one
        const turned = (fixed ? copy : a).transpose();
        const second = wgmma(first, turned, b); // <- bytes and their transpose, other
        sums.store(second.wait());
      });
    },
  },
  {
    name: "operand that starts between chunks",
    remedy: "a buffer of its own",
    make: (fixed): KernelDefinition => {
      const a = smem(i8, [64, 80]); // <- operand that starts between chunks, one
      const scratch = { a, own: smem(i8, [64, 64]), b: smem(i8, [64, 64]) };
      return kernel({ name: "program", grid: { i: 1 }, inputs, outputs, scratch }, (things) => {
        const window = fixed ? things.own : things.a.at(all, slice(4, 64));
        const product = wgmma(accumulator(i32, [64, 64]), window, things.b); // <- operand that starts between chunks, other
        things.sums.store(product.wait());
      });
    },
  },
  {
    name: "multicast into columns",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const a = smem(bf16, [64, 64], pin(columns, fixed)); // <- multicast into columns, one
      const scratch = { a, landed: barrier() };
      const spec = { name: "program", grid: { i: 2 }, cluster: { i: 2 }, inputs, outputs, scratch };
      return kernel(spec, (things) => {
        const options = { barrier: things.landed, multicast: ["i"] };
        copyAsync(things.x, things.a, options); // <- multicast into columns, other
        things.landed.wait();
        things.out.store(things.a.load().cast(f32));
      });
    },
  },
  {
    name: "multicast of bytes to be turned",
    remedy: "copy without multicast",
    make: (fixed): KernelDefinition => {
      const scratch = { a: smem(i8, [64, 64]), b: smem(i8, [64, 64]), landed: barrier() };
      const spec = { name: "program", grid: { i: 2 }, cluster: { i: 2 }, inputs, outputs, scratch };
      return kernel(spec, ({ bytes, a, b, landed, sums }) => {
        const options = { barrier: landed, ...(!fixed && { multicast: ["i"] }) };
        copyAsync(bytes, b, options); // <- multicast of bytes to be turned, one
        landed.wait();
        const product = wgmma(accumulator(i32, [64, 64]), a, b); // <- multicast of bytes to be turned, other
        sums.store(product.wait());
      });
    },
  },
  {
    name: "reduction from columns",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const a = smem(f32, [64, 64], pin(columns, fixed)); // <- reduction from columns, one
      return kernel(
        { name: "program", grid: { i: 1 }, inputs, outputs, scratch: { a } },
        (things) => {
          things.a.store(1);
          copyAsync(things.a, things.out, { reduction: "add" }); // <- reduction from columns, other
        },
      );
    },
  },
  {
    name: "reduction of a transposed window",
    remedy: "remove the layout of a",
    make: (fixed): KernelDefinition => {
      const a = smem(f32, [64, 64], pin(plain, fixed)); // <- reduction of a transposed window, one
      return kernel(
        { name: "program", grid: { i: 1 }, inputs, outputs, scratch: { a } },
        (things) => {
          things.a.store(1);
          copyAsync(things.a.transpose(), things.out, { reduction: "add" }); // <- reduction of a transposed window, other
        },
      );
    },
  },
  {
    name: "swizzle in the middle of a union",
    remedy: "remove the layout of second",
    make: (fixed): KernelDefinition => {
      const first = smem(f32, [32]);
      const second = smem(bf16, [64, 64], pin("shared(swizzle 128)", fixed)); // <- swizzle in the middle of a union, one
      const both = union({ first, second }); // <- swizzle in the middle of a union, other
      return kernel(
        { name: "program", grid: { i: 1 }, inputs, outputs, scratch: { both } },
        (things) => {
          things.both.second.store(things.x.load());
          things.out.store(things.both.second.load().cast(f32));
        },
      );
    },
  },
]);
