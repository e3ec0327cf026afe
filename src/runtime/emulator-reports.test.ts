/** What the emulator finds in kernels, in the words of their program. */
import { expect, test } from "vitest";
import { f32 } from "../formats/dtype.ts";
import { fromNumbers } from "../formats/hostarray.ts";
import { tensor, barrier, kernel, smem } from "../lang/index.ts";
import type { KernelDefinition } from "../lang/index.ts";
import type { RunArguments } from "../device/types.ts";
import { TilewrightError } from "../support/diagnostics.ts";
import { kernelFromCompiled } from "../ptx/compiled-kernel.ts";
import { compileAhead } from "../lower/compile-ahead.ts";
import { open } from "./open.ts";

/** The findings of a launch, and the error that it ended with. */
async function findingsOf<K extends KernelDefinition>(
  definition: K,
  given: RunArguments<K>,
): Promise<readonly TilewrightError[]> {
  const found: TilewrightError[] = [];
  const device = await open("emulator", { onFindings: (findings) => found.push(...findings) });
  try {
    await device.run(definition, given);
  } catch (error) {
    if (!(error instanceof TilewrightError)) throw error;
    found.push(error);
  } finally {
    device.dispose();
  }
  return found;
}

function messageOf(findings: readonly TilewrightError[], code: string): string {
  return findings.find((finding) => finding.code === code)?.message ?? `no ${code}`;
}

const x = fromNumbers(f32, [2, 128], new Float32Array(256));

const handOver = kernel(
  {
    name: "hand_over",
    grid: { i: 2 },
    threads: ["write", "read"],
    inputs: { x: tensor(f32, [2, 128]) },
    outputs: { out: tensor(f32, [2, 128]) },
    scratch: { buffer: smem(f32, [128]) },
  },
  ({ i, x: source, out, buffer, write, read }) => {
    write(() => buffer.store(source.at(i).load()));
    read(() => out.at(i).store(buffer.load()));
  },
);

test("a race names threads, the block and the element of the buffer", async () => {
  const message = messageOf(await findingsOf(handOver, { x }), "TW8014");
  expect(message).toMatch(/thread write \(warp \d\) of block \(i = \d\)/);
  expect(message).toMatch(/thread read \(warp \d\) of block \(i = \d\)/);
  expect(message).toMatch(/found: {4}both touch element \[\d+\] of buffer, byte \d+ of it/);
});

test("a race is named once, whichever way round warps meet it", async () => {
  const findings = await findingsOf(handOver, { x });
  expect(findings.slice(0, -1).filter(({ code }) => code === "TW8014")).toHaveLength(1);
});

test("names are kept in what is compiled ahead of time", async () => {
  const { ptx, manifest } = compileAhead(handOver);
  const sent: unknown = JSON.parse(JSON.stringify(manifest));
  const loaded = kernelFromCompiled<typeof handOver>(sent, ptx);
  const found: TilewrightError[] = [];
  const device = await open("emulator", { onFindings: (findings) => found.push(...findings) });
  await expect(device.run(loaded, { x })).rejects.toThrow("TW80");
  device.dispose();
  expect(messageOf(found, "TW8014")).toMatch(/both touch element \[\d+\] of buffer/);
});

test("a deadlock names threads, their lines and the barrier", async () => {
  const stuck = kernel(
    {
      name: "stuck",
      threads: ["write", "read"],
      outputs: { out: tensor(f32, [128]) },
      scratch: { full: barrier({ arrivals: 1 }), buffer: smem(f32, [128]) },
    },
    ({ out, buffer, full, read }) => {
      read(() => {
        full.wait();
        out.store(buffer.load());
      });
    },
  );
  const [error] = await findingsOf(stuck, {});
  expect(error?.code).toBe("TW8020");
  expect(error?.summary).toMatch(
    /^thread read \(warp \d\) \(all lanes\) waits at mbarrier.*, barrier 0 of full$/,
  );
  expect(error?.position?.file).toMatch(/emulator-reports\.test\.ts$/);
});

test("memory that nothing has written has the array's name and the element", async () => {
  const copy = kernel(
    {
      name: "copy",
      inputs: { source: tensor(f32, [4, 32]) },
      outputs: { out: tensor(f32, [4, 32]) },
    },
    ({ source, out }) => out.store(source.load()),
  );
  const found: TilewrightError[] = [];
  const device = await open("emulator", {
    onFindings: (findings) => found.push(...findings),
    onLeak: () => undefined,
  });
  const source = device.allocate(f32, [4, 32]);
  const out = device.allocate(f32, [4, 32]);
  device.launch(copy, { source, out });
  await expect(device.synchronize()).rejects.toThrow("TW8013");
  device.dispose();
  expect(found[0]?.summary).toContain("thread main (warp ");
  expect(found[0]?.found).toMatch(/^element \[\d, \d+\] of source, f32\[4, 32\]$/);
});
