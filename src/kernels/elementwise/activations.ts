/** Activations as functions on tiles, for epilogues, maps and gated layers; results are rounded once. */
import { dtypes } from "../../formats/dtype.ts";
import type { Accuracy, Tile } from "../../lang/index.ts";
import { isTile } from "../../lang/elementwise.ts";
import { wrongKind } from "../../lang/traced.ts";
import { captureLocation } from "../../support/location.ts";
import { requireKnownOptions } from "../../support/options.ts";
import { gelu } from "./gelu.ts";

/** With `{ approximate: true }` by the GPU's own approximations, which results of 16 bits do not show. */
export type Activation = (x: Tile<"f32">, accuracy?: Accuracy) => Tile<"f32">;

const rootOfTwoOverPi = Math.sqrt(2 / Math.PI);

/**
 * The function as kernels call it: what is no tile is refused on the user's line, and formats of fewer bits are computed with in f32. Arithmetic of 16
 * bits rounds every step: 1 + erf(x) of bf16 has no digit that is right where x is -3.
 */
function onTiles(name: string, activation: Activation, leastBits = 32): Activation {
  return (x, accuracy) => {
    if (!isTile(x)) wrongKind(`x of ${name}`, "a tile of floats", x, captureLocation());
    if (accuracy !== undefined)
      requireKnownOptions(name, accuracy, ["approximate"], "TW1033", captureLocation());
    const given: Tile = x;
    const isShort = given.dtype.kind === "float" && given.dtype.bits < leastBits;
    return isShort
      ? (activation(given.cast(dtypes.f32), accuracy).cast(given.dtype) as Tile<"f32">)
      : activation(x, accuracy);
  };
}

/** Functions of tiles for epilogues and `map`: relu, sigmoid, silu and gelu. */
export const activations = Object.freeze({
  /** Nothing of it is rounded, so that two elements of 16 bits are compared at once. */
  relu: onTiles("relu", (x) => x.maximum(0), 16),
  /** 1 / (1 + exp(-x)). */
  sigmoid: onTiles("sigmoid", (x, accuracy) => x.logistic(accuracy)),
  /** x · sigmoid(x), also called swish: the gate of SwiGLU. */
  silu: onTiles("silu", (x, accuracy) => x.mul(x.logistic(accuracy))),
  /** x · Φ(x): the gate of GeGLU. */
  gelu: onTiles("gelu", gelu),
  /** What is near it: x · (1 + tanh u) / 2, which is x · sigmoid(2u), where nothing cancels. */
  geluTanh: onTiles("geluTanh", (x, accuracy) =>
    x.mul(
      x
        .mul(x)
        .fma(2 * rootOfTwoOverPi * 0.044715, 2 * rootOfTwoOverPi)
        .mul(x)
        .logistic(accuracy),
    ),
  ),
} satisfies { readonly [name: string]: Activation });
