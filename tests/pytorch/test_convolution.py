"""Convolutions, pooling, sampling and normalisation: cuDNN and PyTorch's own kernels."""

import unittest

import torch
from torch import nn
from torch.nn import functional

from against_cpu import AgainstCpu

TYPES = (torch.float32, torch.float16, torch.bfloat16)


class ConvolutionTest(AgainstCpu):
    def convolutions(self, function, image, weights, types=TYPES, **arguments):
        x, w, bias = torch.randn(image), torch.randn(weights), torch.randn(weights[0])
        for dtype in types:
            with self.subTest(dtype=dtype, **arguments):
                # The CPU's sums in 16 bits are rounded elsewhere: compared with those of 32 bits.
                low = [t.to(dtype) for t in (x, w, bias)]
                expected = function(*[t.float() for t in low], **arguments).to(dtype)
                actual = function(*[t.cuda() for t in low], **arguments)
                loose = {torch.float32: (1e-4, 1e-4), torch.float16: (4e-3, 2e-2),
                         torch.bfloat16: (2e-2, 1e-1)}[dtype]
                self.compare(actual, expected, *loose)

    def test_strides_padding_and_dilation(self):
        for arguments in ({}, {"stride": 2}, {"padding": 1}, {"padding": 2, "dilation": 2},
                          {"stride": (2, 1), "padding": (0, 2)}, {"padding": "same"}):
            self.convolutions(functional.conv2d, (2, 4, 9, 11), (6, 4, 3, 3), **arguments)

    def test_kernels(self):
        for size in ((1, 1), (5, 5), (7, 3)):
            self.convolutions(functional.conv2d, (1, 4, 12, 12), (8, 4, *size))

    def test_groups(self):
        self.convolutions(functional.conv2d, (2, 8, 9, 9), (8, 2, 3, 3), groups=4)

    def test_depthwise(self):
        self.convolutions(functional.conv2d, (2, 8, 9, 9), (8, 1, 3, 3), groups=8, padding=1)

    def test_one_and_three_dimensions(self):
        self.convolutions(functional.conv1d, (2, 4, 20), (6, 4, 3), padding=1)
        self.convolutions(functional.conv3d, (1, 3, 5, 6, 7), (4, 3, 3, 3, 3), padding=1)

    def test_transposed(self):
        x, w, bias = torch.randn(2, 6, 7, 7), torch.randn(6, 4, 3, 3), torch.randn(4)
        for arguments in ({}, {"stride": 2, "padding": 1, "output_padding": 1}):
            with self.subTest(**arguments):
                self.check(lambda *a: functional.conv_transpose2d(*a, **arguments), x, w, bias,
                           rtol=1e-4, atol=1e-4)

    def test_channels_last(self):
        layer = nn.Conv2d(8, 8, 3, padding=1).to(memory_format=torch.channels_last)
        x = torch.randn(2, 8, 9, 9).to(memory_format=torch.channels_last)
        with torch.no_grad():
            expected = layer(x)
            actual = layer.cuda()(x.cuda())
        self.compare(actual, expected, 1e-4, 1e-4)

    def test_the_algorithm_that_is_fastest(self):
        before = torch.backends.cudnn.benchmark
        torch.backends.cudnn.benchmark = True
        try:
            self.convolutions(functional.conv2d, (2, 4, 10, 10), (4, 4, 3, 3), padding=1)
        finally:
            torch.backends.cudnn.benchmark = before

    def test_without_cudnn(self):
        with torch.backends.cudnn.flags(enabled=False):
            self.convolutions(functional.conv2d, (2, 4, 9, 11), (6, 4, 3, 3), padding=1)

    def test_gradients(self):
        def gradients(x, w):
            x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
            functional.conv2d(x, w, padding=1).square().sum().backward()
            return x.grad, w.grad

        self.check(gradients, torch.randn(2, 3, 8, 8), torch.randn(4, 3, 3, 3),
                   rtol=1e-3, atol=1e-3)


class PoolingTest(AgainstCpu):
    def test_pooling(self):
        x = torch.randn(2, 4, 11, 13)
        for dtype in TYPES:
            with self.subTest(dtype=dtype):
                self.check(lambda t: functional.max_pool2d(t, 3, 2, 1), x.to(dtype))
                self.check(lambda t: functional.avg_pool2d(t, 2), x.to(dtype))
                self.check(lambda t: functional.adaptive_avg_pool2d(t, (1, 1)), x.to(dtype))
        self.check(lambda t: functional.max_pool2d(t, 2, return_indices=True), x)
        self.check(lambda t: functional.adaptive_max_pool2d(t, (3, 5)), x)

    def test_interpolation(self):
        x = torch.randn(1, 3, 7, 9)
        self.check(lambda t: functional.interpolate(t, scale_factor=2, mode="nearest"), x)
        self.check(lambda t: functional.interpolate(t, size=(13, 5), mode="bilinear",
                                                    align_corners=False), x)
        self.check(lambda t: functional.interpolate(t, size=(5, 13), mode="bicubic"), x)


class SpatialTransformerTest(AgainstCpu):
    def test_sampling(self):
        x, grid = torch.randn(2, 3, 5, 7), torch.empty(2, 4, 6, 2).uniform_(-1.4, 1.4)
        for mode, padding, align_corners in (("bilinear", "zeros", True),  # by cuDNN
                                             ("bilinear", "zeros", False),
                                             ("nearest", "border", True)):
            with self.subTest(mode=mode, padding=padding, align_corners=align_corners):
                self.check(lambda *a: functional.grid_sample(
                    *a, mode=mode, padding_mode=padding, align_corners=align_corners), x, grid)

    def test_sampling_in_other_types(self):
        x, grid = torch.randn(2, 3, 5, 7), torch.empty(2, 4, 6, 2).uniform_(-1.4, 1.4)
        for dtype in (torch.float64, torch.float16):
            with self.subTest(dtype=dtype):
                low = [t.to(dtype) for t in (x, grid)]
                # The CPU rounds coordinates to 16 bits: compared with those of 64.
                expected = functional.grid_sample(*[t.double() for t in low], align_corners=True)
                self.compare(torch.cudnn_grid_sampler(*[t.cuda() for t in low]),
                             expected.to(dtype))

    def test_affine_grids(self):
        theta = torch.randn(2, 2, 3)
        self.check(lambda t: functional.affine_grid(t, (2, 3, 4, 5), align_corners=True), theta)
        self.compare(torch.cudnn_affine_grid_generator(theta.cuda(), 2, 3, 4, 5),
                     functional.affine_grid(theta, (2, 3, 4, 5), align_corners=True))

    def test_gradients(self):
        def gradients(make_grid):
            def function(x, theta):
                x, theta = x.detach().requires_grad_(), theta.detach().requires_grad_()
                grid = make_grid(theta)
                functional.grid_sample(x, grid, align_corners=True).square().sum().backward()
                return x.grad, theta.grad
            return function

        by_pytorch = gradients(lambda t: functional.affine_grid(t, (2, 3, 4, 5),
                                                                align_corners=True))
        by_cudnn = gradients(lambda t: torch.cudnn_affine_grid_generator(t, 2, 3, 4, 5))
        inputs = torch.randn(2, 3, 5, 7), torch.randn(2, 2, 3)
        self.compare(by_cudnn(*[t.cuda() for t in inputs]), by_pytorch(*inputs), 1e-3, 1e-4)
        self.check(by_pytorch, *inputs, rtol=1e-3, atol=1e-4)


class NormalisationTest(AgainstCpu):
    @torch.no_grad()
    def layer(self, layer, x):
        for parameter in layer.parameters():
            nn.init.uniform_(parameter, 0.5, 1.5)
        self.compare(layer.cuda()(x.cuda()), layer.cpu()(x))

    def test_batches(self):
        layer = nn.BatchNorm2d(6)
        layer.running_mean.uniform_(-1, 1)
        layer.running_var.uniform_(0.5, 2)
        self.layer(layer.eval(), torch.randn(3, 6, 5, 5))
        self.layer(nn.BatchNorm2d(6).train(), torch.randn(3, 6, 5, 5))

    def test_layers_and_groups(self):
        self.layer(nn.LayerNorm(48), torch.randn(4, 7, 48))
        self.layer(nn.RMSNorm(48), torch.randn(4, 7, 48))
        self.layer(nn.GroupNorm(2, 6), torch.randn(3, 6, 5, 5))
        self.layer(nn.InstanceNorm2d(6, affine=True), torch.randn(3, 6, 5, 5))

    def test_local_response(self):
        self.check(lambda t: functional.local_response_norm(t, 3), torch.randn(2, 6, 5, 5))

    def test_activations(self):
        x = torch.randn(4, 100) * 3
        for function in (functional.relu, functional.gelu, functional.silu, functional.elu,
                         functional.hardswish, functional.mish, functional.softplus, torch.tanh,
                         torch.sigmoid, lambda t: functional.gelu(t, approximate="tanh"),
                         lambda t: functional.softmax(t, -1),
                         lambda t: functional.log_softmax(t, 0)):
            self.check(function, x)
            self.check(function, x.half())


if __name__ == "__main__":
    unittest.main()
