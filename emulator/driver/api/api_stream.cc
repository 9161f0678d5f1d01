// Making and destroying streams and events.
#include <algorithm>
#include <memory>
#include <utility>

#include "emulator/driver/api/api.h"
#include "emulator/driver/api/library_calls.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

constexpr int kHighestPriority = -5;

// CUDA_ERROR_NOT_READY while one of the events is not done.
CUresult ElapsedTime(float* ms, CUevent start, CUevent end) {
  return Call([&](Driver& driver) {
    const Event* from = driver.events().Get(start);
    const Event* to = driver.events().Get(end);
    if (from == nullptr || to == nullptr || !from->timed() || !to->timed()) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto begun = from->recording();
    const auto ended = to->recording();
    if (ms == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (begun == nullptr || ended == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!begun->done() || !ended->done()) return CUDA_ERROR_NOT_READY;
    *ms = static_cast<float>(torpor::ToMilliseconds(ended->time() - begun->time()));
    return CUDA_SUCCESS;
  });
}

// A capture does not survive a question about an event that was recorded in the capture.
CUresult RefuseCaptured(const Event& event) {
  const auto capture = event.capture();
  if (capture == nullptr) return CUDA_SUCCESS;
  capture->Invalidate();
  return CUDA_ERROR_CAPTURED_EVENT;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream* stream, unsigned int flags, int priority) {
  return InContext([&](Context& context) {
    if (stream == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto created = context.CreateStream(flags, std::clamp(priority, kHighestPriority, 0));
    *stream = Driver::Get().streams().Create(
        std::make_shared<StreamObject>(StreamObject{std::move(created), context.weak_from_this()}));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamCreate(CUstream* stream, unsigned int flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}

// Does not wait: queued work still runs.
CUresult CUDAAPI cuStreamDestroy(CUstream stream) {
  return Call([&](Driver& driver) {
    if (stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD) {
      return CUDA_ERROR_INVALID_HANDLE;
    }
    const auto object = driver.streams().Destroy(stream);
    if (object == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const auto context = object->context.lock()) context->DestroyStream(object->stream);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventCreate(CUevent* event, unsigned int flags) {
  return InContext([&](Context&) {
    constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    if (event == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_EVENT_INTERPROCESS) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
    *event = Driver::Get().events().Create(std::make_shared<Event>(flags));
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventDestroy(CUevent event) {
  return Call([&](Driver& driver) {
    return driver.events().Destroy(event) == nullptr ? CUDA_ERROR_INVALID_HANDLE : CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventQuery(CUevent event) {
  return Call([&](Driver& driver) {
    const Event* found = driver.events().Get(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (ContextStack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
    const Context& context = *ContextStack().back().context;
    TORPOR_TRY(RefuseCaptured(*found));
    const auto recording = found->recording();
    if (recording == nullptr) return context.sticky();
    return recording->done() ? context.StateOf(*recording) : CUDA_ERROR_NOT_READY;
  });
}

CUresult CUDAAPI cuEventSynchronize(CUevent event) {
  return InContext([&](Context& context) {
    const Event* found = Driver::Get().events().Get(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    TORPOR_TRY(RefuseCaptured(*found));
    if (const auto recording = found->recording()) recording->Wait();
    return context.sticky();
  });
}

CUresult CUDAAPI cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return ElapsedTime(ms, start, end);
}
#undef cuEventElapsedTime
// The name that programs built with CUDA 12 request.
CUresult CUDAAPI cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return ElapsedTime(ms, start, end);
}

CUresult torporEmulatorLaunchWork(CUstream stream, CUhostFn function, void* data,
                                  CUhostFn release) {
  return OnStream(stream == nullptr ? CU_STREAM_LEGACY : stream, [&](const StreamTarget& target) {
    target.context->Submit(
        target.stream,
        [function, data = std::shared_ptr<void>(data, release)] {
          function(data.get());
          return CUDA_SUCCESS;
        },
        Stream::Placement::kQueue);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
