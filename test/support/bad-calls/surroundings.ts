/** What bad calls are made in: devices that are open, kernels, and bodies that are being traced. */
import {
  tensor,
  barrier,
  f32,
  fromNumbers,
  i32,
  kernel,
  mxfp4,
  open,
  scaledHostArray,
  semaphore,
  smem,
} from "tilewright";
import type { Barrier, Device, Ref, Scalar, Semaphore, Tile } from "tilewright";

export const numbers = fromNumbers(f32, [8], [1, 2, 3, 4, 5, 6, 7, 8]);

/** An array in a format with scales. */
export const scaled = scaledHostArray(
  mxfp4,
  fromNumbers(mxfp4.element, [1, 4], [1, 2, 3, 4]),
  fromNumbers(mxfp4.scale, [1, 1], [1]),
);

export const copy = kernel(
  { name: "copy", inputs: { x: tensor(f32, [8]) }, outputs: { out: tensor(f32, [8]) } },
  ({ x, out }) => {
    out.store(x.load());
  },
);

const opened = new Map<string, Promise<Device>>();

export function deviceNamed(name: "simulator" | "emulator"): Promise<Device> {
  const device = opened.get(name) ?? open(name, { onLeak: () => undefined });
  opened.set(name, device);
  return device;
}

export async function closeDevices(): Promise<void> {
  for (const device of opened.values()) (await device).dispose();
}

/** What the body of a traced kernel has at hand. */
export interface Body {
  readonly i: Scalar<"i32">;
  readonly x: Ref<"f32">;
  readonly out: Ref<"f32">;
  readonly shared: Ref<"f32">;
  readonly tile: Tile<"f32">;
  readonly square: Tile<"f32">;
  readonly truths: Tile<"bool">;
  readonly ready: Barrier;
  readonly counter: Semaphore;
}

/** Traces a kernel whose body makes the call. */
export function inKernel(use: (body: Body) => unknown): void {
  kernel(
    {
      name: "k",
      grid: { i: 4 },
      inputs: { x: tensor(f32, [8]), y: tensor(f32, [8, 8]) },
      outputs: { out: tensor(f32, [8]) },
      scratch: {
        shared: smem(f32, [8]),
        ready: barrier(),
        counter: semaphore([1]),
        whole: smem(i32, [8]),
      },
    },
    ({ i, x, y, out, shared, ready, counter }) => {
      const tile = x.load();
      const truths = tile.gt(0);
      out.store(truths.select(tile, 0));
      use({ i, x, out, shared, tile, square: y.load(), truths, ready, counter });
    },
  );
}
