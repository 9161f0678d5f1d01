#!/usr/bin/env python3
"""A sentence encoder as a service, as a user of PyTorch would write one.

POST /embed {"text": "..."} answers {"embedding": [384 numbers]}; GET /healthz answers 200 as soon as
requests are served.
"""

import json_service
from sentence_encoder import SentenceEncoder


def text_of(request):
    if not isinstance(request, dict) or not isinstance(request.get("text"), str):
        raise json_service.BadRequest('the body should be {"text": "a sentence"}')
    return request["text"]


def main():
    arguments = json_service.flags(__doc__).parse_args()

    def set_up():
        encoder = SentenceEncoder(arguments.device)
        encoder.embed("The first inference loads what the later ones need.")
        return {"/embed": lambda request: {"embedding": encoder.embed(text_of(request))}}

    json_service.serve(arguments.host, arguments.port, set_up)


if __name__ == "__main__":
    main()
