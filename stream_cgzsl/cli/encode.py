"""`encode TEXTS`: make a data set for `run` and `feed` from texts, with an encoder of sentences.

TEXTS is a CSV file with the columns text and label (and split: train or test), or a folder with one folder of .txt
files per class. Classes get their vectors from the same encoder: from --descriptions, else from their names.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from stream_cgzsl.cli.flags import add, positive, settings_from
from stream_cgzsl.cli.progress import progress

_SHOWN = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("texts", type=Path, metavar="TEXTS", help="a CSV file, or a folder with one folder per class")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the folder of the data set")
    parser.add_argument(
        "--descriptions", type=Path, metavar="FILE", help="a CSV file with the columns label and description"
    )
    parser.add_argument(
        "--encoder",
        metavar="NAME",
        help="a model of sentence-transformers, the folder of one, or module:function, which makes an array of a list "
        "of texts and of paths of other files (default: sentence-transformers/all-MiniLM-L6-v2)",
    )
    parser.add_argument("--encoder-batch", type=positive, default=32, metavar="N", help="texts at once (default: 32)")
    add(parser, ("device", "threads"))


def run(arguments: argparse.Namespace) -> None:
    from stream_cgzsl.benchmark.encoding.encode import encode_folder, refuse_data
    from stream_cgzsl.benchmark.encoding.encoders import DEFAULT, load_encoder
    from stream_cgzsl.benchmark.encoding.texts import read_descriptions, read_texts
    from stream_cgzsl.runtime.devices import choose_device
    from stream_cgzsl.runtime.environment import prepare_torch

    settings = settings_from(arguments)
    refuse_data(arguments.out)
    texts = read_texts(arguments.texts)
    descriptions = {} if arguments.descriptions is None else read_descriptions(arguments.descriptions)
    prepare_torch(settings.threads)
    encoder = load_encoder(arguments.encoder or DEFAULT, choose_device(settings.device))
    with progress() as show:
        found = encode_folder(texts, descriptions, encoder, arguments.out, arguments.encoder_batch, show)
    print(f"{found.rows:,} rows of {found.features} numbers, {found.classes} classes of {found.attributes}")
    for names, what in (
        (found.named_only, "have only their name as a description"),
        (found.without_rows, "are described and have no text: `run` and `feed` leave them out"),
    ):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            print(f"{', '.join(names[:_SHOWN])}{more}: {what}")
    print(f"to learn it: stream-cgzsl run {arguments.out} --out runs/{arguments.out.resolve().name}")
