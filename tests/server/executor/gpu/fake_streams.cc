// Streams and events, and the work that waits in streams.
#include <cstring>
#include <iterator>
#include <memory>

#include "base/check.h"
#include "tests/server/executor/gpu/fake_driver_calls.h"

namespace torpor::executor {

struct FakeDriverCalls::Streams {
  static CUresult StreamCreate(CUstream* stream, unsigned, int) {
    fake->streams_.push_back(std::make_unique<FakeCuda::Stream>());
    fake->streams_.back()->held = fake->hold_;
    *stream = reinterpret_cast<CUstream>(fake->streams_.back().get());
    return Ok();
  }
  // Work that it still has goes on.
  static CUresult StreamDestroy(CUstream stream) {
    auto* target = reinterpret_cast<FakeCuda::Stream*>(stream);
    if (target->work.empty()) {
      std::erase_if(fake->streams_, [&](const auto& other) { return other.get() == target; });
    }
    return CUDA_SUCCESS;
  }
  static CUresult StreamSync(CUstream) {
    fake->Release();
    return Ok();
  }
  static CUresult StreamQuery(CUstream stream) {
    if (Ok() != CUDA_SUCCESS) return Ok();
    return reinterpret_cast<FakeCuda::Stream*>(stream)->work.empty() ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_NOT_READY;
  }
  static CUresult StreamWait(CUstream stream, CUevent event, unsigned) {
    auto* target = reinterpret_cast<FakeCuda::Event*>(event);
    ++fake->waits_enqueued_;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kWait, 0, 0, 0, target->recorded, target});
    return Ok();
  }
  static CUresult WriteValue(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned) {
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kWrite, at, 0, 0, value});
    return Ok();
  }
  static CUresult WaitValue(CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags) {
    TORPOR_CHECK(flags == CU_STREAM_WAIT_VALUE_GEQ);
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kAwait, at, 0, 0, value});
    return Ok();
  }
  static CUresult HostFunc(CUstream stream, CUhostFn function, void* data) {
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kCall, reinterpret_cast<std::uint64_t>(data),
                           reinterpret_cast<std::uint64_t>(function)});
    return Ok();
  }
  static CUresult EventCreate(CUevent* event, unsigned) {
    fake->events_.push_back(std::make_unique<FakeCuda::Event>());
    *event = reinterpret_cast<CUevent>(fake->events_.back().get());
    ++fake->live_events_;
    return Ok();
  }
  static CUresult EventDestroy(CUevent) { return --fake->live_events_, CUDA_SUCCESS; }
  static CUresult EventRecord(CUevent event, CUstream stream) {
    auto* target = reinterpret_cast<FakeCuda::Event*>(event);
    ++target->recorded;
    ++fake->events_recorded_;
    fake->Enqueue(stream, {FakeCuda::Work::Kind::kRecord, 0, 0, 0, target->recorded, target});
    return Ok();
  }
  static CUresult EventQuery(CUevent event) {
    if (Ok() != CUDA_SUCCESS) return Ok();
    const auto* target = reinterpret_cast<FakeCuda::Event*>(event);
    return target->completed >= target->recorded ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult EventSync(CUevent) {
    fake->Release();
    return Ok();
  }
  static CUresult Elapsed(float* milliseconds, CUevent, CUevent) {
    return *milliseconds = 1.5F, Ok();
  }
};

void FakeDriverCalls::AddStreams(CudaDriver& driver) {
  driver.StreamCreateWithPriority = Streams::StreamCreate;
  driver.StreamDestroy = Streams::StreamDestroy;
  driver.StreamSynchronize = Streams::StreamSync;
  driver.StreamQuery = Streams::StreamQuery;
  driver.StreamWaitEvent = Streams::StreamWait;
  driver.StreamWriteValue64 = Streams::WriteValue;
  driver.StreamWaitValue64 = Streams::WaitValue;
  driver.LaunchHostFunc = Streams::HostFunc;
  driver.EventCreate = Streams::EventCreate;
  driver.EventDestroy = Streams::EventDestroy;
  driver.EventRecord = Streams::EventRecord;
  driver.EventQuery = Streams::EventQuery;
  driver.EventSynchronize = Streams::EventSync;
  driver.EventElapsedTime = Streams::Elapsed;
}

void FakeCuda::HoldStreams() {
  hold_ = true;
  for (const auto& stream : streams_) stream->held = true;
}

void FakeCuda::Release() { ReleaseUpTo(nullptr, 0); }

void FakeCuda::ReleaseUpTo(CUstream limited, std::size_t records) {
  for (bool progress = true; progress;) {
    progress = false;
    for (auto stream = streams_.rbegin(); stream != streams_.rend(); ++stream) {
      const bool is_limited = stream->get() == reinterpret_cast<Stream*>(limited);
      while (!(*stream)->work.empty() && !(is_limited && records == 0)) {
        const bool is_record = (*stream)->work.front().kind == Work::Kind::kRecord;
        if (!RunFront(**stream)) break;
        if (is_limited && is_record) --records;
        progress = true;
      }
    }
  }
}

void FakeCuda::Enqueue(CUstream stream, const Work& work) {
  const bool is_order = work.kind == Work::Kind::kRecord || work.kind == Work::Kind::kWait;
  if (capture_) {
    if (!is_order) capture_->push_back(work);
    return;
  }
  auto* target = reinterpret_cast<Stream*>(stream);
  target->work.push_back(work);
  while (!target->held && !target->work.empty() && RunFront(*target)) {
  }
}

bool FakeCuda::RunFront(Stream& stream) {
  const Work work = stream.work.front();
  switch (work.kind) {
    case Work::Kind::kCopy:
      std::memmove(FakeDriverCalls::Pointer(work.to), FakeDriverCalls::Pointer(work.from),
                   work.bytes);
      break;
    case Work::Kind::kFill:
      std::memset(FakeDriverCalls::Pointer(work.to), static_cast<int>(work.value), work.bytes);
      break;
    case Work::Kind::kLaunch:
      launches_.push_back(work.value);
      bytes_seen_.push_back(ByteAt(work.value));
      break;
    case Work::Kind::kWrite:
      std::memcpy(FakeDriverCalls::Pointer(work.to), &work.value, sizeof work.value);
      break;
    case Work::Kind::kAwait: {
      std::uint64_t present = 0;
      std::memcpy(&present, FakeDriverCalls::Pointer(work.to), sizeof present);
      const bool is_reached = static_cast<std::int64_t>(present - work.value) >= 0;
      if (!is_reached && !ignore_waits_for_values_) return false;
      break;
    }
    case Work::Kind::kRecord:
      work.event->completed = work.value;
      break;
    case Work::Kind::kWait:
      if (work.event->completed < work.value) return false;
      break;
    case Work::Kind::kCall:
      reinterpret_cast<CUhostFn>(work.from)(FakeDriverCalls::Pointer(work.to));
      break;
  }
  stream.work.pop_front();
  return true;
}

std::uint8_t FakeCuda::ByteAt(std::uint64_t address) const {
  const auto after = mapped_.upper_bound(address);
  const bool is_mapped = after != mapped_.begin() && address - std::prev(after)->first < kChunk;
  return is_mapped ? *static_cast<const std::uint8_t*>(FakeDriverCalls::Pointer(address)) : 0;
}

}  // namespace torpor::executor
