/**
 * The functions of the driver that tilewright calls, each with the form of its arguments. The binding to
 * `libcuda` and the fake driver both follow from this table, so neither can have a function more or less.
 *
 *   cuMemAlloc: symbol cuMemAlloc_v2, arguments address (where the result goes), size
 *
 * All of them return a CUresult. Handles, sizes and addresses are 64 bits wide; JavaScript numbers hold them
 * exactly, since user-space addresses end far below 2^53.
 */

export type ArgumentForm = "i32" | "u32" | "u8" | "u64";

export interface DriverFunction {
  readonly symbol: string;
  readonly forms: readonly ArgumentForm[];
  /** Whether drivers that tilewright takes may lack it: calls of it then answer that it is not supported. */
  readonly isNewer?: true;
}

function define<const F extends readonly ArgumentForm[]>(
  symbol: string,
  ...forms: F
): { readonly symbol: string; readonly forms: F } {
  return { symbol, forms };
}

function defineNewer<const F extends readonly ArgumentForm[]>(
  symbol: string,
  ...forms: F
): { readonly symbol: string; readonly forms: F; readonly isNewer: true } {
  return { symbol, forms, isNewer: true };
}

export const driverFunctions = {
  cuInit: define("cuInit", "u32"),
  cuDriverGetVersion: define("cuDriverGetVersion", "u64"),
  cuDeviceGetCount: define("cuDeviceGetCount", "u64"),
  cuDeviceGet: define("cuDeviceGet", "u64", "i32"),
  cuDeviceGetName: define("cuDeviceGetName", "u64", "i32", "i32"),
  cuDeviceGetAttribute: define("cuDeviceGetAttribute", "u64", "i32", "i32"),
  cuDevicePrimaryCtxRetain: define("cuDevicePrimaryCtxRetain", "u64", "i32"),
  cuDevicePrimaryCtxRelease: define("cuDevicePrimaryCtxRelease_v2", "i32"),
  cuDevicePrimaryCtxReset: define("cuDevicePrimaryCtxReset_v2", "i32"),
  cuCtxSetCurrent: define("cuCtxSetCurrent", "u64"),
  cuCtxSynchronize: define("cuCtxSynchronize"),

  cuDeviceGetDefaultMemPool: define("cuDeviceGetDefaultMemPool", "u64", "i32"),
  cuMemPoolSetAttribute: define("cuMemPoolSetAttribute", "u64", "i32", "u64"),
  cuMemPoolGetAttribute: define("cuMemPoolGetAttribute", "u64", "i32", "u64"),
  cuMemPoolTrimTo: define("cuMemPoolTrimTo", "u64", "u64"),
  cuMemAllocAsync: define("cuMemAllocAsync", "u64", "u64", "u64"),
  cuMemFreeAsync: define("cuMemFreeAsync", "u64", "u64"),
  cuMemAlloc: define("cuMemAlloc_v2", "u64", "u64"),
  cuMemFree: define("cuMemFree_v2", "u64"),
  cuMemGetInfo: define("cuMemGetInfo_v2", "u64", "u64"),
  cuMemHostAlloc: define("cuMemHostAlloc", "u64", "u64", "u32"),
  cuMemFreeHost: define("cuMemFreeHost", "u64"),
  cuMemcpyHtoDAsync: define("cuMemcpyHtoDAsync_v2", "u64", "u64", "u64", "u64"),
  cuMemcpyDtoHAsync: define("cuMemcpyDtoHAsync_v2", "u64", "u64", "u64", "u64"),
  cuMemcpyDtoDAsync: define("cuMemcpyDtoDAsync_v2", "u64", "u64", "u64", "u64"),
  cuMemsetD8Async: define("cuMemsetD8Async", "u64", "u8", "u64", "u64"),
  cuMemsetD32Async: define("cuMemsetD32Async", "u64", "u32", "u64", "u64"),

  cuStreamCreate: define("cuStreamCreate", "u64", "u32"),
  cuStreamDestroy: define("cuStreamDestroy_v2", "u64"),
  cuStreamWaitEvent: define("cuStreamWaitEvent", "u64", "u64", "u32"),
  cuStreamBeginCapture: define("cuStreamBeginCapture_v2", "u64", "i32"),
  cuStreamEndCapture: define("cuStreamEndCapture", "u64", "u64"),
  cuStreamGetCaptureInfo: define(
    "cuStreamGetCaptureInfo_v2",
    "u64",
    "u64",
    "u64",
    "u64",
    "u64",
    "u64",
  ),
  cuStreamUpdateCaptureDependencies: define(
    "cuStreamUpdateCaptureDependencies",
    "u64",
    "u64",
    "u64",
    "u32",
  ),
  cuStreamBeginCaptureToGraph: defineNewer(
    "cuStreamBeginCaptureToGraph",
    "u64",
    "u64",
    "u64",
    "u64",
    "u64",
    "i32",
  ),
  cuEventCreate: define("cuEventCreate", "u64", "u32"),
  cuEventDestroy: define("cuEventDestroy_v2", "u64"),
  cuEventRecord: define("cuEventRecord", "u64", "u64"),
  cuEventQuery: define("cuEventQuery", "u64"),
  cuEventSynchronize: define("cuEventSynchronize", "u64"),
  cuEventElapsedTime: define("cuEventElapsedTime", "u64", "u64", "u64"),

  cuModuleLoadDataEx: define("cuModuleLoadDataEx", "u64", "u64", "u32", "u64", "u64"),
  cuModuleUnload: define("cuModuleUnload", "u64"),
  cuModuleGetFunction: define("cuModuleGetFunction", "u64", "u64", "u64"),
  cuFuncGetAttribute: define("cuFuncGetAttribute", "u64", "i32", "u64"),
  cuFuncSetAttribute: define("cuFuncSetAttribute", "u64", "i32", "i32"),

  cuTensorMapEncodeTiled: define(
    "cuTensorMapEncodeTiled",
    "u64",
    "i32",
    "u32",
    "u64",
    "u64",
    "u64",
    "u64",
    "u64",
    "i32",
    "i32",
    "i32",
    "i32",
  ),
  cuTensorMapEncodeIm2col: define(
    "cuTensorMapEncodeIm2col",
    "u64",
    "i32",
    "u32",
    "u64",
    "u64",
    "u64",
    "u64",
    "u64",
    "u32",
    "u32",
    "u64",
    "i32",
    "i32",
    "i32",
    "i32",
  ),
  cuLaunchKernelEx: define("cuLaunchKernelEx", "u64", "u64", "u64", "u64"),
  cuGraphConditionalHandleCreate: defineNewer(
    "cuGraphConditionalHandleCreate",
    "u64",
    "u64",
    "u64",
    "u32",
    "u32",
  ),
  cuGraphAddNode: defineNewer("cuGraphAddNode", "u64", "u64", "u64", "u64", "u64"),
  cuGraphInstantiate: define("cuGraphInstantiateWithFlags", "u64", "u64", "u64"),
  cuGraphLaunch: define("cuGraphLaunch", "u64", "u64"),
  cuGraphExecDestroy: define("cuGraphExecDestroy", "u64"),
  cuGraphDestroy: define("cuGraphDestroy", "u64"),
} satisfies { readonly [name: string]: DriverFunction };

export type FunctionName = keyof typeof driverFunctions;

export const functionNames = Object.freeze(Object.keys(driverFunctions)) as readonly FunctionName[];

type Numbers<F> = { -readonly [Position in keyof F]: number };

/** The arguments of a function: as many numbers as its forms. */
export type DriverArguments<N extends FunctionName> = Numbers<(typeof driverFunctions)[N]["forms"]>;

/** The functions themselves; each gives its CUresult. */
export type DriverCalls = {
  readonly [N in FunctionName]: (...values: DriverArguments<N>) => number;
};
