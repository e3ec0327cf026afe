/** Codes of the CPU as a device: TW47xx. */
import { registerCodes } from "./entry.ts";

export const cpuCodes = registerCodes({
  TW4701: {
    title: "out of memory on the CPU device",
    cause:
      "A WebAssembly memory has addresses of 32 bits: all arrays of a CPU device together hold less than 4 GiB, and less where the host reserves less.",
    example: 'device.allocate(f32, [1 << 30]) on open("cpu")',
    remedy: "dispose of arrays that are no longer needed, or use smaller ones",
  },
  TW4702: {
    title: "kernel stopped by the engine",
    cause:
      "The engine that runs the compiled kernel stopped it: an access lay outside the memory of the device, or the stack was full.",
    example: "an index that the kernel promised to be in bounds, and is not",
    remedy: "run the kernel on the simulator, which checks every access and names the line",
  },
  TW4703: {
    title: "no WebAssembly",
    cause:
      "Kernels are compiled to WebAssembly for the CPU. The host has none, or the page's Content-Security-Policy forbids to compile it.",
    example: "Content-Security-Policy: script-src 'self'",
    remedy: "add 'wasm-unsafe-eval' to script-src, or use the simulator or the evaluator",
  },
  TW4704: {
    title: "thread of the CPU device lost",
    cause:
      "A thread ended while it ran blocks of a kernel: somebody ended it, or the host had no memory left for it. What the launch wrote is not known.",
    example: "a host that ends workers to save memory",
    remedy: "open the device again, with fewer threads",
  },
  TW4705: {
    title: "wait that nobody ends",
    cause:
      "Program threads of a block wait for each other, or a block waits for one that runs after it: on the CPU blocks run one after another.",
    example: "semaphore.wait of block 0 for what block 1 adds",
    remedy: "run the kernel on the simulator, which says who waits for whom",
  },
  TW4710: {
    title: "op that the CPU device does not run",
    cause:
      "The kernel asks for what only the simulator, the emulator or a GPU does; docs/cpu.md lists it.",
    example: 'a kernel with clusters of blocks, on open("cpu")',
    remedy: "run it on the simulator or on a GPU",
  },
});
