/** Activations as functions on tiles of f32 or f64, for epilogues, maps and gated layers. */
import type { Tile } from "../../lang/index.ts";

type Activation = (x: Tile<"f32">) => Tile<"f32">;

const rootOfTwoOverPi = Math.sqrt(2 / Math.PI);

export const activations = Object.freeze({
  relu: (x) => x.maximum(0),
  sigmoid: (x) => x.logistic(),
  /** x · sigmoid(x), also called swish: the gate of SwiGLU. */
  silu: (x) => x.mul(x.logistic()),
  /** x · Φ(x): the gate of GeGLU. */
  gelu: (x) => x.mul(x.mul(Math.SQRT1_2).erf().add(1)).mul(0.5),
  /** What is near it, by tanh. */
  geluTanh: (x) =>
    x.mul(x.mul(x).mul(x).mul(0.044715).add(x).mul(rootOfTwoOverPi).tanh().add(1)).mul(0.5),
} satisfies { readonly [name: string]: Activation });
