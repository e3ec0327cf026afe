import { expect, test } from "vitest";
import { WorkQueue } from "./work-queue.ts";

const failing = (message: string) => async (): Promise<void> => {
  throw new Error(message);
};

test("work begins when what came before it has ended, whether that failed or not", async () => {
  const queue = new WorkQueue();
  const order: string[] = [];
  const slow = queue.run(async () => {
    await new Promise((resolve) => setTimeout(resolve, 5));
    order.push("slow");
    throw new Error("slow");
  });
  const fast = queue.run(async () => order.push("fast"));
  await expect(slow).rejects.toThrow("slow");
  await fast;
  expect(order).toEqual(["slow", "fast"]);
});

test("the first failure that nobody waited for is told once", async () => {
  const queue = new WorkQueue();
  queue.launch(failing("first"));
  queue.launch(failing("second"));
  await expect(queue.run(failing("own"))).rejects.toThrow("own");
  await expect(queue.synchronize()).rejects.toThrow("first");
  await queue.synchronize();
});
