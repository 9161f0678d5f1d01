#include "emulator/driver/context/context.h"

#include <algorithm>
#include <map>
#include <utility>

#include "emulator/driver/base/exceptions.h"
#include "emulator/driver/stream/model_clock.h"

namespace torpor::emulator {
namespace {

std::atomic<std::uint64_t> next_context_id{1};

// A thread's default streams; closed when the thread ends.
class ThreadStreams {
 public:
  ThreadStreams() = default;
  ThreadStreams(const ThreadStreams&) = delete;
  ThreadStreams& operator=(const ThreadStreams&) = delete;
  ~ThreadStreams() {
    for (auto& [id, entry] : streams_) {
      if (const auto context = entry.context.lock()) context->DestroyStream(entry.stream);
    }
  }

  // Returns the calling thread's default stream in `context`, created at first use.
  std::shared_ptr<Stream> For(const std::shared_ptr<Context>& context) {
    auto [entry, created] = streams_.try_emplace(context->id());
    if (created) entry->second = {context->CreateStream(CU_STREAM_DEFAULT, 0), context};
    return entry->second.stream;
  }

 private:
  std::map<std::uint64_t, StreamObject> streams_;
};

thread_local ThreadStreams thread_streams;

// Whether the stream synchronises with the legacy default stream.
bool Blocking(const Stream& stream) { return (stream.flags() & CU_STREAM_NON_BLOCKING) == 0; }

}  // namespace

std::shared_ptr<Completion> Event::recording() const {
  std::lock_guard lock(mutex_);
  return recording_;
}

std::shared_ptr<Completion> Event::StartRecording() {
  auto completion = std::make_shared<Completion>();
  std::lock_guard lock(mutex_);
  recording_ = completion;
  return completion;
}

Context::Context(DriverDevice& device, unsigned flags, bool primary)
    : device_(device),
      primary_(primary),
      id_(next_context_id.fetch_add(1)),
      flags_(flags),
      legacy_(std::make_shared<Stream>(CU_STREAM_DEFAULT, 0, next_stream_id_.fetch_add(1))) {
  limits_[CU_LIMIT_STACK_SIZE] = kKiB;
  limits_[CU_LIMIT_PRINTF_FIFO_SIZE] = kMiB;
  limits_[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 * kMiB;
  limits_[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  limits_[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  limits_[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
}

Context::~Context() {
  for (const auto& stream : Streams(false)) stream->Close();
  legacy_->Close();
}

void Context::Poison(CUresult error) {
  CUresult none = CUDA_SUCCESS;
  sticky_.compare_exchange_strong(none, error);
}

std::shared_ptr<Stream> Context::CreateStream(unsigned flags, int priority) {
  auto stream = std::make_shared<Stream>(flags, priority, next_stream_id_.fetch_add(1));
  std::lock_guard lock(mutex_);
  ForgetFinishedStreamsLocked();
  streams_.insert(stream);
  return stream;
}

void Context::DestroyStream(const std::shared_ptr<Stream>& stream) {
  stream->Close();
  std::lock_guard lock(mutex_);
  ForgetFinishedStreamsLocked();
}

// Call with mutex_ held.
void Context::ForgetFinishedStreamsLocked() {
  std::erase_if(streams_, [](const auto& stream) { return stream->closed() && stream->Idle(); });
}

std::shared_ptr<Stream> Context::PerThreadStream() {
  return thread_streams.For(shared_from_this());
}

// Returns a snapshot, so that callers wait without holding mutex_.
std::vector<std::shared_ptr<Stream>> Context::Streams(bool blocking_only) const {
  std::vector<std::shared_ptr<Stream>> result;
  std::lock_guard lock(mutex_);
  for (const auto& stream : streams_) {
    if (!blocking_only || Blocking(*stream)) result.push_back(stream);
  }
  return result;
}

// Returns the work that CUDA's rules put before new work of `stream`: for the legacy default stream
// all blocking streams, for a blocking stream the legacy default stream.
std::vector<Stream::Dependency> Context::Dependencies(const Stream& stream) const {
  std::vector<Stream::Dependency> dependencies;
  if (!Blocking(stream)) return dependencies;
  if (&stream != legacy_.get()) {
    if (!legacy_->Idle()) dependencies.push_back({legacy_, legacy_->submitted()});
    return dependencies;
  }
  std::lock_guard lock(mutex_);
  for (const auto& other : streams_) {
    if (Blocking(*other) && !other->Idle()) dependencies.push_back({other, other->submitted()});
  }
  return dependencies;
}

// Work runs on a stream's thread, where an exception would be the process's end.
CUresult Context::RunGuarded(const Work& work) noexcept {
  try {
    return work();
  } catch (...) {
    return AfterException();
  }
}

std::uint64_t Context::Submit(const std::shared_ptr<Stream>& stream, Work work,
                              Stream::Placement placement) {
  return stream->Submit(
      [self = shared_from_this(), work = std::move(work)] {
        if (self->sticky() != CUDA_SUCCESS) return;
        if (const CUresult result = RunGuarded(work); result != CUDA_SUCCESS) {
          self->Poison(result);
        }
      },
      Dependencies(*stream), placement);
}

void Context::SubmitAlways(const std::shared_ptr<Stream>& stream, Stream::Work work) {
  stream->Submit(std::move(work), Dependencies(*stream), Stream::Placement::kQueue);
}

CUresult Context::Run(const std::shared_ptr<Stream>& stream, const Work& work) {
  CUresult result = CUDA_SUCCESS;
  const auto sequence =
      stream->Submit([&] { result = sticky() != CUDA_SUCCESS ? sticky() : RunGuarded(work); },
                     Dependencies(*stream), Stream::Placement::kInlineIfIdle);
  stream->Wait(sequence);
  return result;
}

void Context::Record(const std::shared_ptr<Stream>& stream, Event& event) {
  // Events of a poisoned context finish too: threads may be waiting.
  stream->Submit(
      [completion = event.StartRecording()] {
        completion->Finish(std::chrono::steady_clock::now());
      },
      Dependencies(*stream), Stream::Placement::kInlineIfIdle);
}

void Context::WaitFor(const std::shared_ptr<Stream>& stream,
                      std::shared_ptr<Completion> completion) {
  if (completion == nullptr || completion->done()) return;
  stream->Submit(
      [completion = std::move(completion)] {
        if (completion->done()) return;
        completion->Wait();
        ModelClock::BeginWork();
      },
      Dependencies(*stream), Stream::Placement::kQueue);
}

bool Context::Idle(const std::shared_ptr<Stream>& stream) const {
  if (!stream->Idle()) return false;
  return stream != legacy_ || Dependencies(*stream).empty();
}

// Dependencies are waited for first: the legacy stream is idle only when all blocking streams are.
void Context::Wait(const std::shared_ptr<Stream>& stream) {
  for (const auto& dependency : Dependencies(*stream)) {
    if (stream == legacy_) dependency.stream->Wait(dependency.sequence);
  }
  stream->WaitIdle();
}

void Context::WaitAll() {
  for (const auto& stream : Streams(false)) stream->WaitIdle();
  legacy_->WaitIdle();
}

void Context::Abandon(TimePoint deadline) {
  Poison(CUDA_ERROR_DEINITIALIZED);
  for (const auto& stream : Streams(false)) stream->WaitIdleUntil(deadline);
  legacy_->WaitIdleUntil(deadline);
}

CUresult Context::SetLimit(CUlimit limit, std::size_t value) {
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  limits_[limit] = value;
  return CUDA_SUCCESS;
}

std::optional<std::size_t> Context::GetLimit(CUlimit limit) const {
  if (limit < 0 || limit >= CU_LIMIT_MAX) return std::nullopt;
  std::lock_guard lock(mutex_);
  return limits_[limit];
}

bool Context::EnablePeer(CUdevice device) {
  std::lock_guard lock(mutex_);
  return peers_.insert(device).second;
}

bool Context::DisablePeer(CUdevice device) {
  std::lock_guard lock(mutex_);
  return peers_.erase(device) != 0;
}

}  // namespace torpor::emulator
