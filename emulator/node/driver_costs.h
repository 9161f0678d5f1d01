#pragma once

#include <optional>

#include "base/units.h"

namespace YAML {
class Node;
}

namespace torpor::emulator {

class DocumentReader;

// Modelled times of the virtual memory calls, in microseconds a handle.
struct VirtualMemoryCosts {
  double create_us = 11;
  double map_us = 1;
  double set_access_us = 27;
  double unmap_us = 17;
  double export_us = 550;
  double import_us = 25;
};

// What calls of a real driver cost, in modelled time and in GPU memory. The defaults were measured
// on an H100 (bench/results/gpu_check_h100.json), `copy_call_us` is an assumption; in force where
// Strictness has `costs` or, for memory, `memory_overheads`.
struct DriverCosts {
  VirtualMemoryCosts vmm;
  double pin_ms_per_gib = 29;  // registering or allocating pinned host memory that was touched
  double launch_us = 3.3;      // a kernel launch, for the calling thread
  double copy_call_us = 2;     // an asynchronous copy or fill, for the calling thread
  double module_ms = 0.1;      // loading or unloading a module

  // GPU memory of a context and of a cuBLAS handle. Without a value: 527 MiB and 64 MiB, but of
  // a small GPU's memory at most an eighth and a 128th.
  std::optional<Bytes> context_memory;
  std::optional<Bytes> cublas_memory;

  Bytes ContextMemory(Bytes gpu_memory) const;
  Bytes CublasMemory(Bytes gpu_memory) const;
};

// Reads the mapping `costs` of a topology file; missing keys keep their defaults.
DriverCosts ReadDriverCosts(const YAML::Node& node, DocumentReader& reader);

}  // namespace torpor::emulator
