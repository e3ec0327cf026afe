/** Where a thread of a browser begins. */
import type { Job } from "./job.ts";
import { Worksite } from "./work.ts";

const site = new Worksite();

globalThis.onmessage = ({ data }: MessageEvent<Job>) => {
  globalThis.postMessage(site.do(data));
};
