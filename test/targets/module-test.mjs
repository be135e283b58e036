// A model and the runtime as one module: it trains with the bits of the artifact, by the same package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: node module-test.mjs PACKAGE FOLDER: what `ortc train --emit wasm` wrote
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, artifact] = process.argv.slice(2);
const { EntryRole, Metrics, OrtcError, Program, Role } = await import(pathToFileURL(`${folder}/index.mjs`));
const STEPS = 20, CLASSES = 10, FLOAT = 1;
const bytes = readFileSync(`${artifact}/model.wasm`);
const module = await WebAssembly.compile(bytes);
assert.deepEqual(WebAssembly.Module.imports(module), []);

/** Made-up numbers, of which step `step` sees its own. */
function feed(session, inputs, step) {
  for (const { name, dtype, shape } of inputs) {
    const count = shape.reduce((product, dim) => product * dim, 1);
    session.write(name, dtype === FLOAT
      ? Float32Array.from({ length: count }, (_, i) => ((i * 7919 + step * 104729) % 1000) / 1000)
      : BigInt64Array.from({ length: count }, (_, i) => BigInt((i + step) % CLASSES)));
  }
}

/** Losses and the checkpoint. */
function train(program, session = program.createSession()) {
  const entry = program.entries.find((each) => each.role === EntryRole.TRAIN);
  const inputs = entry.values.filter((value) => value.role === Role.INPUT), losses = [];
  for (let step = 0; step < STEPS; step++) {
    feed(session, inputs, step);
    losses.push(session.trainStep());
  }
  return [losses, session.save()];
}

const file = await Program.open(readFileSync(`${artifact}/model.ortc`));
const [losses, checkpoint] = train(file);
assert.ok(losses.every(Number.isFinite) && losses.at(-1) !== losses[0]);
for (const source of [bytes, module, new Response(bytes), Promise.resolve(new Response(bytes, { headers: { "content-type": "application/wasm" } }))]) {
  const program = await Program.openModule(source);
  assert.equal(program.info.model, file.info.model);
  assert.deepEqual(program.tensors, file.tensors);
  assert.deepEqual(train(program), [losses, checkpoint]);
}

// A checkpoint goes over, and steps take no more memory than the first ones.
const [, further] = train(file, (() => { const session = file.createSession(); session.load(checkpoint); return session; })());
const program = await Program.openModule(module), session = program.createSession();
session.load(checkpoint);
assert.deepEqual(train(program, session)[1], further);
const settled = session.memoryBytes;
train(program, session);
assert.equal(session.memoryBytes, settled);

const fails = (status, text) => (error) => error instanceof OrtcError && error.status === status && error.message.includes(text);
// Metrics take what a manifest says of the loss, which the module leaves out.
await assert.rejects(Metrics.create(program, []), fails("not found", "no manifest"));
const loss = JSON.parse(file.manifest).loss, name = loss.compares === "values" ? "mae" : "accuracy";
session.evalStep();
const metrics = await Metrics.create(program, [name], { manifest: file.manifest });
metrics.add(session);
assert.ok(metrics.compute()[name] >= 0);

await assert.rejects(Program.openModule(readFileSync(`${folder}/ortc.wasm`)), fails("format", "not a module"));
await assert.rejects(Program.openModule(bytes.subarray(0, 1000)), fails("format", ""));
await assert.rejects(Program.openModule(new Response("", { status: 404 })), fails("io", "404"));
// The image is checked as a file is: its table of sections, and the weights.
const image = bytes.indexOf("ORTC\r\n");
for (const at of [140, bytes.length - image - 5000]) {
  const damaged = Uint8Array.from(bytes);
  damaged[image + at] ^= 1;
  await assert.rejects(async () => (await Program.openModule(damaged)).createSession(), fails("hash", ""));
}
console.log(`passed: ${bytes.length} bytes`);
