/** Arrays instead of kernels: a line is fitted by gradient descent, compiled by `jit`, differentiated by `grad`. */
import type { Device } from "tilewright";
import { add, array, grad, jit, mean, mul, sub, useDevice } from "tilewright/arrays";
import type { NDArray } from "tilewright/arrays";

type F32 = NDArray<"f32">;
type Line = { readonly slope: F32; readonly offset: F32 };

const points = globalThis.Array.from({ length: 32 }, (_, index) => index / 16 - 1);
const xs = array(points);
const ys = array(points.map((x) => 3 * x - 2));

const loss = ({ slope, offset }: Line): F32 => {
  const error = sub(add(mul(slope, xs), offset), ys);
  return mean(mul(error, error));
};

const step = jit((line: Line): Line => {
  const gradient = grad(loss)(line);
  return {
    slope: sub(line.slope, mul(gradient.slope, 0.5)),
    offset: sub(line.offset, mul(gradient.offset, 0.5)),
  };
});

export async function main(device: Device): Promise<void> {
  await useDevice(device);
  let line: Line = { slope: array(0), offset: array(0) };
  for (let turn = 0; turn < 20; turn++) line = step(line);
  const slope = Number(await line.slope.values());
  const offset = Number(await line.offset.values());
  console.log(`slope ${slope}, offset ${offset}, after ${step.compilations.length} compilation`);
  if (Math.abs(slope - 3) > 0.01 || Math.abs(offset + 2) > 0.01)
    throw new Error("the line was not found");
  await useDevice();
}
