#include "client_shim/cudart/stream/host_functions.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <thread>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/stream/stream_gate.h"

namespace torpor::shim {
namespace {

constexpr std::chrono::microseconds kPoll{50};

// A function waiting for its stream.
struct Queued {
  ClientStreamPtr stream;
  ClientCore* core = nullptr;
  std::uint32_t slot = 0;
  std::uint64_t value = 0;
  std::function<void(cudaError_t)> run;
};

thread_local bool on_host_function_thread = false;

// All queued functions, and the thread that runs them. Thread-safe.
class Queue {
 public:
  void Add(Queued queued) {
    std::lock_guard lock(mutex_);
    Count(*queued.stream, 1);
    queue_.push_back(std::move(queued));
    if (!started_) {
      started_ = true;
      std::thread([this] { Serve(); }).detach();
    }
    changed_.notify_all();
  }

  int count() const { return count_.load(std::memory_order_acquire); }

  // Whether no function is left that a command of `stream` must follow.
  bool IsReady(const ClientStream& stream) const {
    if (IsLegacy(stream)) return of_blocking_ == 0;
    return stream.host_functions == 0 && (!IsBlocking(stream) || of_legacy_ == 0);
  }

  template <typename Condition>
  void Await(const Condition& condition) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, condition);
  }

 private:
  void Count(ClientStream& stream, int change) {
    stream.host_functions += change;
    count_ += change;
    if (IsLegacy(stream)) of_legacy_ += change;
    if (IsBlocking(stream)) of_blocking_ += change;
  }

  // Finds an entry that is first of its stream and reached by the stream, or whose session failed.
  std::list<Queued>::iterator Ready() {
    for (auto entry = queue_.begin(); entry != queue_.end(); ++entry) {
      const bool is_first = std::none_of(queue_.begin(), entry, [&](const Queued& earlier) {
        return earlier.stream == entry->stream;
      });
      const bool reached = entry->core->SlotValue(entry->slot) >= entry->value;
      if (is_first && (reached || entry->core->Start() != cudaSuccess)) return entry;
    }
    return queue_.end();
  }

  void Serve() {
    on_host_function_thread = true;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !queue_.empty(); });
      const auto ready = Ready();
      if (ready == queue_.end()) {
        lock.unlock();
        std::this_thread::sleep_for(kPoll);
        lock.lock();
        continue;
      }
      const Queued entry = std::move(*ready);
      queue_.erase(ready);
      lock.unlock();
      UseCore(*entry.core);
      entry.run(entry.core->Start());
      entry.core->FreeSlot(entry.slot);
      lock.lock();
      Count(*entry.stream, -1);
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Queued> queue_;
  // Functions queued and unfinished: all, of legacy streams, of blocking streams.
  std::atomic<int> count_{0};
  std::atomic<int> of_legacy_{0};
  std::atomic<int> of_blocking_{0};  // including legacy streams
  bool started_ = false;
};

Queue& TheQueue() {
  static Queue* const queue = new Queue();  // its thread runs until the process ends
  return *queue;
}

}  // namespace

cudaError_t QueueHostFunction(const ClientStreamPtr& stream, std::function<void(cudaError_t)> run) {
  const std::uint32_t slot = Core().AllotSlot();
  if (slot == 0) return cudaErrorMemoryAllocation;
  const std::uint64_t value = Core().NextSlotValue(slot);
  cudaError_t error = Send(wire::StreamMark{stream->wire, slot, value});
  if (error == cudaSuccess) error = Core().Flush();
  if (error != cudaSuccess) {
    Core().FreeSlot(slot);
    return error;
  }
  OpenStreamGate();
  TheQueue().Add({stream, &Core(), slot, value, std::move(run)});
  return cudaSuccess;
}

cudaError_t AwaitHostFunctions(const ClientStream& stream) {
  if (on_host_function_thread) return cudaErrorNotPermitted;
  if (TheQueue().count() == 0) return cudaSuccess;
  TheQueue().Await([&] { return TheQueue().IsReady(stream); });
  return cudaSuccess;
}

cudaError_t AwaitAllHostFunctions() {
  if (on_host_function_thread) return cudaErrorNotPermitted;
  if (TheQueue().count() == 0) return cudaSuccess;
  TheQueue().Await([] { return TheQueue().count() == 0; });
  return cudaSuccess;
}

}  // namespace torpor::shim
