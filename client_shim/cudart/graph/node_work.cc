#include "client_shim/cudart/graph/node_work.h"

#include <utility>

namespace torpor::shim {
namespace {

struct TypeVisitor {
  cudaGraphNodeType operator()(const EmptyWork&) const { return cudaGraphNodeTypeEmpty; }
  cudaGraphNodeType operator()(const KernelWork&) const { return cudaGraphNodeTypeKernel; }
  cudaGraphNodeType operator()(const CopyWork&) const { return cudaGraphNodeTypeMemcpy; }
  cudaGraphNodeType operator()(const FillWork&) const { return cudaGraphNodeTypeMemset; }
  cudaGraphNodeType operator()(const HostWork&) const { return cudaGraphNodeTypeHost; }
  cudaGraphNodeType operator()(const ChildWork&) const { return cudaGraphNodeTypeGraph; }
  cudaGraphNodeType operator()(const EventRecordWork&) const {
    return cudaGraphNodeTypeEventRecord;
  }
  cudaGraphNodeType operator()(const EventWaitWork&) const { return cudaGraphNodeTypeWaitEvent; }
  cudaGraphNodeType operator()(const AllocationWork&) const { return cudaGraphNodeTypeMemAlloc; }
  cudaGraphNodeType operator()(const FreeWork&) const { return cudaGraphNodeTypeMemFree; }
  cudaGraphNodeType operator()(const LibraryWork&) const { return cudaGraphNodeTypeKernel; }
};

}  // namespace

cudaGraphNodeType TypeOf(const NodeWork& work) { return std::visit(TypeVisitor(), work); }

void SetParameters(NodeWork& work, NodeWork given) {
  if (const auto* old = std::get_if<KernelWork>(&work)) {
    auto& kernel = std::get<KernelWork>(given);
    kernel.flags = old->flags;
    kernel.attributes = old->attributes;
  }
  work = std::move(given);
}

}  // namespace torpor::shim
