/**
 * `tilewright doctor`: what this machine has, what tilewright will use of it, and why. Nothing optional
 * that is missing counts as a failure.
 *
 *   Node.js        ok       v20.20.2 (20 or later is needed)
 *   NVIDIA driver  missing  no libcuda.so.1; only a GPU back end needs it
 *   …
 *   open() uses the simulator: this version has no GPU back end.
 */
import { formatTable } from "../output.ts";
import type { Output } from "../output.ts";
import type { Probes } from "../probes.ts";

export type Status = "ok" | "missing" | "unused";

export interface Finding {
  readonly name: string;
  readonly status: Status;
  readonly detail: string;
}

const oldestNode = 20;
const choice = {
  device: "simulator",
  reason: "this version has no GPU back end",
} as const;

export async function doctorCommand(probes: Probes, output: Output): Promise<number> {
  const node = nodeFinding(probes);
  const findings = [
    node,
    platformFinding(probes),
    driverFinding(probes),
    await gpuFinding(probes),
    await ptxasFinding(probes),
    koffiFinding(probes),
  ];
  const rows = findings.map(({ name, status, detail }) => [name, status, detail]);
  for (const line of formatTable([["part", "status", "what was found"], ...rows]))
    output.line(line);
  output.line();
  output.line(`open() uses the ${choice.device}: ${choice.reason}.`);
  output.document({ checks: findings, open: choice });
  return node.status === "ok" ? 0 : 1;
}

function nodeFinding({ nodeVersion }: Probes): Finding {
  const major = Number(/^v(\d+)/.exec(nodeVersion)?.[1] ?? 0);
  return {
    name: "Node.js",
    status: major >= oldestNode ? "ok" : "missing",
    detail: `${nodeVersion} (${oldestNode} or later is needed)`,
  };
}

function platformFinding({ platform, architecture }: Probes): Finding {
  return { name: "platform", status: "ok", detail: `${platform} ${architecture}` };
}

function driverFinding({ platform, findDriverLibrary, readDriverVersion }: Probes): Finding {
  const name = "NVIDIA driver";
  if (platform !== "linux" && platform !== "win32")
    return { name, status: "missing", detail: `there is none for ${platform}` };
  const library = findDriverLibrary();
  if (library === undefined) {
    const file = platform === "win32" ? "nvcuda.dll" : "libcuda.so.1";
    return { name, status: "missing", detail: `no ${file}; the simulator needs none` };
  }
  const version = readDriverVersion();
  const detail = version === undefined ? library : `${version}, ${library}`;
  return { name, status: "unused", detail };
}

async function gpuFinding({ listGpus }: Probes): Promise<Finding> {
  const gpus = await listGpus();
  return gpus.length === 0
    ? { name: "GPU", status: "missing", detail: "nvidia-smi lists none; the simulator needs none" }
    : { name: "GPU", status: "unused", detail: gpus.join("; ") };
}

async function ptxasFinding({ findPtxas }: Probes): Promise<Finding> {
  const ptxas = await findPtxas();
  if (ptxas === undefined)
    return {
      name: "ptxas",
      status: "missing",
      detail: "not on PATH nor in CUDA_HOME; nothing needs it",
    };
  const detail = ptxas.version === undefined ? ptxas.path : `${ptxas.version}, ${ptxas.path}`;
  return { name: "ptxas", status: "unused", detail };
}

function koffiFinding({ hasPackage }: Probes): Finding {
  return hasPackage("koffi")
    ? { name: "koffi", status: "unused", detail: "installed; it would call the driver" }
    : { name: "koffi", status: "missing", detail: "not installed; the simulator needs none" };
}
