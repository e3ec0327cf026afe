/**
 * What launchers say of a process: which rank it is of how many, which on its host, and where rank 0 is to be found.
 *
 * | launcher    | told by                                                                             |
 * |-------------|-------------------------------------------------------------------------------------|
 * | JAX's own   | JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES, JAX_PROCESS_ID                          |
 * | torchrun    | RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT; `tilewright launch` as well  |
 * | Open MPI    | OMPI_COMM_WORLD_RANK …; its address where mpirun 4 says it                          |
 * | Slurm       | SLURM_PROCID …; the first host of the step's nodes                                  |
 * | MPICH, Intel| PMI_RANK, PMI_SIZE, MPI_LOCALRANKID                                                 |
 * | Kubernetes  | JOB_COMPLETION_INDEX; the pod's name in /etc/hosts                                  |
 *
 * Slurm and Open MPI have no port: it follows from the number of the job, as JAX's does. Where a launcher gives no address,
 * JAX_COORDINATOR_ADDRESS or `coordinatorAddress` has to.
 */

export type Launcher = "jax" | "torchrun" | "Open MPI" | "Slurm" | "MPICH" | "Kubernetes";

export interface LaunchedRank {
  readonly launcher: Launcher;
  readonly rank: number | undefined;
  readonly size: number | undefined;
  /** Among the ranks of its host. */
  readonly localRank: number | undefined;
  /** Of rank 0, `host:port`. */
  readonly coordinator: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** The text of a file; undefined where there is none. */
export type ReadText = (path: string) => string | undefined;

/** Ports of jobs: the last 4,096. */
const portOfJob = (job: number): number => (job % 4096) + 61440;

const kubernetesPort = 55527;

function count(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}

/** The first host of `node[001-015,017],other`. */
export function firstHost(nodes: string): string {
  const [, head = "", list] = /^([^,[]+)(?:\[([^\]]*)\])?/.exec(nodes) ?? [];
  const [, first = ""] = /^(\d+)/.exec(list ?? "") ?? [];
  return `${head}${first}`;
}

/** What the environment says; undefined where no launcher has started the process. */
export function launchedRank(
  environment: Environment,
  readText: ReadText,
): LaunchedRank | undefined {
  const found = launchers
    .map((read) => read(environment, readText))
    .find((each) => each !== undefined);
  if (found === undefined) return undefined;
  // Explicit addresses win, whoever has started the process.
  return { ...found, coordinator: jaxAddress(environment) ?? found.coordinator };
}

function jaxAddress(environment: Environment): string | undefined {
  const { JAX_COORDINATOR_ADDRESS: address, JAX_COORDINATOR_PORT: port } = environment;
  if (address === undefined || /:\d+$/.test(address) || port === undefined) return address;
  return `${address}:${port}`;
}

type Read = (environment: Environment, readText: ReadText) => LaunchedRank | undefined;

const launchers: readonly Read[] = [
  (environment) => {
    const rank = count(environment["JAX_PROCESS_ID"]);
    if (rank === undefined) return undefined;
    return {
      launcher: "jax",
      rank,
      size: count(environment["JAX_NUM_PROCESSES"]),
      localRank: count(environment["JAX_LOCAL_DEVICE_IDS"]?.split(",")[0]),
      coordinator: jaxAddress(environment),
    };
  },
  ({ RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR: host, MASTER_PORT: port }) => {
    if (RANK === undefined || WORLD_SIZE === undefined) return undefined;
    const coordinator = host === undefined || port === undefined ? undefined : `${host}:${port}`;
    const [rank, size, localRank] = [count(RANK), count(WORLD_SIZE), count(LOCAL_RANK)];
    return { launcher: "torchrun", rank, size, localRank, coordinator };
  },
  (environment) => {
    const rank = count(environment["OMPI_COMM_WORLD_RANK"]);
    if (rank === undefined) return undefined;
    return {
      launcher: "Open MPI",
      rank,
      size: count(environment["OMPI_COMM_WORLD_SIZE"]),
      localRank: count(environment["OMPI_COMM_WORLD_LOCAL_RANK"]),
      coordinator: openMpiAddress(environment["OMPI_MCA_orte_hnp_uri"]),
    };
  },
  (environment) => {
    const names = ["JOB_ID", "STEP_NODELIST", "NTASKS", "PROCID", "LOCALID"];
    const [job, nodes, size, rank, localRank] = names.map((name) => environment[`SLURM_${name}`]);
    // A shell within a job has some of them, and is none of its tasks.
    if ([job, nodes, size, rank, localRank].some((each) => each === undefined)) return undefined;
    return {
      launcher: "Slurm",
      rank: count(rank),
      size: count(size),
      localRank: count(localRank),
      coordinator: `${firstHost(nodes ?? "")}:${portOfJob(count(job) ?? 0)}`,
    };
  },
  ({ PMI_RANK, PMI_SIZE, MPI_LOCALRANKID }) => {
    if (PMI_RANK === undefined || PMI_SIZE === undefined) return undefined;
    const [rank, size, localRank] = [count(PMI_RANK), count(PMI_SIZE), count(MPI_LOCALRANKID)];
    return { launcher: "MPICH", rank, size, localRank, coordinator: undefined };
  },
  (environment, readText) => {
    const rank = count(environment["JOB_COMPLETION_INDEX"]);
    if (rank === undefined || environment["KUBERNETES_SERVICE_HOST"] === undefined)
      return undefined;
    return {
      launcher: "Kubernetes",
      rank,
      size: count(environment["JAX_NUM_PROCESSES"]),
      localRank: 0,
      coordinator: podAddress(environment["HOSTNAME"], readText("/etc/hosts") ?? ""),
    };
  },
];

/** `1531576320.0;tcp://10.96.0.1,10.148.0.1:34911`: a job's number, 4,096 times as large, and the addresses of its host. */
function openMpiAddress(uri: string | undefined): string | undefined {
  const [, job, host, host6] =
    /^(\d+)\..*?(?:tcp:\/\/([^,:]+)|tcp6:\/\/\[([^,\]]+))/.exec(uri ?? "") ?? [];
  if (job === undefined) return undefined;
  const port = portOfJob(Math.floor(Number(job) / 4096));
  return host6 === undefined ? `${host ?? ""}:${port}` : `[${host6}]:${port}`;
}

/** The first pod of the job, by the name that the hosts' file has for this one: `10.0.0.7 train-3.workers.default.svc… train-3`. */
function podAddress(pod: string | undefined, hosts: string): string | undefined {
  const name = pod?.replace(/-\d+$/, "");
  const own = hosts.split(/\s+/).find((each) => pod !== undefined && each.startsWith(`${pod}.`));
  if (name === undefined || own === undefined) return undefined;
  const [, subdomain = ""] = own.split(".");
  return `${name}-0.${subdomain}:${kubernetesPort}`;
}
