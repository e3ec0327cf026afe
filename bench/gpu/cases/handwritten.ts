/**
 * Kernels written by hand in the language, and the product of the examples, beside cuBLAS and cuDNN: what the compiler
 * reaches without the library's choices.
 */
import { gemmOf } from "../../../examples/gemm.ts";
import type { BenchCase } from "../case.ts";
import { handwrittenAttention } from "../handwritten/attention.ts";
import { handwrittenProduct } from "../handwritten/product.ts";
import { attentionCase, preparedAttention } from "./attention.ts";
import type { AttentionTask } from "./attention.ts";
import { matmulCase, preparedProduct } from "./matmul.ts";
import type { ProductArrays, ProductTask, ProductWay } from "./matmul.ts";

// All of these are of bf16.
const byHand =
  (sharing: 1 | 2): ProductWay =>
  (device) => {
    const product = handwrittenProduct({ blocks: device.target.processors, sharing });
    return (arrays) => device.bind(product, arrays as ProductArrays<"bf16">);
  };

const ofExamples: ProductWay = (device) => {
  const product = gemmOf();
  return (arrays) => {
    const { a, b, out: c } = arrays as ProductArrays<"bf16">;
    return device.bind(product, { a, b, c });
  };
};

function productCase(
  name: string,
  size: number,
  ours: ProductWay,
  beside: { readonly [name: string]: ProductWay } = {},
): BenchCase {
  const task: ProductTask = { dtype: "bf16", m: size, n: size, k: size, b: "kn" };
  return {
    ...matmulCase(task),
    name: `${name} bf16 ${size}x${size}x${size}`,
    prepare: (device, sets) => preparedProduct(device, task, sets, ours, beside),
  };
}

/** Heads of all batches are one axis to the kernel, and batches of one head to the check. */
export function attentionByHand(task: AttentionTask): BenchCase {
  const { batch, heads, length, head, causal } = task;
  const flat = { ...task, batch: batch * heads, heads: 1, shared: 1 };
  const one = attentionCase(task);
  return {
    ...one,
    name: `${one.name}, by hand`,
    prepare: (device, sets) => {
      const definition = handwrittenAttention({ length, causal, blocks: device.target.processors });
      const shape = [batch * heads, length, head];
      return preparedAttention(device, flat, sets, ({ q, k, v, out }) =>
        device.bind(definition, {
          q: q.reshape(shape),
          k: k.reshape(shape),
          v: v.reshape(shape),
          out: out.reshape(shape),
        }),
      );
    },
  };
}

const task = { batch: 4, length: 4096, heads: 16, shared: 16, head: 128, back: 0 };

export const productByHand = (size: number): BenchCase =>
  productCase("product by hand", size, byHand(1), { "in pairs of blocks": byHand(2) });

export const handwrittenCases: readonly BenchCase[] = [
  ...[4096, 8192].flatMap((size) => [
    productByHand(size),
    productCase("product of the examples", size, ofExamples),
  ]),
  attentionByHand({ ...task, causal: false }),
  attentionByHand({ ...task, causal: true }),
];
