/** Cases of the matrix, and other kernels with host arrays, on the CPU's compiler without a device. */
import { arrayParameters, bindDimensions, outputShape } from "../../src/device/binding.ts";
import { hostArray } from "../../src/formats/hostarray.ts";
import type { HostArray } from "../../src/formats/hostarray.ts";
import type { Elements } from "../../src/formats/dtype.ts";
import type { KernelDefinition } from "../../src/lang/index.ts";
import { defaultTarget } from "../../src/targets/target.ts";
import { poisoned } from "../matrix/case.ts";
import type { Arrays } from "../matrix/case.ts";
import { runOnCpu } from "./cpu-runs.ts";

/** The results of a kernel; throws where it ends with a fault or writes beside its arrays. */
export function cpuResults({ kernel }: KernelDefinition, inputs: Arrays): Arrays {
  const dimensions = bindDimensions(kernel, new Map(Object.entries(inputs)), {}, defaultTarget);
  const arrays = new Map<string, Elements>();
  const results: { [name: string]: HostArray } = {};
  for (const parameter of arrayParameters(kernel)) {
    const { name, type } = parameter;
    const input = inputs[name];
    const shape = outputShape(parameter, dimensions);
    const data: Elements = (input ?? poisoned(type.dtype, shape)).data.slice();
    arrays.set(name, data);
    if (kernel.parameters.find((one) => one.name === name)?.role !== "input")
      results[name] = hostArray(type.dtype, shape, data as never);
  }
  const {
    status,
    overrun,
    kernel: compiled,
  } = runOnCpu(kernel, {
    arrays,
    scalars: new Map(),
    dimensions,
  });
  if (status !== 0) {
    const fault = compiled.faults[status - 1];
    throw new Error(`the kernel ended with ${fault?.kind ?? status}: ${fault?.text ?? ""}`);
  }
  if (overrun.length > 0) throw new Error(`something is written beside ${overrun.join(", ")}`);
  return results;
}
