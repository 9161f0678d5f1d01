#!/usr/bin/env python3
"""Trains the network of the `digits` example on scikit-learn's 8x8 handwritten digits.

    pip install numpy scikit-learn
    ./train.py            # writes weights.f32 and held_out.jsonl beside itself

Only this script needs scikit-learn. The network (model.h has the same shapes):

    conv 3x3, 1 -> 8, ReLU;  conv 3x3, 8 -> 16, ReLU;  max pool 2x2;
    dense 256 -> 48, ReLU;   dense 48 -> 10

weights.f32 holds little-endian float32, in this order: conv1 [8][1][3][3], its bias,
conv2 [16][8][3][3], its bias, dense1 [256][48], its bias, dense2 [48][10], its bias.
held_out.jsonl holds the images that were never trained on, one JSON object a line, with the
label and the logits that this script's own float64 forward pass gives.
"""

import json
import pathlib

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

CONV1, CONV2, HIDDEN, CLASSES = 8, 16, 48, 10
EPOCHS, BATCH, STEP, DECAY = 60, 32, 2e-3, 1e-4


def patches(x):
    """[n, c, 8, 8] -> [n, 8, 8, c * 9]: the 3x3 neighbourhood of every pixel, zero-padded."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(x.shape[0], 8, 8, -1)


def unpatch(grad, channels):
    """The transpose of `patches`."""
    n = grad.shape[0]
    grad = grad.reshape(n, 8, 8, channels, 3, 3)
    padded = np.zeros((n, channels, 10, 10))
    for dy in range(3):
        for dx in range(3):
            padded[:, :, dy:dy + 8, dx:dx + 8] += grad[:, :, :, :, dy, dx].transpose(0, 3, 1, 2)
    return padded[:, :, 1:9, 1:9]


def initial_weights(rng):
    def he(fan_in, *shape):
        return rng.normal(0, np.sqrt(2 / fan_in), shape)
    return [he(9, CONV1, 9), np.zeros(CONV1), he(9 * CONV1, CONV2, 9 * CONV1), np.zeros(CONV2),
            he(16 * CONV2, 16 * CONV2, HIDDEN), np.zeros(HIDDEN),
            he(HIDDEN, HIDDEN, CLASSES), np.zeros(CLASSES)]


def forward(weights, images):
    """Logits, and what the backward pass needs."""
    k1, b1, k2, b2, w1, c1, w2, c2 = weights
    n = images.shape[0]
    p1 = patches(images)
    a1 = np.maximum(p1 @ k1.T + b1, 0).transpose(0, 3, 1, 2)
    p2 = patches(a1)
    a2 = np.maximum(p2 @ k2.T + b2, 0).transpose(0, 3, 1, 2)
    blocks = a2.reshape(n, CONV2, 4, 2, 4, 2).transpose(0, 1, 2, 4, 3, 5).reshape(n, -1, 4)
    winner = blocks.argmax(axis=2)
    pooled = blocks.max(axis=2)
    h = np.maximum(pooled @ w1 + c1, 0)
    return h @ w2 + c2, (p1, a1, p2, a2, winner, pooled, h)


def backward(weights, kept, grad_logits):
    _, _, k2, _, w1, _, w2, _ = weights
    p1, a1, p2, a2, winner, pooled, h = kept
    n = h.shape[0]
    grad_h = (grad_logits @ w2.T) * (h > 0)
    grad_blocks = np.zeros(winner.shape + (4,))
    np.put_along_axis(grad_blocks, winner[..., None], (grad_h @ w1.T)[..., None], axis=2)
    grad_a2 = grad_blocks.reshape(n, CONV2, 4, 4, 2, 2).transpose(0, 1, 2, 4, 3, 5)
    grad_a2 = (grad_a2.reshape(a2.shape) * (a2 > 0)).transpose(0, 2, 3, 1)
    grad_a1 = (unpatch(grad_a2 @ k2, CONV1) * (a1 > 0)).transpose(0, 2, 3, 1)
    return [np.einsum("nyxo,nyxk->ok", grad_a1, p1), grad_a1.sum(axis=(0, 1, 2)),
            np.einsum("nyxo,nyxk->ok", grad_a2, p2), grad_a2.sum(axis=(0, 1, 2)),
            pooled.T @ grad_h, grad_h.sum(axis=0), h.T @ grad_logits, grad_logits.sum(axis=0)]


def shifted(images, rng):
    """Each image moved by up to one pixel: the network must not learn exact places."""
    moved = np.empty_like(images)
    for i, image in enumerate(images):
        moved[i] = np.roll(image, rng.integers(-1, 2, size=2), axis=(1, 2))
    return moved


def train(images, labels, rng):
    weights = initial_weights(rng)
    first = [np.zeros_like(w) for w in weights]
    second = [np.zeros_like(w) for w in weights]
    step = 0
    for epoch in range(EPOCHS):
        rate = STEP * 0.5 * (1 + np.cos(np.pi * epoch / EPOCHS))
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            chosen = order[start:start + BATCH]
            logits, kept = forward(weights, shifted(images[chosen], rng))
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(chosen)), labels[chosen]] -= 1
            step += 1
            for w, g, m, v in zip(weights, backward(weights, kept, p / len(chosen)), first, second):
                m += 0.1 * (g - m)
                v += 0.001 * (g * g - v)
                m_hat, v_hat = m / (1 - 0.9 ** step), v / (1 - 0.999 ** step)
                w -= rate * (m_hat / (np.sqrt(v_hat) + 1e-8) + DECAY * w)
    return weights


def main():
    folder = pathlib.Path(__file__).parent
    rng = np.random.default_rng(7)
    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(
        digits.images, digits.target, test_size=0.2, random_state=7, stratify=digits.target)
    weights = train(train_x[:, None] / 16.0, train_y, rng)
    weights = [w.astype("<f4").astype(np.float64) for w in weights]
    logits, _ = forward(weights, test_x[:, None] / 16.0)
    print(f"accuracy on {len(test_y)} held-out images: {(logits.argmax(axis=1) == test_y).mean():.4f}")

    (folder / "weights.f32").write_bytes(b"".join(w.astype("<f4").tobytes() for w in weights))
    with open(folder / "held_out.jsonl", "w", encoding="ascii") as out:
        for image, label, values in zip(test_x, test_y, logits):
            out.write(json.dumps({"pixels": image.astype(int).ravel().tolist(), "label": int(label),
                                  "logits": [round(v, 4) for v in values]},
                                 separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
