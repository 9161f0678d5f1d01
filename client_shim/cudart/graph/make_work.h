#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/memcpy.h"

// Work out of the parameters that programs give, checked as the plain calls check theirs.
namespace torpor::shim {

cudaError_t MakeKernelWork(const cudaKernelNodeParams& parameters, NodeWork& work);
cudaError_t MakeCopyWork(const cudaMemcpy3DParms& parameters, NodeWork& work);
cudaError_t MakeFillWork(const cudaMemsetParams& parameters, NodeWork& work);
cudaError_t MakeHostWork(const cudaHostNodeParams& parameters, NodeWork& work);
cudaError_t MakeAllocationWork(cudaMemAllocNodeParams& parameters, NodeWork& work);
cudaError_t MakeFreeWork(void* address, NodeWork& work);
// An event record or wait.
template <typename EventWork>
cudaError_t MakeEventWork(cudaEvent_t event, NodeWork& work);
// Clones the graph.
cudaError_t MakeChildWork(cudaGraph_t graph, NodeWork& work);

// Not checked: the plain calls have done it.
CopyWork LinearCopy(void* to, const void* from, std::uint64_t bytes, cudaMemcpyKind kind);
CopyWork PitchedCopy(void* to, const void* from, const Rows& rows, cudaMemcpyKind kind);
// `width` in elements of 1, 2 or 4 bytes.
FillWork FillRows(void* to, std::uint64_t pitch, std::uint32_t value, std::uint32_t element_bytes,
                  std::uint64_t width, std::uint64_t height);

}  // namespace torpor::shim
