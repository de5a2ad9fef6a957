// Drives a job to its end with openapi-fetch and the types that openapi-typescript generates.
// The argument is the API's URL; the test writes payloads.ts.
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";
import { invalid, payload } from "./payloads.js";

declare const process: { argv: string[] };

const client = createClient<paths>({ baseUrl: process.argv[2]! });

const accepted = await client.POST("/jobs", { body: payload });
let job: components["schemas"]["Job"] | undefined = accepted.data;
while (job && !["completed", "failed", "cancelled"].includes(job.status)) {
  await new Promise((resolve) => setTimeout(resolve, 100));
  job = (await client.GET("/jobs/{job_id}", { params: { path: { job_id: job.job_id } } })).data;
}

const refused = await client.POST("/jobs", { body: invalid });
const errors = refused.error && "errors" in refused.error ? refused.error.errors : undefined;

const path = { job_id: crypto.randomUUID() };
const unknown = await client.GET("/jobs/{job_id}", { params: { path } });
const problem = unknown.error && "type" in unknown.error ? unknown.error.type : undefined;

const result = Object.keys(job?.result ?? {}).length > 0;
console.log(JSON.stringify({ status: job?.status, result, field: errors?.[0]?.field, problem }));
