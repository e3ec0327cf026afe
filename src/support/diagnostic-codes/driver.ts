/** Codes of the NVIDIA driver and of the cache of compiled kernels: TW45xx and TW46xx. */
import { registerCodes } from "./entry.ts";

export const driverCodes = registerCodes({
  TW4501: {
    title: "no NVIDIA driver",
    cause: "The driver's library was not found on this machine, so no GPU can be opened.",
    example: 'open("gpu") on a laptop without an NVIDIA GPU',
    remedy:
      'install the NVIDIA driver, or open("emulator"), on the command line --device emulator, which runs the same PTX on any machine; or the simulator',
  },
  TW4502: {
    title: "no GPU",
    cause: "The driver is there, but shows no GPU to this process.",
    example: 'CUDA_VISIBLE_DEVICES="" node program.js',
    remedy: "check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it",
  },
  TW4503: {
    title: "no library for calling the driver",
    cause:
      "The NVIDIA driver is on this machine, but not what calls it: the package of koffi for this platform, an optional dependency of tilewright that was not installed, or that a bundler left behind.",
    example: "npm install --omit=optional, or a server bundled into one file",
    remedy:
      "install tilewright with its optional dependencies; where it is bundled, keep it out of the bundle",
  },
  TW4504: {
    title: "driver too old",
    cause:
      "The driver lacks a function, or does not accept PTX of the version that the kernel needs.",
    example: "a driver of CUDA 11 on an H100",
    remedy: "update the NVIDIA driver",
  },
  TW4505: {
    title: "GPU without a description",
    cause:
      "Kernels are compiled for the targets that tilewright describes, and this GPU runs none of them.",
    example: "a GPU of compute capability 7.0",
    remedy: "use a GPU of compute capability 8.0 or later",
  },
  TW4506: {
    title: "kernel refused by the driver's assembler",
    cause: "The driver could not assemble or load the kernel's PTX.",
    example: "inline PTX with an unknown instruction",
    remedy:
      "read the assembler's lines in the report; PTX from tilewright alone should never be refused",
  },
  TW4507: {
    title: "kernel does not fit on the GPU",
    cause:
      "One block needs more registers, shared memory or threads than the GPU has, or its cluster is too large.",
    example: "scratch memory of more than a block may use",
    remedy: "use smaller tiles, fewer threads or a smaller cluster",
  },
  TW4508: {
    title: "grid too large",
    cause: "A launch has fewer than 2^31 blocks.",
    example: "grid: { i: n } launched with n = 2^31 - 1 and another axis of 2",
    remedy: "let each block do more: larger tiles, or a loop over several of them",
  },
  TW4509: {
    title: "device lost",
    cause:
      "A kernel failed in a way that ends the driver's context: everything on the device is gone, and no further work can be done with it.",
    example: "inline PTX that writes to address 0",
    remedy: "run the kernel on the simulator to find the mistake; then open the device again",
  },
  TW4510: {
    title: "out of device memory",
    cause: "The GPU has no room for the memory that was asked for.",
    example: "device.allocate(f32, [1 << 40])",
    remedy: "dispose of arrays that are no longer needed, or use smaller ones",
  },
  TW4511: {
    title: "array that TMA cannot address",
    cause:
      "The kernel copies this array with TMA, the hardware's Tensor Memory Accelerator, which needs a base address and strides that are multiples of 16 bytes, and extents up to 2^32.",
    example: "tensor(f32, [64, n]) launched with n = 5: rows are 20 bytes apart",
    remedy: "pad the array so that its rows are multiples of 16 bytes long",
  },
  TW4512: {
    title: "the driver refused a call",
    cause: "The NVIDIA driver answered with an error that has no report of its own.",
    example: "a GPU that was taken away while in use",
    remedy: "look the result's name up in NVIDIA's documentation",
  },
  TW4513: {
    title: "no such GPU",
    cause: "The machine has fewer GPUs than the number that was asked for.",
    example: 'open("gpu", { gpu: 3 }) on a machine with one',
    remedy: "give the number of a GPU from 0 on, in the order of nvidia-smi",
  },
  TW4601: {
    title: "impossible setting of the cache",
    cause: "TILEWRIGHT_CACHE_LIMIT is a number of bytes, with K, M or G after it for larger units.",
    example: "TILEWRIGHT_CACHE_LIMIT=lots",
    remedy: "write a number such as 500M or 2G, or remove the variable",
  },
  TW4602: {
    title: "cache folder that cannot be used",
    cause: "The folder of compiled kernels cannot be read or emptied.",
    example: "TILEWRIGHT_CACHE=/etc/passwd tilewright cache clear",
    remedy: "set TILEWRIGHT_CACHE to a folder that you may write to, or to off",
  },
});
