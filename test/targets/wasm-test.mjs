// The JavaScript package by itself: what it says of a program, types of arrays, errors.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// usage: node wasm-test.mjs PACKAGE MODEL.ortc WITHOUT.ortc ALL.ortc: artifacts of mlp-digits with code for WebAssembly, without, and
// with code for all processors
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, path, without, all] = process.argv.slice(2);
const { EntryRole, Metrics, OrtcError, Program, Role, Schedule } = await import(pathToFileURL(`${folder}/index.mjs`));
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

// Arrays of another type, though with as many bytes.
assert.throws(() => session.write("pixels", new Int32Array(64 * 64)), fails("shape", "'pixels' is float32 and takes Float32Array, not Int32Array"));
assert.throws(() => session.write("pixels", new Uint8Array(4 * 64 * 64)), fails("shape", "not Uint8Array"));
assert.throws(() => session.write("label", new Float64Array(64)), fails("shape", "'label' is int64 and takes BigInt64Array, not Float64Array"));
assert.throws(() => session.write("label", new ArrayBuffer(512)), fails("shape", "not ArrayBuffer"));
assert.throws(() => session.write("label", undefined), fails("shape", "not undefined"));
assert.throws(() => session.write("nobody", new Float32Array(1)), fails("not found", "nobody"));
assert.throws(() => session.write("pixels\0", new Float32Array(64 * 64)), fails("argument", "character 0"));
assert.throws(() => program.bindingIndex("nobody"), fails("not found", "nobody"));

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

// Learning rates and metrics: test/bindings/training compares their numbers.
assert.equal(JSON.parse(program.manifest).loss.kind, "cross_entropy");
const training = await WebAssembly.compile(readFileSync(`${folder}/training.wasm`));
assert.deepEqual(WebAssembly.Module.imports(training), []);
const plateau = await Schedule.create("plateau:patience=0,factor=0.5", { lr: 0.5, training });
plateau.follow(2);
assert.equal(plateau.rate(100), 0.5);
plateau.follow(2);
assert.equal(plateau.rate(100), 0.25);
const resumed = await Schedule.create("plateau:patience=0,factor=0.5", { lr: plateau.rate(0) });
resumed.restore(plateau.state);
resumed.follow(1);
assert.equal(resumed.rate(0), 0.25);
resumed.follow(2, "min");
assert.equal(resumed.rate(0), 0.125);
assert.throws(() => resumed.follow(1, "smaller"), fails("argument", "'smaller'"));
assert.throws(() => resumed.restore("state:bad=x"), fails("argument", "state"));
await assert.rejects(Schedule.create("constant", {}), fails("argument", "the learning rate is nan"));
await assert.rejects(Schedule.create("linear", { lr: 1 }), fails("argument", "it needs total=N"));
await assert.rejects(Schedule.create("constant", { lr: 1, steps: -1 }), fails("argument", "-1 steps"));
const metrics = await Metrics.create(program, ["accuracy", "accuracy"]);
assert.ok(Number.isNaN(metrics.compute().accuracy));
session.predictStep();
metrics.add(session, { rows: 0 });
assert.ok(Number.isNaN(metrics.compute().accuracy));
const wanted = session.read("output"), classes = Array.from({ length: 64 }, (_, row) => wanted.subarray(10 * row, 10 * row + 10))
  .map((scores) => scores.indexOf(Math.max(...scores)));
session.write("label", BigInt64Array.from(classes, (each, row) => BigInt(row < 16 ? each : (each + 1) % 10)));
metrics.begin();
metrics.add(session, { rows: 20 });
assert.deepEqual(metrics.compute(), { accuracy: 16 / 20 });
metrics.add(session);
assert.deepEqual(metrics.compute(), { accuracy: 32 / 84 });
for (const rows of [-1, 65])
  assert.throws(() => metrics.add(session, { rows }), fails("argument", "batch of 64 samples"));
assert.throws(() => metrics.add(gradients), fails("state", "closed"));
await assert.rejects(Metrics.create(program, ["accuracy"], { training: new Uint8Array(8) }), fails("format", ""));

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

// The next session has the memory of a closed one, zeros where it begins with zeros.
const rounds = [];
for (let i = 0; i < 20; i++) {
  const again = program.createSession(), other = program.createSession();
  for (const each of [again, other]) {
    assert.deepEqual(each.read("2.bias"), before);
    assert.ok(each.read("2.bias.exp_avg").every((moment) => moment === 0));
    each.write("pixels", new Float32Array(64 * 64).fill(i));
    each.write("label", new BigInt64Array(64));
    each.trainStep();
  }
  (i % 2 ? again : other).close();
  (i % 2 ? other : again).close();
  rounds.push(used());
}
assert.equal(new Set(rounds).size, 1);

// Where memory ends.
const { grow } = WebAssembly.Memory.prototype;
WebAssembly.Memory.prototype.grow = () => { throw new RangeError("no more pages"); };
assert.throws(() => session.load(new Uint8Array(1 << 26)), fails("memory", "no more pages"));
await assert.rejects(Program.open(image), fails("memory", "no more pages"));
WebAssembly.Memory.prototype.grow = grow;
const { Memory } = WebAssembly;
WebAssembly.Memory = function () { throw new RangeError("no address space"); };
await assert.rejects(Program.open(image), fails("memory", "no address space"));
WebAssembly.Memory = Memory;
session.write("label", new BigInt64Array(64));
session.trainStep();

// Of several sections of code the last one that fits is taken, as everywhere. What makes the header's digest good again: it
// covers the header before it, and the table.
const HEADER = 120, ROW = 80, DIGEST = 88, WASM32 = 5;
function relabel(edit) {
  const bytes = readFileSync(all), rows = bytes.readUInt32LE(24);
  const codes = Array.from({ length: rows }, (_, i) => HEADER + i * ROW).filter((row) => bytes.readUInt32LE(row) === 8);
  edit(bytes, codes, codes.findIndex((row) => bytes.readUInt32LE(row + 28) === WASM32));
  const covered = Buffer.concat([bytes.subarray(0, DIGEST), bytes.subarray(HEADER, HEADER + rows * ROW)]);
  createHash("sha256").update(covered).digest().copy(bytes, DIGEST);
  return bytes;
}
const several = relabel((bytes, codes, own) => {
  assert.ok(own > 0);
  bytes.writeUInt32LE(WASM32, codes[0] + 28);
  bytes.writeBigUInt64LE(0n, codes[0] + 32);
});
assert.equal((await Program.open(several)).info.target, "wasm32");
const featured = relabel((bytes, codes, own) => bytes.writeBigUInt64LE(1n, codes[own] + 32));
await assert.rejects(Program.open(featured), fails("target", "no code for this processor"));

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
