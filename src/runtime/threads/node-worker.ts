/** Where a thread of Node begins. */
import { parentPort } from "node:worker_threads";
import { doTask } from "./tasks.ts";
import type { Task } from "./tasks.ts";

parentPort?.on("message", (task: Task) => {
  void doTask(task).then((answer) => parentPort?.postMessage(answer));
});
