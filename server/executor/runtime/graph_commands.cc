#include "server/executor/runtime/graph_commands.h"

#include "proto/cuda_api/cublas_dispatch.h"
#include "proto/cuda_api/cublaslt_commands.h"
#include "proto/cuda_api/cudart_commands.h"
#include "proto/cuda_api/cudnn_dispatch.h"

namespace torpor::executor {

bool IsLibraryWork(std::uint32_t call_id) {
  return cuda_api::IsCublasWork(call_id) || cuda_api::IsCudnnWork(call_id) ||
         call_id == wire::CublasLtMatmul::kCallId || call_id == wire::CudnnGraphExecute::kCallId ||
         call_id == wire::CudnnRnnForward::kCallId ||
         call_id == wire::CudnnRnnBackwardData::kCallId ||
         call_id == wire::CudnnRnnBackwardWeights::kCallId;
}

bool CanBeInGraph(std::uint32_t call_id) {
  switch (call_id) {
    case wire::LaunchKernel::kCallId:
    case wire::MemcpyHtoD::kCallId:
    case wire::MemcpyDtoHArena::kCallId:
    case wire::MemcpyDtoD::kCallId:
    case wire::Memcpy2D::kCallId:
    case wire::Memset::kCallId:
    case wire::Memset2D::kCallId:
      return true;
    default:
      return IsLibraryWork(call_id);
  }
}

// Uploads are saved to the host image at each launch, and pinned memory may be freed. Plans of
// cuDNN may go, with kernels of their own, while a graph still has the kernels.
bool CanBeInDriverGraph(std::uint32_t call_id) {
  switch (call_id) {
    case wire::LaunchKernel::kCallId:
    case wire::MemcpyDtoD::kCallId:
    case wire::Memset::kCallId:
    case wire::Memset2D::kCallId:
    case wire::CublasLtMatmul::kCallId:
      return true;
    default:
      return cuda_api::IsCublasWork(call_id) || cuda_api::IsCudnnWork(call_id);
  }
}

bool KeepsDriverGraphs(std::uint32_t call_id) {
  switch (call_id) {
    case wire::StreamCreate::kCallId:
    case wire::StreamDestroy::kCallId:
    case wire::StreamWaitEvent::kCallId:
    case wire::StreamMark::kCallId:
    case wire::StreamWaitMark::kCallId:
    case wire::StreamFence::kCallId:
    case wire::StreamSynchronize::kCallId:
    case wire::DeviceSynchronize::kCallId:
    case wire::EventCreate::kCallId:
    case wire::EventDestroy::kCallId:
    case wire::EventRecord::kCallId:
    case wire::EventSynchronize::kCallId:
    case wire::EventElapsedTime::kCallId:
    case wire::SharedEventRecord::kCallId:
    case wire::SharedEventWait::kCallId:
    case wire::SharedEventQuery::kCallId:
    case wire::MemcpyDtoH::kCallId:
    case wire::FuncGetAttributes::kCallId:
    case wire::OccupancyMaxActiveBlocks::kCallId:
    case wire::OccupancyClusters::kCallId:
    case wire::GraphCreate::kCallId:
    case wire::GraphAddNodes::kCallId:
    case wire::GraphSetNode::kCallId:
    case wire::GraphDestroy::kCallId:
    case wire::GraphLaunch::kCallId:
      return true;
    default:
      return CanBeInGraph(call_id);
  }
}

}  // namespace torpor::executor
