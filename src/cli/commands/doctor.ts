/**
 * `tilewright doctor`: what this machine has, whether kernels run on it, and which device will be used and
 * why. Nothing optional that is missing counts as a failure.
 *
 *   Node.js        ok       v20.20.2 (20.6 or later is needed)
 *   NVIDIA driver  ok       CUDA 12.8, PTX up to 8.7
 *   GPU            ok       NVIDIA H200, compute capability 9.0; kernels are compiled for sm_90a
 *   …
 *   gpu            ok       ran axpy in 45 ms
 *
 *   open() uses the gpu: NVIDIA H200.
 */
import { cudaText, newestPtx } from "../../cuda/gpu.ts";
import { TilewrightError } from "../../support/diagnostics.ts";
import { checkingDevices } from "../../runtime/open-options.ts";
import { formatBytes, formatTable, formatTime } from "../output.ts";
import type { Output } from "../output.ts";
import { isSupportedNode, minimumNodeVersion } from "../minimum-node-version.ts";
import type { GpuTrial, Probes } from "../doctor-probes.ts";

export type Status = "ok" | "missing" | "failed";

export interface Finding {
  readonly name: string;
  readonly status: Status;
  readonly detail: string;
}

/** What tells that a machine has no GPU to use, by the part that is missing. */
const missingParts: { readonly [code: string]: "driver" | "gpu" } = {
  TW4501: "driver",
  TW4502: "gpu",
};

/** The GPU as it was tried, or why there is none. */
type Tried = GpuTrial | { readonly error: Error };

export async function doctorCommand(probes: Probes, output: Output): Promise<number> {
  const tried: Tried = await probes.tryGpu().catch((error: unknown) => ({ error: asError(error) }));
  const findings = [
    hostFinding(probes),
    {
      name: "platform",
      status: "ok",
      detail: `${probes.platform} ${probes.architecture}`,
    } as const,
    driverFinding(tried),
    gpuFinding(tried),
    await toolFinding(probes, "ptxas", "only --emit cubin and registers in reports need it"),
    await toolFinding(probes, "nvdisasm", "only machine code in --dump needs it"),
    cacheFinding(probes),
  ];
  for (const device of ["cpu", ...checkingDevices] as const)
    findings.push(await launchFinding(device, () => probes.launch(device)));
  findings.push(gpuLaunchFinding(tried));
  const choice = choose(tried);
  const rows = findings.map(({ name, status, detail }) => [name, status, detail]);
  for (const line of formatTable([["part", "status", "what was found"], ...rows]))
    output.line(line);
  output.line();
  output.line(`open() uses the ${choice.device}: ${choice.reason}.`);
  output.document({ checks: findings, open: choice });
  const [host] = findings;
  const fine = host?.status === "ok" && findings.every(({ status }) => status !== "failed");
  return fine ? 0 : 1;
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

/** A report's first line. */
function summaryOf(error: Error): string {
  return error instanceof TilewrightError ? error.summary : error.message;
}

function missingPart(error: Error): "driver" | "gpu" | undefined {
  return error instanceof TilewrightError ? missingParts[error.code] : undefined;
}

function hostFinding({ host: { name, version, nodeVersion } }: Probes): Finding {
  const needed = `${minimumNodeVersion} or later is needed`;
  return {
    name,
    status: isSupportedNode(nodeVersion) ? "ok" : "missing",
    detail: `${version} (${name === "Node.js" ? needed : `as Node.js ${nodeVersion}; ${needed}`})`,
  };
}

function driverFinding(tried: Tried): Finding {
  const name = "NVIDIA driver";
  if ("gpu" in tried) {
    const { driverVersion } = tried.gpu;
    const detail = `CUDA ${cudaText(driverVersion)}, PTX up to ${newestPtx(driverVersion)}`;
    return { name, status: "ok", detail };
  }
  const { error } = tried;
  if (missingPart(error) === "driver") return { name, status: "missing", detail: summaryOf(error) };
  const found = missingPart(error) === "gpu";
  return found
    ? { name, status: "ok", detail: "it can be called" }
    : { name, status: "failed", detail: summaryOf(error) };
}

function gpuFinding(tried: Tried): Finding {
  if ("error" in tried)
    return { name: "GPU", status: "missing", detail: "none can be opened; nothing else needs one" };
  const { gpu, target } = tried;
  const detail = `${gpu.name}, compute capability ${gpu.major}.${gpu.minor}; kernels are compiled for ${target}`;
  return { name: "GPU", status: "ok", detail };
}

async function toolFinding({ findTool }: Probes, name: string, use: string): Promise<Finding> {
  const tool = await findTool(name);
  if (tool === undefined)
    return { name, status: "missing", detail: `not on PATH nor in CUDA_HOME; ${use}` };
  const detail = tool.version === undefined ? tool.path : `${tool.version}, ${tool.path}`;
  return { name, status: "ok", detail };
}

function cacheFinding({ cache }: Probes): Finding {
  const name = "cache";
  try {
    const { folder, kernels, bytes, limitBytes, problem } = cache();
    if (folder === undefined) return { name, status: "ok", detail: "off, by TILEWRIGHT_CACHE" };
    if (problem !== undefined)
      return { name, status: "failed", detail: unwritable(folder, problem) };
    const held = `${kernels} kernels, ${formatBytes(bytes)} of ${formatBytes(limitBytes)}`;
    return { name, status: "ok", detail: `${folder}: ${held}` };
  } catch (error) {
    return { name, status: "failed", detail: summaryOf(asError(error)) };
  }
}

function unwritable(folder: string, problem: string): string {
  return (
    `${folder} cannot be written to, so that kernels are compiled anew in every process: ${problem}; ` +
    "make it writable, or set TILEWRIGHT_CACHE to another folder or to off"
  );
}

async function launchFinding(name: string, launch: () => Promise<number>): Promise<Finding> {
  try {
    return { name, status: "ok", detail: `ran axpy in ${formatTime(await launch())}` };
  } catch (error) {
    return { name, status: "failed", detail: summaryOf(asError(error)) };
  }
}

function gpuLaunchFinding(tried: Tried): Finding {
  const name = "gpu";
  if ("error" in tried) {
    const status = missingPart(tried.error) === undefined ? "failed" : "missing";
    return { name, status, detail: summaryOf(tried.error) };
  }
  const { launch } = tried;
  return typeof launch === "number"
    ? { name, status: "ok", detail: `ran axpy in ${formatTime(launch)}` }
    : { name, status: "failed", detail: summaryOf(launch) };
}

/** What `open()` without a name does on this machine. */
function choose(tried: Tried): { readonly device: string; readonly reason: string } {
  if ("gpu" in tried) return { device: "gpu", reason: tried.gpu.name };
  const { error } = tried;
  return missingPart(error) === undefined
    ? { device: "gpu", reason: `but it fails: ${summaryOf(error)}` }
    : {
        device: "simulator",
        reason: `${summaryOf(error)}; open("cpu") is for speed`,
      };
}
