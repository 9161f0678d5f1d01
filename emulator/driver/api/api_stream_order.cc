// Operations in stream order, except copies and kernels; compiled twice, see default_stream.h.
#include <sched.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "emulator/driver/api/api.h"
#include "emulator/driver/api/default_stream.h"

using namespace torpor::emulator;  // NOLINT: this file only defines the C interface

namespace {

// Polls a word of memory that another stream or the host is going to write.
template <typename Word>
class WordWait {
 public:
  WordWait(CUdeviceptr address, Word value, unsigned flags)
      : address_(address), value_(value), condition_(flags & kConditionMask) {}

  CUresult Run(const Context& context) const {
    constexpr int kEagerPolls = 200;
    for (int polls = 0;; ++polls) {
      const std::optional<Word> seen = Load();
      if (!seen) return CUDA_ERROR_ILLEGAL_ADDRESS;  // freed in the meantime
      if (Satisfies(*seen)) return CUDA_SUCCESS;
      if (context.sticky() != CUDA_SUCCESS) return CUDA_SUCCESS;
      if (polls < kEagerPolls) {
        sched_yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

 private:
  static constexpr unsigned kConditionMask = 3;

  std::optional<Word> Load() const {
    std::optional<Word> seen;
    Driver::Get().space().WhileCovered(address_, sizeof(Word), Access::kRead, [&] {
      seen = std::atomic_ref(*reinterpret_cast<Word*>(address_)).load(std::memory_order_acquire);
    });
    return seen;
  }

  bool Satisfies(Word seen) const {
    switch (condition_) {
      case CU_STREAM_WAIT_VALUE_GEQ:
        return static_cast<std::make_signed_t<Word>>(seen - value_) >= 0;
      case CU_STREAM_WAIT_VALUE_EQ:
        return seen == value_;
      case CU_STREAM_WAIT_VALUE_AND:
        return (seen & value_) != 0;
      default:
        return (~(seen | value_)) != 0;  // CU_STREAM_WAIT_VALUE_NOR
    }
  }

  const CUdeviceptr address_;
  const Word value_;
  const unsigned condition_;
};

template <typename Word>
bool ValidWord(CUdeviceptr address, Access access) {
  return address % sizeof(Word) == 0 && Driver::Get().space().Covers(address, sizeof(Word), access);
}

// Writes a word in stream order. Losing access to the word poisons the context.
template <typename Word>
CUresult WriteWord(CUstream stream, CUdeviceptr address, Word value) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (!ValidWord<Word>(address, Access::kWrite)) return CUDA_ERROR_INVALID_VALUE;
    target.context->Submit(
        target.stream,
        [address, value]() -> CUresult {
          const bool written =
              Driver::Get().space().WhileCovered(address, sizeof(Word), Access::kWrite, [&] {
                std::atomic_ref(*reinterpret_cast<Word*>(address))
                    .store(value, std::memory_order_release);
              });
          return written ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
        },
        Stream::Placement::kInlineIfIdle);
    return CUDA_SUCCESS;
  });
}

template <typename Word>
CUresult WaitWord(CUstream stream, CUdeviceptr address, Word value, unsigned flags) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (!ValidWord<Word>(address, Access::kRead)) return CUDA_ERROR_INVALID_VALUE;
    const WordWait<Word> wait(address, value, flags);
    target.context->Submit(
        target.stream, [wait, context = target.context] { return wait.Run(*context); },
        Stream::Placement::kWait);
    return CUDA_SUCCESS;
  });
}

// A capture does not survive a wait for its work.
CUresult RefuseInCapture(const Stream& stream) {
  const auto capture = stream.capture();
  if (capture == nullptr) return CUDA_SUCCESS;
  capture->Invalidate();
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

}  // namespace

extern "C" {

CUresult CUDAAPI cuStreamQuery(CUstream stream) {
  return OnAnyStream(OrDefault(stream), [](const StreamTarget& target) {
    TORPOR_TRY(RefuseInCapture(*target.stream));
    TORPOR_TRY(target.context->StateOf(*target.stream));
    if (!target.context->Idle(target.stream)) return CUDA_ERROR_NOT_READY;
    return target.context->StateOf(*target.stream);
  });
}

CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  return OnStream(OrDefault(stream), [](const StreamTarget& target) {
    TORPOR_TRY(RefuseInCapture(*target.stream));
    target.context->Wait(target.stream);
    return target.context->sticky();
  });
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    const Event* found = Driver::Get().events().Get(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return target.context->WaitFor(target.stream, *found);
  });
}

CUresult CUDAAPI cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned int) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    Event* found = Driver::Get().events().Get(event);
    if (found == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    target.context->Record(target.stream, *found);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}

// The function runs on the stream's thread and must not call the driver, as in CUDA.
CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    target.context->Submit(
        target.stream,
        [function, data, context = target.context.get()] {
          std::unique_lock lock(context->host_functions(), std::defer_lock);
          if (context->device().strict().launch_queues) lock.lock();
          function(data);
          return CUDA_SUCCESS;
        },
        Stream::Placement::kQueue);
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                                     unsigned int flags) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    // A callback receives the sticky error, so it runs in a poisoned context too.
    target.context->SubmitAlways(target.stream, [=, context = target.context] {
      callback(stream, context->sticky(), data);
    });
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned int* flags) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = target.stream->flags();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetPriority(CUstream stream, int* priority) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = target.stream->priority();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetId(CUstream stream, unsigned long long* id) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *id = target.context->id() << 32 | target.stream->id();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *context = target.context->handle();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return OnStream(OrDefault(stream), [&](const StreamTarget& target) {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *device = target.context->device().index();
    return CUDA_SUCCESS;
  });
}

CUresult CUDAAPI cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                      unsigned int) {
  return WriteWord<cuuint32_t>(stream, address, value);
}
CUresult CUDAAPI cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                      unsigned int) {
  return WriteWord<cuuint64_t>(stream, address, value);
}
CUresult CUDAAPI cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                     unsigned int flags) {
  return WaitWord<cuuint32_t>(stream, address, value, flags);
}
CUresult CUDAAPI cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                     unsigned int flags) {
  return WaitWord<cuuint64_t>(stream, address, value, flags);
}

CUresult CUDAAPI cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t,
                                        unsigned int) {
  return OnStream(OrDefault(stream), [&](const StreamTarget&) {
    const auto region = Driver::Get().space().Find(address);
    return region && region->kind == RegionKind::kManaged ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr address, size_t size, CUmemLocation, unsigned int,
                                    CUstream stream) {
  return OnStream(OrDefault(stream), [&](const StreamTarget&) {
    // Managed memory has one location, visible to host and devices: prefetching moves nothing.
    return Driver::Get().space().Covers(address, size, Access::kRead) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // extern "C"
