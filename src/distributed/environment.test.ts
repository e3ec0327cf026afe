import { describe, expect, test } from "vitest";
import { firstHost, launchedRank } from "./environment.ts";
import type { Environment } from "./environment.ts";

const hosts = `127.0.0.1\tlocalhost
10.42.0.17\ttrain-3.workers.default.svc.cluster.local\ttrain-3
`;
const read = (environment: Environment, files: Readonly<Record<string, string>> = {}) =>
  launchedRank(environment, (path) => files[path]);

describe("what launchers say", () => {
  test("nothing where there is none", () => {
    expect(read({ PATH: "/bin", HOME: "/", SLURM_JOB_ID: "7" })).toBeUndefined();
  });

  test("torchrun", () => {
    expect(
      read({
        RANK: "5",
        WORLD_SIZE: "8",
        LOCAL_RANK: "1",
        LOCAL_WORLD_SIZE: "4",
        GROUP_RANK: "1",
        MASTER_ADDR: "10.0.0.1",
        MASTER_PORT: "29500",
        TORCHELASTIC_RUN_ID: "none",
        TORCHELASTIC_RESTART_COUNT: "0",
      }),
    ).toEqual({
      launcher: "torchrun",
      rank: 5,
      size: 8,
      localRank: 1,
      coordinator: "10.0.0.1:29500",
    });
  });

  test("JAX's own variables", () => {
    const own = { JAX_PROCESS_ID: "2", JAX_NUM_PROCESSES: "3", JAX_LOCAL_DEVICE_IDS: "1,3" };
    const expected = { launcher: "jax", rank: 2, size: 3, localRank: 1 };
    expect(read({ ...own, JAX_COORDINATOR_ADDRESS: "a:1234" })).toEqual({
      ...expected,
      coordinator: "a:1234",
    });
    const apart = { JAX_COORDINATOR_ADDRESS: "a", JAX_COORDINATOR_PORT: "99" };
    expect(read({ ...own, ...apart })).toEqual({ ...expected, coordinator: "a:99" });
  });

  test("Slurm", () => {
    const step = {
      SLURM_JOB_ID: "123456",
      SLURM_STEP_NODELIST: "node[001-015],other",
      SLURM_NTASKS: "16",
      SLURM_PROCID: "9",
      SLURM_LOCALID: "1",
    };
    const port = (123456 % 4096) + 61440;
    expect(read(step)).toEqual({
      launcher: "Slurm",
      rank: 9,
      size: 16,
      localRank: 1,
      coordinator: `node001:${port}`,
    });
    expect(["a", "a,b", "gpu-7", "n[3,5-6]", "x[010-020]-y"].map(firstHost)).toEqual([
      "a",
      "a",
      "gpu-7",
      "n3",
      "x010",
    ]);
  });

  test("Open MPI 4 and 5", () => {
    const own = {
      OMPI_COMM_WORLD_RANK: "3",
      OMPI_COMM_WORLD_SIZE: "4",
      OMPI_COMM_WORLD_LOCAL_RANK: "1",
    };
    const expected = { launcher: "Open MPI", rank: 3, size: 4, localRank: 1 };
    const port = (Math.floor(1531576320 / 4096) % 4096) + 61440;
    const uri = "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911";
    expect(read({ ...own, OMPI_MCA_orte_hnp_uri: uri })).toEqual({
      ...expected,
      coordinator: `10.96.0.1:${port}`,
    });
    const uri6 = "1531576320.0;tcp6://[fc00::1,fc00::2]:34911";
    expect(read({ ...own, OMPI_MCA_orte_hnp_uri: uri6 })?.coordinator).toBe(`[fc00::1]:${port}`);
    const five = { ...own, PMIX_RANK: "3", PMIX_NAMESPACE: "prterun-1" };
    expect(read({ ...five, JAX_COORDINATOR_ADDRESS: "h:1" })).toEqual({
      ...expected,
      coordinator: "h:1",
    });
    expect(read(five)).toEqual({ ...expected, coordinator: undefined });
  });

  test("MPICH and Intel MPI", () => {
    expect(
      read({ PMI_RANK: "1", PMI_SIZE: "2", MPI_LOCALRANKID: "1", JAX_COORDINATOR_ADDRESS: "h:1" }),
    ).toEqual({
      launcher: "MPICH",
      rank: 1,
      size: 2,
      localRank: 1,
      coordinator: "h:1",
    });
  });

  test("indexed jobs of Kubernetes", () => {
    const own = {
      KUBERNETES_SERVICE_HOST: "10.43.0.1",
      JOB_COMPLETION_INDEX: "3",
      HOSTNAME: "train-3",
      JAX_NUM_PROCESSES: "8",
    };
    const expected = { launcher: "Kubernetes", rank: 3, size: 8, localRank: 0 };
    expect(read(own, { "/etc/hosts": hosts })).toEqual({
      ...expected,
      coordinator: "train-0.workers:55527",
    });
    expect(read(own)).toEqual({ ...expected, coordinator: undefined });
  });
});
