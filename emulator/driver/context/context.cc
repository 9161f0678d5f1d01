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

// Queues between a context and its GPU, and launches that wait in one, of NVIDIA's driver.
constexpr std::size_t kIssueQueues = 8;
constexpr std::uint64_t kQueueDepth = 1024;

std::vector<std::shared_ptr<IssueQueue>> MakeIssueQueues(const Strictness& strict) {
  std::vector<std::shared_ptr<IssueQueue>> queues;
  if (!strict.launch_queues) return queues;
  for (std::size_t i = 0; i < kIssueQueues; ++i) queues.push_back(std::make_shared<IssueQueue>());
  return queues;
}

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
  capture_ = nullptr;
  return completion;
}

std::shared_ptr<Capture> Event::capture() const {
  std::lock_guard lock(mutex_);
  return capture_;
}

void Event::RecordIn(std::shared_ptr<Capture> capture) {
  std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
}

DriverResult<std::shared_ptr<Context>> Context::Create(DriverDevice& device, unsigned flags,
                                                       bool primary) {
  const Bytes size = device.strict().memory_overheads
                         ? device.call_costs().costs().ContextMemory(device.spec().memory)
                         : 0;
  auto memory = TakenMemory::Take(device.budget(), size);
  if (!memory) {
    return Failure<CUresult>{CUDA_ERROR_OUT_OF_MEMORY, "no memory left for a context"};
  }
  return std::make_shared<Context>(device, flags, primary, std::move(*memory));
}

Context::Context(DriverDevice& device, unsigned flags, bool primary, TakenMemory memory)
    : device_(device),
      primary_(primary),
      memory_(std::move(memory)),
      id_(next_context_id.fetch_add(1)),
      flags_(flags),
      issue_queues_(MakeIssueQueues(device.strict())),
      legacy_(NewStream(CU_STREAM_DEFAULT, 0)),
      limits_(device) {}

Context::~Context() {
  for (const auto& stream : Streams(false)) stream->Close();
  legacy_->Close();
}

void Context::Poison(CUresult error) {
  CUresult none = CUDA_SUCCESS;
  sticky_.compare_exchange_strong(none, error);
}

CUresult Context::StateOf(const Stream& stream) const {
  return device_.strict().hidden_faults && !stream.saw_fault() ? CUDA_SUCCESS : sticky();
}

CUresult Context::StateOf(const Completion& recording) const {
  return device_.strict().hidden_faults && !recording.saw_fault() ? CUDA_SUCCESS : sticky();
}

// Streams take the queues in turn, as with CUDA_DEVICE_MAX_CONNECTIONS=8, the default.
std::shared_ptr<Stream> Context::NewStream(unsigned flags, int priority) {
  const std::uint64_t id = next_stream_id_.fetch_add(1);
  auto queue = issue_queues_.empty() ? nullptr : issue_queues_[id % issue_queues_.size()];
  return std::make_shared<Stream>(flags, priority, id, std::move(queue));
}

std::shared_ptr<Stream> Context::CreateStream(unsigned flags, int priority) {
  auto stream = NewStream(flags, priority);
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

void Context::WaitForQueue(const std::shared_ptr<Stream>& stream) {
  if (!issue_queues_.empty()) stream->WaitForRoom(kQueueDepth);
}

// The stream outlives its work, so the work may refer to the stream.
std::uint64_t Context::Submit(const std::shared_ptr<Stream>& stream, Work work,
                              Stream::Placement placement) {
  if (const auto capture = stream->capture()) {
    capture->Add(std::move(work));
    return stream->submitted();
  }
  return stream->Submit(
      [self = shared_from_this(), stream = stream.get(), work = std::move(work)] {
        if (self->sticky() == CUDA_SUCCESS) {
          const CUresult result = RunGuarded(work);
          if (result == CUDA_SUCCESS) return;
          self->Poison(result);
        }
        stream->NoteFault();
      },
      Dependencies(*stream), placement);
}

void Context::SubmitAlways(const std::shared_ptr<Stream>& stream, Stream::Work work) {
  stream->Submit(std::move(work), Dependencies(*stream), Stream::Placement::kQueue);
}

CUresult Context::Run(const std::shared_ptr<Stream>& stream, const Work& work) {
  if (const auto capture = stream->capture()) {
    capture->Invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUresult result = CUDA_SUCCESS;
  const auto sequence =
      stream->Submit([&] { result = sticky() != CUDA_SUCCESS ? sticky() : RunGuarded(work); },
                     Dependencies(*stream), Stream::Placement::kInlineIfIdle);
  stream->Wait(sequence);
  return result;
}

void Context::Record(const std::shared_ptr<Stream>& stream, Event& event) {
  if (auto capture = stream->capture()) return event.RecordIn(std::move(capture));
  // Events of a poisoned context finish too: threads may be waiting.
  stream->Submit(
      [self = shared_from_this(), stream = stream.get(), completion = event.StartRecording()] {
        const bool saw_fault = self->sticky() != CUDA_SUCCESS;
        if (saw_fault) stream->NoteFault();
        completion->Finish(std::chrono::steady_clock::now(), saw_fault);
      },
      Dependencies(*stream), Stream::Placement::kInlineIfIdle);
}

CUresult Context::WaitFor(const std::shared_ptr<Stream>& stream, const Event& event) {
  const auto captured = event.capture();
  const auto own = stream->capture();
  if (captured == nullptr && own != nullptr) {
    own->Invalidate();
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (captured == nullptr) {
    WaitFor(stream, event.recording());
    return CUDA_SUCCESS;
  }
  if (captured->has_ended()) return CUDA_ERROR_CAPTURED_EVENT;
  if (own != nullptr) return own == captured ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_MERGE;
  stream->set_capture(captured);
  captured->Join(stream);
  return CUDA_SUCCESS;
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
      Dependencies(*stream), Stream::Placement::kWait);
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

bool Context::EnablePeer(CUdevice device) {
  std::lock_guard lock(mutex_);
  return peers_.insert(device).second;
}

bool Context::DisablePeer(CUdevice device) {
  std::lock_guard lock(mutex_);
  return peers_.erase(device) != 0;
}

}  // namespace torpor::emulator
