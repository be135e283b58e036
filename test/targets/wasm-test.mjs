// The JavaScript package by itself: what it says of a program, types of arrays, errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: node wasm-test.mjs PACKAGE MODEL.ortc [WITHOUT.ortc]: an artifact of mlp-digits with code for WebAssembly, and one without
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, path, without] = process.argv.slice(2);
const { EntryRole, OrtcError, Program, Role } = await import(pathToFileURL(`${folder}/index.mjs`));
const image = readFileSync(path);
const fails = (status, text) => (error) => error instanceof OrtcError && error.status === status && error.message.includes(text);

const program = await Program.open(image);
const { info } = program;
assert.equal(info.target, "wasm32");
assert.match(info.digest, /^[0-9a-f]{64}$/);
assert.equal(program.tensors.length, info.tensors);
assert.deepEqual(program.tensor("0.weight").shape, [64, 64]);
assert.equal(program.tensor("nobody"), null);
const train = program.entries.find((entry) => entry.role === EntryRole.TRAIN);
assert.deepEqual(train.values.filter((value) => value.role === Role.INPUT).map((value) => value.name).sort(), ["label", "pixels"]);

const session = program.createSession();
assert.throws(() => session.trainStep(), fails("state", "is not bound or written"));
session.write("pixels", Float32Array.from({ length: 64 * 64 }, (_, i) => (i * 7 % 17) / 16));
session.write("label", BigInt64Array.from({ length: 64 }, (_, i) => BigInt(i % 10)));
assert.throws(() => session.write("pixels", new Float32Array(3)), fails("shape", "12"));
assert.throws(() => session.read("nobody"), fails("not found", "nobody"));

const before = session.read("2.bias");
assert.ok(before instanceof Float32Array && before.length === 10);
const loss = session.trainStep();
assert.notDeepEqual(session.read("2.bias"), before);
assert.ok(Math.abs(session.getScalar("lr") - 0.02) < 1e-9);
session.setScalar("lr", 0.5);
assert.equal(session.getScalar("lr"), 0.5);

const checkpoint = session.save();
assert.equal(new TextDecoder().decode(checkpoint.slice(8, 26)), '{"__metadata__":{"');
const next = session.trainStep();
assert.ok(next < loss);
session.load(checkpoint);
assert.equal(session.trainStep(), next);
checkpoint[checkpoint.length - 1] ^= 1;
assert.throws(() => session.load(checkpoint), fails("hash", "checksum"));
session.reset();
assert.deepEqual(session.read("2.bias"), before);

session.write("label", new BigInt64Array(64).fill(10n));
assert.throws(() => session.trainStep(), fails("range", "index 10"));
const gradients = program.createSession();
assert.throws(() => gradients.updateStep(), OrtcError);
gradients.close();
gradients.close();
for (const use of [(closed) => closed.save(), (closed) => closed.load(checkpoint), (closed) => closed.reset(), (closed) => closed.trainStep()])
  assert.throws(() => use(gradients), fails("state", "closed"));

// Steps take no more memory than the first.
const used = () => session.memoryBytes;
session.write("label", new BigInt64Array(64));
session.trainStep();
const settled = used();
for (let i = 0; i < 50; i++) {
  session.write("pixels", new Float32Array(64 * 64));
  session.trainStep();
  session.save();
}
assert.equal(used(), settled);

// Damage is found wherever the runtime looks.
const damaged = Uint8Array.from(image);
damaged[140] ^= 1;
await assert.rejects(Program.open(damaged), OrtcError);
await assert.rejects(Program.open(image.subarray(0, 1000)), fails("format", "cut short"));
const rows = Uint8Array.from(image); // a count that no file has
rows.fill(0xff, 24, 28);
await assert.rejects(Program.open(rows), fails("format", "malformed"));
await assert.rejects(Program.open(new Uint8Array(10)), fails("format", "not an ortc artifact"));
await assert.rejects(Program.open(readFileSync(without)), fails("target", "no code for this processor"));
console.log("passed");
