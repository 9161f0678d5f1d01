#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "client_shim/cudart/module/modules.h"

// The work of a graph's nodes, in the program's terms. A captured call makes the same work of its
// arguments (stream/submit.h).
namespace torpor::shim {

class Graph;
class GraphMemory;

struct EmptyWork {};

struct KernelWork {
  std::shared_ptr<ClientKernel> kernel;
  dim3 grid;
  dim3 block;
  std::uint32_t shared_bytes = 0;
  std::uint32_t flags = 0;               // of wire::LaunchKernel
  std::vector<std::uint8_t> parameters;  // packed
  std::map<cudaLaunchAttributeID, cudaLaunchAttributeValue> attributes;
};

// A checked copy without arrays (MakeCopyWork).
struct CopyWork {
  cudaMemcpy3DParms parameters{};
};

struct FillWork {
  cudaMemsetParams parameters{};
};

struct HostWork {
  cudaHostNodeParams parameters{};
};

// A child graph, owned by the node. Copies of the work share the graph; Graph::Clone copies the
// graph.
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

// A captured call of another library: a STREAM command of the library's table. Counts as a kernel.
struct LibraryWork {
  std::uint32_t call_id = 0;
  std::vector<std::uint8_t> fields;
  std::shared_ptr<const void> needed;  // kept alive by the work
};

using NodeWork =
    std::variant<EmptyWork, KernelWork, CopyWork, FillWork, HostWork, ChildWork, EventRecordWork,
                 EventWaitWork, AllocationWork, FreeWork, LibraryWork>;

cudaGraphNodeType TypeOf(const NodeWork& work);

// Replaces a node's work by work of the same kind. Settings outside a node's parameters (flags and
// attributes of a kernel) stay.
void SetParameters(NodeWork& work, NodeWork given);

}  // namespace torpor::shim
