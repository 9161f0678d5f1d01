#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "client_shim/cudart/module/modules.h"

// What the nodes of a graph do, as the program has asked for it. A plain call that is captured
// makes the same of its arguments.
namespace torpor::shim {

class Graph;
class GraphMemory;

struct EmptyWork {};

struct KernelWork {
  std::shared_ptr<Kernel> kernel;
  dim3 grid;
  dim3 block;
  std::uint32_t shared_bytes = 0;
  std::uint32_t flags = 0;               // of wire::LaunchKernel
  std::vector<std::uint8_t> parameters;  // packed
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> attributes;
};

// Without arrays; checked (MakeCopyWork).
struct CopyWork {
  cudaMemcpy3DParms parameters{};
};

struct FillWork {
  cudaMemsetParams parameters{};
};

struct HostWork {
  cudaHostNodeParams parameters{};
};

// A graph of the node's own. A copy of the work shares it: Graph::Clone makes another.
struct ChildWork {
  std::shared_ptr<Graph> graph;
};

struct EventRecordWork {
  cudaEvent_t event = nullptr;
};

struct EventWaitWork {
  cudaEvent_t event = nullptr;
};

struct AllocationWork {
  cudaMemAllocNodeParams parameters{};
  std::shared_ptr<GraphMemory> memory;
};

struct FreeWork {
  void* address = nullptr;
};

// A captured call of another library: a STREAM command of its table. Counts as a kernel.
struct LibraryWork {
  std::uint32_t call_id = 0;
  std::vector<std::uint8_t> fields;
  std::shared_ptr<const void> needed;  // lives as long as the work
};

using NodeWork =
    std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, ChildWork, EventRecordWork,
                 EventWaitWork, AllocationWork, FreeWork, LibraryWork>;

cudaGraphNodeType TypeOf(const NodeWork& work);

// Gives a node other work of the same kind. What parameters do not name, the attributes of a
// kernel, stays as it was.
void SetParameters(NodeWork& work, NodeWork given);

}  // namespace torpor::shim
