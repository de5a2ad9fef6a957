// Answers each line of stdin, a JSON array of simulations, with a line that holds their results.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(`${process.cwd()}/`); // where node_modules is
const { runSimulation } = require("@cloud-copilot/iam-simulate");

for await (const line of createInterface({ input: process.stdin })) {
  const results = [];
  for (const simulation of JSON.parse(line)) {
    const { overallResult, errors } = await runSimulation(simulation, {});
    results.push(overallResult ?? JSON.stringify(errors));
  }
  process.stdout.write(JSON.stringify(results) + "\n");
}
