#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "emulator/driver/context/context_limits.h"
#include "emulator/driver/device/device.h"
#include "emulator/driver/device/taken_memory.h"
#include "emulator/driver/stream/completion.h"
#include "emulator/driver/stream/issue_queue.h"
#include "emulator/driver/stream/stream.h"

namespace torpor::emulator {

class Context;

// A stream as the application's handle refers to it.
struct StreamObject {
  std::shared_ptr<Stream> stream;
  std::weak_ptr<Context> context;
};

// An event and its latest recording. Thread-safe.
class Event {
 public:
  explicit Event(unsigned flags) : flags_(flags) {}

  bool timed() const { return (flags_ & CU_EVENT_DISABLE_TIMING) == 0; }
  // Returns the latest recording, or null before the first.
  std::shared_ptr<Completion> recording() const;
  // Replaces the recording by a new, unfinished one.
  std::shared_ptr<Completion> StartRecording();
  // The capture in which the event was last recorded; null if the latest recording was of work that
  // is done.
  std::shared_ptr<Capture> capture() const;
  void RecordIn(std::shared_ptr<Capture> capture);

 private:
  const unsigned flags_;
  mutable std::mutex mutex_;
  std::shared_ptr<Completion> recording_;
  std::shared_ptr<Capture> capture_;
};

// Streams and the sticky error of one CUDA context. Thread-safe. Owned by shared pointers:
// the driver's handle table, and queued work.
class Context : public std::enable_shared_from_this<Context> {
 public:
  // Returns the result of the work; a poisoned context drops queued work without running it.
  using Work = std::function<CUresult()>;

  // Fails with CUDA_ERROR_OUT_OF_MEMORY if the device lacks the context's own memory.
  static DriverResult<std::shared_ptr<Context>> Create(DriverDevice& device, unsigned flags,
                                                       bool primary);
  // Use Create.
  Context(DriverDevice& device, unsigned flags, bool primary, TakenMemory memory);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  DriverDevice& device() { return device_; }
  bool primary() const { return primary_; }
  unsigned flags() const { return flags_.load(); }
  void set_flags(unsigned flags) { flags_ = flags; }
  std::uint64_t id() const { return id_; }
  // The application's handle; null before Driver::AddContext.
  CUcontext handle() const { return handle_.load(); }
  void set_handle(CUcontext handle) { handle_ = handle; }

  // The first error that poisoned the context, or success.
  CUresult sticky() const { return sticky_.load(std::memory_order_acquire); }
  // Sets the sticky error; only the first call counts.
  void Poison(CUresult error);
  // The answers to a query of an idle stream or a finished event: the sticky error or, with strict
  // `hidden_faults`, success unless work of that stream or event came to grief.
  CUresult StateOf(const Stream& stream) const;
  CUresult StateOf(const Completion& recording) const;

  std::shared_ptr<Stream> CreateStream(unsigned flags, int priority);
  // Ends `stream` without waiting. Queued work still runs, and waiting for the context or for its
  // blocking streams includes that work.
  void DestroyStream(const std::shared_ptr<Stream>& stream);
  const std::shared_ptr<Stream>& legacy_stream() const { return legacy_; }
  // The calling thread's default stream in this context.
  std::shared_ptr<Stream> PerThreadStream();

  // Bounds the work of launches that `stream` holds, as a real driver's queues do: waits, if need
  // be, for work to finish. Call without locks.
  void WaitForQueue(const std::shared_ptr<Stream>& stream);
  // Queues `work`, or keeps it if the stream is being captured: in stream order and, for a blocking
  // stream, in the order of the legacy default stream. A failure or an exception of `work` poisons
  // the context. Returns the work's sequence number in the stream.
  std::uint64_t Submit(const std::shared_ptr<Stream>& stream, Work work,
                       Stream::Placement placement);
  // As Submit, but `work` runs in a poisoned context too.
  void SubmitAlways(const std::shared_ptr<Stream>& stream, Stream::Work work);
  // Submits `work`, waits and returns its result, which does not poison the context.
  CUresult Run(const std::shared_ptr<Stream>& stream, const Work& work);

  // Finishes a new recording of `event` in stream order, in a poisoned context too.
  void Record(const std::shared_ptr<Stream>& stream, Event& event);
  // Holds up `stream` until the event's latest recording is done. If a capture has the recording,
  // the stream takes part in the capture from now on.
  CUresult WaitFor(const std::shared_ptr<Stream>& stream, const Event& event);
  // Holds up `stream` until `completion` is done; null means no wait.
  void WaitFor(const std::shared_ptr<Stream>& stream, std::shared_ptr<Completion> completion);

  // For the legacy stream, idleness and waiting include all blocking streams.
  bool Idle(const std::shared_ptr<Stream>& stream) const;
  void Wait(const std::shared_ptr<Stream>& stream);
  void WaitAll();
  // For process exit: poisons the context, so that queued work is dropped, and waits until
  // `deadline` for running work.
  void Abandon(TimePoint deadline);

  ContextLimits& limits() { return limits_; }
  // Held while a function of cuLaunchHostFunc runs, if the driver has one thread for them.
  std::mutex& host_functions() { return host_functions_; }

  // Return false if access to the peer is already as requested.
  bool EnablePeer(CUdevice device);
  bool DisablePeer(CUdevice device);

 private:
  static CUresult RunGuarded(const Work& work) noexcept;
  std::shared_ptr<Stream> NewStream(unsigned flags, int priority);
  void ForgetFinishedStreamsLocked();
  std::vector<Stream::Dependency> Dependencies(const Stream& stream) const;
  std::vector<std::shared_ptr<Stream>> Streams(bool blocking_only) const;

  DriverDevice& device_;
  const bool primary_;
  const TakenMemory memory_;
  const std::uint64_t id_;
  std::atomic<CUcontext> handle_{nullptr};
  std::atomic<unsigned> flags_;
  std::atomic<CUresult> sticky_{CUDA_SUCCESS};
  std::atomic<std::uint64_t> next_stream_id_{1};
  // Empty unless the topology asks for `launch_queues`.
  const std::vector<std::shared_ptr<IssueQueue>> issue_queues_;
  const std::shared_ptr<Stream> legacy_;
  ContextLimits limits_;
  std::mutex host_functions_;

  mutable std::mutex mutex_;  // guards what follows
  // All streams but legacy_. Closed streams remain at least until their work is done.
  std::set<std::shared_ptr<Stream>> streams_;
  std::set<CUdevice> peers_;
};

}  // namespace torpor::emulator
