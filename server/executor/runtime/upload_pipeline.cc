#include "server/executor/runtime/upload_pipeline.h"

#include <algorithm>

#include "base/status_macros.h"

namespace torpor::executor {

UploadPipeline::~UploadPipeline() {
  const CudaDriver& driver = device_.driver();
  if (copied_ != nullptr) driver.EventDestroy(copied_);
  if (saved_ != nullptr) driver.EventDestroy(saved_);
  if (saving_ != nullptr) driver.StreamDestroy(saving_);
}

absl::Status UploadPipeline::Open() {
  if (saved_ != nullptr) return absl::OkStatus();
  const auto make = [&](CUevent& event) {
    if (event != nullptr) return absl::OkStatus();
    return device_.Status(device_.driver().EventCreate(&event, CU_EVENT_DISABLE_TIMING),
                          "cuEventCreate");
  };
  if (saving_ == nullptr) {
    TORPOR_ASSIGN_OR_RETURN(saving_, device_.CreateStream());
  }
  TORPOR_RETURN_IF_ERROR(make(copied_));
  return make(saved_);
}

absl::Status UploadPipeline::Upload(CUdeviceptr target, std::uint64_t address,
                                    const std::uint8_t* source, Bytes bytes, CUstream stream) {
  TORPOR_RETURN_IF_ERROR(Open());
  // Pieces end where blocks of the image do.
  for (Bytes at = 0, piece = 0; at < bytes; at += piece) {
    piece = std::min(kPieceBytes - (address + at) % kPieceBytes, bytes - at);
    TORPOR_RETURN_IF_ERROR(device_.Status(
        device_.driver().MemcpyHtoDAsync(target + at, source + at, piece, stream), "an upload"));
    TORPOR_RETURN_IF_ERROR(Join(copied_, stream, saving_));
    TORPOR_RETURN_IF_ERROR(image_.SaveRange(address + at, piece, saving_));
  }
  return Join(saved_, saving_, stream);
}

// Makes `waiter` wait for the present work of `from`.
absl::Status UploadPipeline::Join(CUevent event, CUstream from, CUstream waiter) const {
  TORPOR_RETURN_IF_ERROR(
      device_.Status(device_.driver().EventRecord(event, from), "cuEventRecord"));
  return device_.Status(device_.driver().StreamWaitEvent(waiter, event, 0), "cuStreamWaitEvent");
}

}  // namespace torpor::executor
