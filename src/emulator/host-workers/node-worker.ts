/** Where a thread of Node begins. */
import { parentPort } from "node:worker_threads";
import type { Job } from "./job.ts";
import { Worksite } from "./work.ts";

const site = new Worksite();

parentPort?.on("message", (job: Job) => {
  parentPort?.postMessage(site.do(job));
});
