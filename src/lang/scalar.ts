/** One number of a kernel, the same in all lanes of a program thread. */
import type { DTypeName } from "../formats/dtype.ts";
import { Elementwise, make } from "./elementwise.ts";
import type { Origin } from "./trace.ts";

/** One number in a kernel, the same for all threads of a program thread. */
export class Scalar<D extends DTypeName = DTypeName> extends Elementwise<"scalar", D> {
  /** Tells a scalar from a tile. */
  readonly kind = "scalar";

  /** @internal */
  [make](made: Origin): Scalar {
    return new Scalar(made);
  }
}
