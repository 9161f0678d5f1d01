#pragma once

#include <cstdint>

#include "tests/server/executor/gpu/fake_cuda.h"

namespace torpor::executor {

// The C functions of the driver, on the process's only FakeCuda. Each subject has a file.
struct FakeDriverCalls {
  struct Devices;
  struct Memory;
  struct Copies;
  struct Arrays;
  struct Streams;
  struct Modules;
  struct Graphs;

  // Each puts the functions of its subject into the table.
  static void AddDevices(CudaDriver& driver);
  static void AddMemory(CudaDriver& driver);
  static void AddCopies(CudaDriver& driver);
  static void AddArrays(CudaDriver& driver);
  static void AddStreams(CudaDriver& driver);
  static void AddModules(CudaDriver& driver);
  static void AddGraphs(CudaDriver& driver);

  // The result of a call that has no failure of its own: what Break set.
  static CUresult Ok() { return fake->broken_; }
  static void* Pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

  static inline FakeCuda* fake = nullptr;
};

}  // namespace torpor::executor
