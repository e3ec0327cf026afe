/** Where a thread of a browser begins. */
import { doTask } from "./tasks.ts";
import type { Task } from "./tasks.ts";

globalThis.onmessage = ({ data }: MessageEvent<Task>) => {
  void doTask(data).then((answer) => {
    globalThis.postMessage(answer);
  });
};
