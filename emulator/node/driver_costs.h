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
  double create_us = 29;
  double map_us = 2;
  double set_access_us = 38;
  double unmap_us = 34;
  double export_us = 20;
  double import_us = 60;
};

// What calls of a real driver cost, in modelled time and in GPU memory. The defaults were measured
// on an A100 (virtual memory) and an H100-class host; in force where Strictness has `costs` or, for
// memory, `memory_overheads`.
struct DriverCosts {
  VirtualMemoryCosts vmm;
  double pin_ms_per_gib = 100;  // registering or allocating pinned host memory
  double launch_us = 2.3;       // a kernel launch, for the calling thread
  double copy_call_us = 2;      // an asynchronous copy or fill, for the calling thread
  double module_ms = 0.5;       // loading or unloading a module

  // GPU memory of a context and of a cuBLAS handle. Without a value: 550 MiB and 32 MiB, but on a
  // GPU of less than 4.4 GB an eighth and a 128th of its memory.
  std::optional<Bytes> context_memory;
  std::optional<Bytes> cublas_memory;

  Bytes ContextMemory(Bytes gpu_memory) const;
  Bytes CublasMemory(Bytes gpu_memory) const;
};

// Reads the mapping `costs` of a topology file; missing keys keep their defaults.
DriverCosts ReadDriverCosts(const YAML::Node& node, DocumentReader& reader);

}  // namespace torpor::emulator
