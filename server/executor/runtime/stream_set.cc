#include "server/executor/runtime/stream_set.h"

#include <driver_types.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

namespace torpor::executor {
namespace {

constexpr std::size_t kMaxStreams = 4096;
constexpr Duration kQueryPause = std::chrono::microseconds(50);

}  // namespace

StreamSet::~StreamSet() {
  for (auto& [id, stream] : streams_) Discard(stream);
  Discard(legacy_);
  Discard(retired_);
}

void StreamSet::Discard(const Stream& stream) {
  device_.discarded().Add(stream.joint);
  device_.discarded().Add(stream.handle);
  if (arrival_ != nullptr) arrival_->Forget(stream.handle);
}

CUresult StreamSet::MakeStream(unsigned flags, int priority, Stream& stream) {
  const CudaDriver& driver = device_.driver();
  stream.blocking = (flags & cudaStreamNonBlocking) == 0;
  CUresult result =
      driver.StreamCreateWithPriority(&stream.handle, CU_STREAM_NON_BLOCKING, priority);
  if (result != CUDA_SUCCESS) return result;
  result = driver.EventCreate(&stream.joint, CU_EVENT_DISABLE_TIMING);
  if (result != CUDA_SUCCESS) Close(stream);
  return result;
}

void StreamSet::Close(Stream& stream) {
  if (stream.joint != nullptr) device_.driver().EventDestroy(stream.joint);
  if (stream.handle != nullptr) device_.driver().StreamDestroy(stream.handle);
  if (arrival_ != nullptr) arrival_->Forget(stream.handle);
  stream = {};
}

CUresult StreamSet::Create(std::uint64_t id, unsigned flags, int priority) {
  if (id <= kLegacyHandle || streams_.contains(id)) return CUDA_ERROR_INVALID_HANDLE;
  if (streams_.size() >= kMaxStreams) return CUDA_ERROR_OUT_OF_MEMORY;
  Stream stream;
  const CUresult result = MakeStream(flags, priority, stream);
  if (result == CUDA_SUCCESS) streams_.emplace(id, stream);
  return result;
}

CUresult StreamSet::Destroy(std::uint64_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (retired_.handle == nullptr) {
    const CUresult made = MakeStream(cudaStreamNonBlocking, 0, retired_);
    if (made != CUDA_SUCCESS) return made;
  }
  Stream& stream = found->second;
  CUresult result = Join(stream, retired_.handle);
  // The legacy rules hold for the work of a destroyed stream too.
  if (result == CUDA_SUCCESS && stream.unjoined && legacy_.handle != nullptr) {
    pending_.Note(legacy_.handle);
    result = device_.driver().StreamWaitEvent(legacy_.handle, stream.joint, 0);
  }
  std::erase(unjoined_, id);
  pending_.Move(stream.handle, retired_.handle);
  Close(stream);
  streams_.erase(found);
  return result;
}

CUresult StreamSet::Use(std::uint64_t id, CUstream& stream) {
  const CUresult found = Find(id, stream);
  if (found != CUDA_SUCCESS) return found;
  if (redirected_ == nullptr) pending_.Note(stream);
  return arrival_ != nullptr ? arrival_->Pass(stream) : CUDA_SUCCESS;
}

CUresult StreamSet::Find(std::uint64_t id, CUstream& stream) {
  if (redirected_ != nullptr) {
    stream = redirected_;
    return CUDA_SUCCESS;
  }
  if (id <= kLegacyHandle) {
    const CUresult result = UseLegacy();
    stream = legacy_.handle;
    return result;
  }
  const auto found = streams_.find(id);
  if (found == streams_.end()) return CUDA_ERROR_INVALID_HANDLE;
  Stream& entry = found->second;
  stream = entry.handle;
  if (!entry.blocking) return CUDA_SUCCESS;
  if (!entry.unjoined) {
    entry.unjoined = true;
    unjoined_.push_back(id);
  }
  return entry.legacy_epoch == legacy_epoch_ ? CUDA_SUCCESS : WaitForLegacy(entry);
}

CUresult StreamSet::WaitForLegacy(Stream& stream) {
  const CudaDriver& driver = device_.driver();
  pending_.Note(stream.handle);
  if (!legacy_recorded_) {
    pending_.Note(legacy_.handle);
    const CUresult result = driver.EventRecord(legacy_.joint, legacy_.handle);
    if (result != CUDA_SUCCESS) return result;
    legacy_recorded_ = true;
  }
  stream.legacy_epoch = legacy_epoch_;
  return driver.StreamWaitEvent(stream.handle, legacy_.joint, 0);
}

CUresult StreamSet::UseLegacy() {
  if (legacy_.handle == nullptr) {
    const CUresult made = MakeStream(cudaStreamNonBlocking, 0, legacy_);
    if (made != CUDA_SUCCESS) return made;
  }
  for (const std::uint64_t id : unjoined_) {
    Stream& stream = streams_.find(id)->second;
    const CUresult result = Join(stream, legacy_.handle);
    if (result != CUDA_SUCCESS) return result;
    stream.unjoined = false;
  }
  unjoined_.clear();
  ++legacy_epoch_;
  legacy_recorded_ = false;
  return CUDA_SUCCESS;
}

CUresult StreamSet::Join(Stream& from, CUstream waiter) {
  const CudaDriver& driver = device_.driver();
  pending_.Note(from.handle);
  pending_.Note(waiter);
  const CUresult result = driver.EventRecord(from.joint, from.handle);
  return result == CUDA_SUCCESS ? driver.StreamWaitEvent(waiter, from.joint, 0) : result;
}

// The driver waits asleep (Device::Open), which costs more than short work takes: queries come
// first. Those write no text.
CUresult StreamSet::Wait(CUstream stream) {
  const CudaDriver& driver = device_.driver();
  std::optional<CUresult> result;
  const auto synchronize = [&] { result = driver.StreamSynchronize(stream); };
  spin_.Wait([&] { return result || driver.StreamQuery(stream) != CUDA_ERROR_NOT_READY; },
             synchronize);
  if (!result) synchronize();
  return *result;
}

CUresult StreamSet::Synchronize() {
  for (const CUstream stream : pending_.Streams()) {
    const CUresult result = Wait(stream);
    if (result != CUDA_SUCCESS) return result;
  }
  pending_.Clear();
  return CUDA_SUCCESS;
}

CUresult StreamSet::SynchronizeUntil(TimePoint deadline) {
  const SteadyClock clock;
  for (const CUstream stream : pending_.Streams()) {
    while (true) {
      const CUresult result = device_.driver().StreamQuery(stream);
      if (result == CUDA_SUCCESS) break;
      if (result != CUDA_ERROR_NOT_READY) return result;
      if (clock.Now() >= deadline) return CUDA_ERROR_TIMEOUT;
      std::this_thread::sleep_for(kQueryPause);
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace torpor::executor
