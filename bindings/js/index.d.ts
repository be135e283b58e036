// The ortc runtime for JavaScript: node 18 or newer, and browsers with SIMD in WebAssembly (since 2021). One thread.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Numbers go in and out as typed arrays, row-major, in the ONNX layout and type: int64 is BigInt64Array; bfloat16 and
// float16 are the words that hold them, bool is bytes. What fails is an OrtcError, also where memory ends; signatures are not checked.
// An artifact needs code for WebAssembly: `ortc train --target wasm32` (or `all`). With `--emit wasm` one module has
// model and runtime.

/** What a failed call of the C interface says; `status` is its status by name. */
export class OrtcError extends Error {
  readonly status: "argument" | "format" | "version" | "target" | "hash" | "memory" | "io" | "not found" | "shape" | "range"
    | "not finite" | "state" | "internal";
}

export const Role: Readonly<{ PARAMETER: 0; CONSTANT: 1; STATE: 2; SCALAR: 3; INPUT: 4; OUTPUT: 5; GRADIENT: 6; LOSS: 7 }>;
export const EntryRole: Readonly<{ TRAIN: 0; EVAL: 1; PREDICT: 2; GRADIENTS: 3; UPDATE: 4; ACCUMULATE: 5 }>;

export interface TensorInfo {
  index: number;
  name: string;
  role: number;
  /** ONNX's TensorProto.DataType. */
  dtype: number;
  shape: number[];
  bytes: number;
}

export interface EntryInfo {
  role: number;
  binding: number;
  name: string;
  values: TensorInfo[];
}

export interface ProgramInfo {
  tensors: number;
  bindings: number;
  entries: number;
  target: string;
  codeBytes: number;
  constantBytes: number;
  persistentBytes: number;
  ioBytes: number;
  /** Hexadecimal digits: what identifies the artifact, and the model, between whose artifacts checkpoints pass. */
  digest: string;
  model: string;
}

/** An opened artifact, in a memory of its own of 1.3 MiB and the artifact. It goes with the last reference to it. */
export class Program {
  private constructor();
  /**
   * Copies the artifact (the contents of model.ortc), checks it and compiles its code. `runtime`: ortc.wasm or its bytes, where
   * it does not lie beside this module.
   */
  static open(artifact: Uint8Array | ArrayBuffer, options?: { runtime?: WebAssembly.Module | BufferSource }): Promise<Program>;
  /** Opens model.wasm of `ortc train --emit wasm`, which has the runtime, too: `openModule(fetch("model.wasm"))` needs no other file. */
  static openModule(source: WebAssembly.Module | BufferSource | Response | Promise<Response>): Promise<Program>;
  readonly info: ProgramInfo;
  readonly tensors: TensorInfo[];
  readonly entries: EntryInfo[];
  /** JSON that says what the artifact is: docs/manifest.md. Throws where there is none, as in modules of `ortc train --emit wasm`. */
  readonly manifest: string;
  /** Null where there is none of that name. */
  tensor(name: string): TensorInfo | null;
  /** Throws where there is none of that name. */
  bindingIndex(name: string): number;
  /** `stopOnNotFinite`: a training step whose loss is not finite fails before any update. */
  createSession(options?: { stopOnNotFinite?: boolean }): Session;
}

export type Numbers = Float32Array | Float64Array | Int8Array | Uint8Array | Uint8ClampedArray | Int16Array | Uint16Array | Int32Array | Uint32Array
  | BigInt64Array | BigUint64Array;

/** Parameters, optimizer state and what a step needs, with the first binding in use. */
export class Session {
  private constructor();
  /** Bytes of memory that the program takes now, code and artifact included. */
  readonly memoryBytes: number;
  /** The index of the binding in use. */
  readonly binding: number;
  useBinding(name: string): void;
  /** Parameters, state and scalars as they were when the session was created. */
  reset(): void;
  /** Copies in: inputs, parameters, state, scalars. An array of the tensor's type, with as many numbers as it has. */
  write(name: string, values: Numbers): void;
  /** Copies out. `bytes`: where an input or output has another size in the binding in use than in the first one. */
  read(name: string, options?: { bytes?: number }): Numbers;
  /** After gradientsStep and before any other step. */
  readGradient(parameter: string): Numbers;
  writeGradient(parameter: string, values: Numbers): void;
  /** Hyper-parameters: lr, weight_decay, ... */
  setScalar(name: string, value: number): void;
  getScalar(name: string): number;
  /** Steps give the loss before the update. */
  trainStep(): number;
  accumulateStep(): number;
  evalStep(): number;
  gradientsStep(): number;
  predictStep(): void;
  updateStep(): void;
  /** A checkpoint: the bytes of a safetensors file, which every ortc runtime can load. */
  save(): Uint8Array;
  load(checkpoint: Uint8Array | ArrayBuffer): void;
  /** The program's next session has its memory. */
  close(): void;
}

/** `training`: training.wasm or its bytes, where it does not lie beside this module. It is loaded by nothing else. */
export interface TrainingOptions {
  training?: WebAssembly.Module | BufferSource;
}

/** The learning rates of a training, by the text and the formulas of `ortc run --lr-schedule`. */
export class Schedule {
  private constructor();
  /**
   * `text`: a schedule, "cosine:warmup=100", or "plateau:patience=3". `lr`: the rate it starts from. `steps`: of the whole training, where
   * a schedule that falls ends unless it has total=N. Throws what `ortc run` would say.
   */
  static create(text: string, options: TrainingOptions & { lr: number; steps?: number }): Promise<Schedule>;
  /** The rate of a step, counted from 0: `session.setScalar("lr", schedule.rate(step))`. That of a plateau depends on evaluations and not on the step. */
  rate(step: number): number;
  /** After every evaluation: a plateau lowers its rate where values get no better. Others do nothing. */
  follow(value: number, goal?: "min" | "max"): void;
  /** A plateau's memory of evaluations, for a training that goes on later; empty for schedules. */
  readonly state: string;
  /** Takes a `state`, in a plateau of the same text whose `lr` is the last rate of the other. */
  restore(state: string): void;
}

/** The metrics of `ortc run --metric`, over the slices of an evaluation. */
export class Metrics {
  private constructor();
  /**
   * `names`: "accuracy", "f1:average=macro", "auc", ... `manifest`: the contents of manifest.json, where the program has none. Throws what
   * `ortc run` would say.
   */
  static create(program: Program, names: string[], options?: TrainingOptions & { manifest?: string }): Promise<Metrics>;
  /** Forgets all slices: an evaluation begins. */
  begin(): void;
  /**
   * Adds a slice: labels as they are in the session, and outputs of its last evalStep or predictStep. `rows`: so many samples of the batch
   * count, where others fill it up; without it all do.
   */
  add(session: Session, options?: { rows?: number }): void;
  /** Values by name; NaN where one is not defined. */
  compute(): Record<string, number>;
}
