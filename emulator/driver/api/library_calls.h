#pragma once

#include <cuda.h>

#include <cstddef>

// Additions to the CUDA driver API for the emulated libraries, resolved in the loaded
// libcuda.so.1. Call after cuInit.
extern "C" {

// Returns 0 if the topology sets `computes: false`.
int torporEmulatorComputes();

// As cuLaunchHostFunc, for the work of a library's call: never waits for the program's host
// functions. A captured stream runs `function` as often as the graph. On success the driver has
// `data`, and calls `release` with it when nothing needs it.
CUresult torporEmulatorLaunchWork(CUstream stream, CUhostFn function, void* data, CUhostFn release);

// Returns the bytes of device memory that a cuBLAS handle takes on the current context's GPU; 0
// unless the topology's strictness has `memory_overheads`, and without a context.
std::size_t torporEmulatorCublasMemory();
}
