// A training with a schedule and metrics, in JavaScript, for compare-runs.py.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: node loop.mjs PACKAGE MODEL.ortc STEPS EVERY LR SCHEDULE METRIC:max|min ROWS [--input NAME=FILE]... METRIC...
//        node loop.mjs PACKAGE refuse MODEL.ortc [schedule|metric TEXT]...
// An evaluation takes the first ROWS samples. Says a line a step and an evaluation.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, ...words] = process.argv.slice(2);
const { EntryRole, Metrics, OrtcError, Program, Role, Schedule } = await import(pathToFileURL(`${folder}/index.mjs`));
const ARRAYS = { 1: Float32Array, 6: Int32Array, 7: BigInt64Array, 9: Uint8Array, 11: Float64Array };

async function refuse(path, ...cases) {
  const program = await Program.open(readFileSync(path));
  while (cases.length) {
    const [kind, text] = cases.splice(0, 2);
    try {
      await (kind === "schedule" ? Schedule.create(text, { lr: 0.01, steps: 12 }) : Metrics.create(program, [text]));
      console.log("nothing was refused");
    } catch (error) {
      console.log(error instanceof OrtcError ? `${error.status}\t${error.message}` : String(error));
    }
  }
}

async function train(path, steps, every, lr, text, goal, rows, ...rest) {
  const program = await Program.open(readFileSync(path)), session = program.createSession();
  const inputs = new Map();
  while (rest[0] === "--input") {
    const [name, file] = rest.splice(0, 2)[1].split("=");
    inputs.set(name, readFileSync(file));
  }
  const schedule = await Schedule.create(text, { lr: Number(lr), steps: Number(steps) });
  const metrics = await Metrics.create(program, rest);
  const [followed, direction] = goal.split(":");
  const values = program.entries.find((entry) => entry.role === EntryRole.TRAIN).values.filter((value) => value.role === Role.INPUT);
  const batch = values[0].shape[0], samples = inputs.get(values[0].name).length / values[0].bytes * batch;
  /** A batch from a sample on; after the last of `count` others begin anew. */
  const feed = (first, count) => {
    for (const { name, bytes, dtype } of values) {
      const size = bytes / batch, all = inputs.get(name), copy = new Uint8Array(bytes);
      for (let i = 0; i < batch; i++) {
        const at = (first + i) % count * size;
        copy.set(all.subarray(at, at + size), i * size);
      }
      session.write(name, new ARRAYS[dtype](copy.buffer));
    }
  };
  for (let step = 0; step < steps; step++) {
    const rate = schedule.rate(step), slices = Math.floor(samples / batch);
    session.setScalar("lr", rate);
    feed(step % slices * batch, samples);
    console.log(`step\t${session.trainStep()}\t${rate}`);
    if ((step + 1) % every)
      continue;
    metrics.begin();
    for (let first = 0; first < rows; first += batch) {
      feed(first, rows);
      session.evalStep();
      if (first + batch <= rows)
        metrics.add(session);
      else
        metrics.add(session, { rows: rows - first });
    }
    const found = metrics.compute();
    schedule.follow(found[followed], direction);
    console.log(`eval\t${rest.map((name) => found[name]).join("\t")}`);
  }
}

await (words[0] === "refuse" ? refuse(...words.slice(1)) : train(...words));
