/**
 * A GPU device over the fake driver, for tests: kernels of the language, compiled to a plan by hand, and
 * run as JavaScript on the fake driver's memory.
 */
import { Device } from "../../../src/device/device.ts";
import type { DeviceOptions } from "../../../src/device/device-options.ts";
import { tensor, cdiv, dim, kernel, scalar, slice } from "../../../src/lang/index.ts";
import { f32 } from "../../../src/formats/dtype.ts";
import type { Kernel } from "../../../src/ir/node.ts";
import { multiplySizes } from "../../../src/ir/size.ts";
import type { Executable, LaunchParameter, LaunchPlan } from "../../../src/ptx/executable.ts";
import type { PerformanceNote } from "../../../src/ptx/notes/note.ts";
import type { Target } from "../../../src/targets/target.ts";
import { CudaBackend } from "../../../src/cuda/backend.ts";
import { KernelCache } from "../../../src/cuda/cache/kernel-cache.ts";
import { kernelLoader } from "../../../src/cuda/compiler.ts";
import type { KernelCompiler } from "../../../src/cuda/compiler.ts";
import { CudaContext } from "../../../src/cuda/context.ts";
import { readAddress } from "../../../src/cuda/driver.ts";
import { FakeDriver } from "./driver.ts";
import type { FakeKernel, FakeLaunch, FakeOptions } from "./driver.ts";

const n = dim("n");

/** out = factor · x, four elements a block. */
export const scaled = kernel(
  {
    name: "scaled",
    grid: { i: cdiv(n, 4) },
    inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, factor, out }) => {
    const here = slice(i.mul(4), 4);
    out.at(here).store(x.at(here).load().mul(factor));
  },
);

/** Another kernel of the same form, for tests that need two: out = factor + x. */
export const shifted = kernel(
  {
    name: "shifted",
    grid: { i: cdiv(n, 4) },
    inputs: { x: tensor(f32, [n]), factor: scalar(f32) },
    outputs: { out: tensor(f32, [n]) },
  },
  ({ i, x, factor, out }) => {
    const here = slice(i.mul(4), 4);
    out.at(here).store(x.at(here).load().add(factor));
  },
);

export const scaledParameters: readonly LaunchParameter[] = [
  { kind: "array", name: "x" },
  { kind: "scalar", name: "factor", dtype: f32 },
  { kind: "array", name: "out" },
  { kind: "size", size: n, bits: 32 },
];

export function floatsAt({ memory }: FakeLaunch, address: number, count: number): Float32Array {
  const bytes = memory.view("device", address, 4 * count);
  return new Float32Array(bytes.buffer, bytes.byteOffset, count);
}

/** A kernel of the fake driver that takes what `scaledParameters` says. */
export function elementwise(compute: (x: number, factor: number) => number): FakeKernel {
  return {
    sizes: [8, 4, 8, 4],
    run: (launch) => {
      const [x, factor, out, size] = launch.parameters;
      if (x === undefined || factor === undefined || out === undefined || size === undefined)
        throw new Error("a parameter is missing");
      const count = size.getUint32(0, true);
      if (count === 0) return;
      const source = floatsAt(launch, readAddress(x, 0), count);
      const target = floatsAt(launch, readAddress(out, 0), count);
      source.forEach((value, index) => {
        target[index] = compute(value, factor.getFloat32(0, true));
      });
    },
  };
}

export const fakeKernels: { readonly [entry: string]: FakeKernel } = {
  scaled: elementwise((x, factor) => x * factor),
  shifted: elementwise((x, factor) => x + factor),
};

/** What a test's kernel needs besides the usual. */
export type PlanChanges = Partial<LaunchPlan> & {
  readonly comment?: string;
  readonly version?: string;
};

/** A compiler that plans every kernel as the elementwise ones, with changes by the kernel's name. */
export function stubCompiler(
  changes: { readonly [kernel: string]: PlanChanges } = {},
  onCompile: (name: string) => void = () => undefined,
  notes: { readonly [kernel: string]: readonly PerformanceNote[] } = {},
): KernelCompiler {
  const plan = ({ name, grid, threads }: Kernel, target: Target): Executable => {
    onCompile(name);
    const { comment, version = "8.0", ...changed } = changes[name] ?? {};
    return {
      name,
      entry: name,
      target,
      threadsPerBlock: 128 * threads.length,
      cluster: 1,
      blocks: multiplySizes(...grid.map(({ extent }) => extent)),
      sharedBytes: 0,
      buffers: [],
      parameters: scaledParameters,
      messages: [],
      grid,
      threads,
      dependentLaunch: false,
      ...changed,
      module: {
        version,
        target: target.name,
        files: [],
        declarations: [
          {
            kind: "function",
            entry: true,
            name,
            results: [],
            parameters: [],
            directives: [],
            body: [{ kind: "instruction", opcode: "ret", operands: [], comment }],
          },
        ],
      },
    };
  };
  return (kernel, target) => ({
    executable: plan(kernel, target),
    notes: notes[kernel.name] ?? [],
  });
}

export interface HarnessOptions extends FakeOptions, DeviceOptions {
  readonly plans?: { readonly [kernel: string]: PlanChanges };
  readonly compiler?: KernelCompiler;
  readonly cache?: KernelCache;
  /** The machine code that the driver has just made of PTX. */
  readonly machineCode?: (ptx: string) => Uint8Array | undefined;
  readonly onPrint?: (line: string) => void;
  readonly memoryLimit?: number;
  readonly driver?: FakeDriver;
}

export interface Harness {
  readonly driver: FakeDriver;
  readonly device: Device;
  /** What is behind the device. */
  readonly backend: CudaBackend;
}

/** A device over a fake driver. */
export function openFake(options: HarnessOptions = {}): Harness {
  const driver = options.driver ?? new FakeDriver({ kernels: fakeKernels, ...options });
  const cache = options.cache ?? new KernelCache(undefined, undefined);
  const context = new CudaContext(driver, 0);
  try {
    const compiler = options.compiler ?? stubCompiler(options.plans);
    const loader = kernelLoader(compiler, cache, options.machineCode);
    const { onPrint, memoryLimit } = options;
    const backend = new CudaBackend(context, loader, {
      ...(onPrint !== undefined && { onPrint }),
      ...(memoryLimit !== undefined && { memoryLimit }),
    });
    // Notes are looked for on the record, and would only fill the tests' output.
    return {
      driver,
      device: new Device(backend, { onNotes: () => undefined, ...options }),
      backend,
    };
  } catch (error) {
    context.dispose();
    throw error;
  }
}

/** Lets everything that is under way end. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
