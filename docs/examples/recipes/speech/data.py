"""Writes train.npz and test.npz: utterances of two to five syllables, as log energies of 20 bands in frames of 10 ms.

A syllable is a glide of two formants; speakers differ in pitch and speed, and there is noise. Beginnings and ends are not marked: a label is the
syllables in their order, and nothing more. Needs numpy.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import numpy as np

FRAMES, BANDS, LABELS = 48, 20, 5
#            first formant, second formant, in bands, from where to where
SYLLABLES = {1: (3, 3, 14, 14), 2: (3, 8, 14, 10), 3: (8, 8, 11, 11), 4: (8, 3, 11, 6), 5: (4, 4, 7, 7), 6: (4, 8, 7, 13), 7: (6, 3, 17, 14)}


def utterance(random):
    frames, label = [], random.randint(1, len(SYLLABLES) + 1, random.randint(2, LABELS + 1))
    voice, speed = random.uniform(-1, 1), random.uniform(0.85, 1.15)
    for syllable in label:
        f1, f1_end, f2, f2_end = SYLLABLES[syllable]
        length = int(round(speed * random.randint(5, 9)))
        for t in np.linspace(0, 1, length):
            bands = np.arange(BANDS) - voice
            loudness = 2.5 * np.sin(np.pi * (0.15 + 0.7 * t))
            first = np.exp(-(((bands - f1 - (f1_end - f1) * t) / 1.2) ** 2))
            second = np.exp(-(((bands - f2 - (f2_end - f2) * t) / 1.2) ** 2))
            frames.append(loudness * (first + 0.8 * second))
    frames = np.array(frames[:FRAMES])
    return frames + random.normal(0, 0.5, frames.shape), label


def write(path, count, seed):
    random = np.random.RandomState(seed)  # its numbers are the same in every version of numpy
    features = np.zeros((count, BANDS, FRAMES), np.float32)
    label = np.zeros((count, LABELS), np.int64)
    frames_of, labels_of = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for i in range(count):
        frames, syllables = utterance(random)
        features[i, :, : len(frames)] = frames.T
        label[i, : len(syllables)] = syllables
        frames_of[i], labels_of[i] = len(frames), len(syllables)
    np.savez(path, features=features, label=label, input_lengths=frames_of, target_lengths=labels_of)


if __name__ == "__main__":
    write("train.npz", 512, 1)
    write("test.npz", 128, 2)
