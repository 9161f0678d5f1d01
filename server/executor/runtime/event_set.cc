#include "server/executor/runtime/event_set.h"

#include <driver_types.h>

#include "base/clock.h"

namespace torpor::executor {
namespace {

constexpr std::size_t kMaxEvents = 1u << 20;

std::int64_t NowNs() { return SteadyClock().Now().time_since_epoch().count(); }

}  // namespace

EventSet::~EventSet() {
  for (const auto& [id, event] : events_) device_.discarded().Add(event.handle);
  device_.discarded().Add(reference_);
  device_.discarded().Add(reference_stream_);
}

EventSet::Event* EventSet::Find(std::uint64_t id) {
  const auto found = events_.find(id);
  return found == events_.end() ? nullptr : &found->second;
}

CUresult EventSet::Create(std::uint64_t id, unsigned flags) {
  if (id == 0 || events_.contains(id)) return CUDA_ERROR_INVALID_HANDLE;
  if (events_.size() >= kMaxEvents) return CUDA_ERROR_OUT_OF_MEMORY;
  Event event;
  event.timed = (flags & cudaEventDisableTiming) == 0;
  const CUresult result = device_.driver().EventCreate(
      &event.handle, event.timed ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  if (result == CUDA_SUCCESS) events_.emplace(id, event);
  return result;
}

CUresult EventSet::Destroy(std::uint64_t id) {
  const auto found = events_.find(id);
  if (found == events_.end()) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = device_.driver().EventDestroy(found->second.handle);
  events_.erase(found);
  return result;
}

CUresult EventSet::Import(std::uint64_t id, std::int64_t completed_ns) {
  Event* event = Find(id);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  event->state = State::kImported;
  event->completed_ns = completed_ns;
  return CUDA_SUCCESS;
}

CUresult EventSet::Record(std::uint64_t id, CUstream stream) {
  Event* event = Find(id);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const CUresult result = device_.driver().EventRecord(event->handle, stream);
  if (result != CUDA_SUCCESS) return result;
  event->state = State::kRecorded;
  if (event->reported) {
    event->reported = false;
    unreported_.push_back(id);
  }
  return CUDA_SUCCESS;
}

CUresult EventSet::Wait(std::uint64_t id, CUstream stream) {
  const Event* event = Find(id);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->state != State::kRecorded) return CUDA_SUCCESS;
  return device_.driver().StreamWaitEvent(stream, event->handle, 0);
}

CUresult EventSet::Synchronize(std::uint64_t id) {
  const Event* event = Find(id);
  if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (event->state != State::kRecorded) return CUDA_SUCCESS;
  return device_.driver().EventSynchronize(event->handle);
}

CUresult EventSet::ElapsedTime(std::uint64_t start, std::uint64_t end, float& milliseconds) {
  const Event* from = Find(start);
  const Event* to = Find(end);
  if (from == nullptr || to == nullptr || !from->timed || !to->timed ||
      from->state == State::kNeverRecorded || to->state == State::kNeverRecorded) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  // The client asks once both events are marked, and marks are a moment ahead of events.
  CUresult result = Synchronize(start);
  if (result == CUDA_SUCCESS) result = Synchronize(end);
  if (result != CUDA_SUCCESS) return result;
  if (from->state == State::kRecorded && to->state == State::kRecorded) {
    return device_.driver().EventElapsedTime(&milliseconds, from->handle, to->handle);
  }
  result = SetReference();
  std::int64_t from_ns = 0;
  std::int64_t to_ns = 0;
  if (result == CUDA_SUCCESS) result = CompletedAt(*from, from_ns);
  if (result == CUDA_SUCCESS) result = CompletedAt(*to, to_ns);
  milliseconds = static_cast<float>(static_cast<double>(to_ns - from_ns) * 1e-6);
  return result;
}

CUresult EventSet::TakeCompleted(std::vector<wire::EventTime>& times) {
  if (unreported_.empty()) return CUDA_SUCCESS;
  CUresult result = SetReference();
  for (const std::uint64_t id : unreported_) {
    Event* event = Find(id);
    if (event == nullptr) continue;  // destroyed since
    event->reported = true;
    wire::EventTime time{id, reference_ns_};
    if (event->timed && result == CUDA_SUCCESS) result = CompletedAt(*event, time.completed_ns);
    times.push_back(time);
  }
  unreported_.clear();
  return result;
}

CUresult EventSet::CompletedAt(const Event& event, std::int64_t& ns) {
  if (event.state == State::kImported) {
    ns = event.completed_ns;
    return CUDA_SUCCESS;
  }
  float ago_ms = 0;
  const CUresult result = device_.driver().EventElapsedTime(&ago_ms, event.handle, reference_);
  ns = reference_ns_ - static_cast<std::int64_t>(static_cast<double>(ago_ms) * 1e6);
  return result;
}

CUresult EventSet::SetReference() {
  const CudaDriver& driver = device_.driver();
  CUresult result = CUDA_SUCCESS;
  if (reference_stream_ == nullptr) {
    result = driver.StreamCreateWithPriority(&reference_stream_, CU_STREAM_NON_BLOCKING, 0);
    if (result == CUDA_SUCCESS) result = driver.EventCreate(&reference_, CU_EVENT_DEFAULT);
  }
  // The reference is taken late and near to the events, not once at the start: the driver gives
  // differences as floats of milliseconds, whose resolution after an hour is a quarter of a
  // millisecond.
  if (result == CUDA_SUCCESS) result = driver.EventRecord(reference_, reference_stream_);
  if (result == CUDA_SUCCESS) result = driver.EventSynchronize(reference_);
  reference_ns_ = NowNs();
  return result;
}

}  // namespace torpor::executor
