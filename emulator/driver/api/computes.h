#pragma once

// An addition to the CUDA driver API for the emulated libraries, resolved in the loaded
// libcuda.so.1. Returns 0 if the topology sets `computes: false`. Call after cuInit.
extern "C" int torporEmulatorComputes();
