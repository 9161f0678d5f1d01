#include "client_shim/cudart/graph/node_work.h"

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

}  // namespace torpor::shim
