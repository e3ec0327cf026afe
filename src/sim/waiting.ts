/** Who waits for something, and how a report names what they wait for. */
import type { Agent } from "./agent.ts";

export class WaitList {
  #agents: Agent[] = [];

  add(agent: Agent): void {
    this.#agents.push(agent);
  }

  /** Lets everybody look again. */
  wake(): void {
    if (this.#agents.length === 0) return;
    const agents = this.#agents;
    this.#agents = [];
    for (const agent of agents) agent.resume();
  }
}
