/**
 * The time that this process has had of a processor, in milliseconds: what limits of time are held against. How long
 * something takes by the clock tells, where others run too, mostly of the others.
 */
import process from "node:process";

export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
