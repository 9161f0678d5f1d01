#!/usr/bin/env python3
"""Writes what embedding_server.py must answer, by PyTorch's CPU, as torpor-loadgen reads it."""

import argparse
import json

from sentence_encoder import SentenceEncoder

SENTENCES = [
    "Torpor",
    "A function gets a GPU when its request arrives.",
    "The quick brown fox jumps over the lazy dog.",
    "How many functions can share the memory of one graphics card?",
    "Where an image is evicted, only what the GPU has changed since is written back to the host.",
    "¿Dónde está la biblioteca? Über den Wolken, 42 km, 7.5 °C!",
    "Sentences of different lengths take different paths through a model: short ones leave most of "
    "a kernel's threads without work, and long ones need more than one block, so that a test with "
    "sentences of one length would see only one of them.",
]
TOLERANCE = 1e-4


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write-expected", metavar="FILE", required=True)
    arguments = parser.parse_args()
    encoder = SentenceEncoder("cpu")
    with open(arguments.write_expected, "w", encoding="utf-8") as file:
        for text in SENTENCES:
            exchange = {"request": {"text": text}, "expected": {"embedding": encoder.embed(text)},
                        "tolerance": TOLERANCE}
            file.write(json.dumps(exchange) + "\n")


if __name__ == "__main__":
    main()
