#include "client_shim/cudart/stream/streams.h"

#include <array>
#include <atomic>
#include <chrono>
#include <shared_mutex>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client_shim/core/thread_end.h"
#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/call/per_device.h"
#include "client_shim/cudart/managed/managed_variables.h"
#include "client_shim/cudart/stream/capture.h"
#include "client_shim/cudart/stream/host_functions.h"
#include "client_shim/cudart/stream/submit.h"

namespace torpor::shim {
namespace {

constexpr int kLowestPriority = 0;
// How long a query waits for a mark: usually less for an idle stream, all of it for a busy stream,
// once a mark.
constexpr std::chrono::microseconds kMarkPatience{500};
constexpr std::chrono::microseconds kMarkPoll{20};

// All live streams: a legacy stream for each device, the others by wire name. Thread-safe.
class Streams {
 public:
  Streams() {
    for (ClientStreamPtr& legacy : legacy_) {
      legacy = std::make_shared<ClientStream>();
      legacy->is_default = true;
    }
  }

  const ClientStreamPtr& legacy(int device) const {
    return legacy_[static_cast<std::size_t>(device)];
  }

  void Insert(const ClientStreamPtr& stream) {
    std::unique_lock lock(mutex_);
    by_wire_[stream->wire] = stream;
  }
  void Erase(std::uint64_t wire) {
    std::unique_lock lock(mutex_);
    by_wire_.erase(wire);
  }
  std::vector<ClientStreamPtr> All() {
    std::shared_lock lock(mutex_);
    std::vector<ClientStreamPtr> all;
    for (const auto& [wire, stream] : by_wire_) all.push_back(stream);
    return all;
  }
  ClientStreamPtr Find(std::uint64_t wire) {
    std::shared_lock lock(mutex_);
    const auto found = by_wire_.find(wire);
    return found == by_wire_.end() ? nullptr : found->second;
  }

 private:
  std::array<ClientStreamPtr, wire::kMaxDevices> legacy_;  // by device
  std::shared_mutex mutex_;
  std::unordered_map<std::uint64_t, ClientStreamPtr> by_wire_;
};

Streams& TheStreams() {
  static Streams* const streams = new Streams();
  return *streams;
}

// Wire names by device. A trivial type, usable in calls from exit handlers.
using PerThreadStreams = std::uint64_t[wire::kMaxDevices];
thread_local PerThreadStreams per_thread_streams;

// Forgets a thread's default stream at the end of the thread; the core destroys the stream itself.
void ForgetPerThread(std::uint64_t wire) {
  if (Begin() != cudaSuccess) return;  // a forked child may not take a lock
  const ClientStreamPtr stream = TheStreams().Find(wire);
  if (!stream) return;
  AbandonCapture(stream);
  TheStreams().Erase(stream->wire);
  stream->core->FreeSlot(stream->slot);
}

void ForgetAllPerThread(void* wires) {
  const OwnCalls own_calls;
  for (std::uint64_t& wire : *static_cast<PerThreadStreams*>(wires))
    if (wire != 0) ForgetPerThread(std::exchange(wire, 0));
}

// The calling thread's default stream on the device in use, made at first use.
ClientStreamPtr PerThread() {
  const std::uint64_t wire = Core().PerThreadStream();
  if (ClientStreamPtr known = TheStreams().Find(wire)) return known;
  auto stream = std::make_shared<ClientStream>();
  stream->wire = wire;
  stream->core = &Core();
  stream->is_default = true;
  TheStreams().Insert(stream);
  per_thread_streams[DeviceInUse()] = wire;
  static const ThreadEnd thread_end(&ForgetAllPerThread);
  thread_end.Arm(&per_thread_streams);
  return stream;
}

// Creates a stream of the device in use; the executor makes the real stream when needed.
cudaError_t CreateStream(cudaStream_t* out, unsigned flags, int priority) {
  if (!out || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) return cudaErrorInvalidValue;
  TORPOR_TRY(Begin());
  const auto stream = std::make_shared<ClientStream>();
  stream->core = &Core();
  stream->wire = Core().MintHandle(HandleKind::kStream);
  stream->flags = flags;
  stream->priority = priority;
  TORPOR_TRY(
      Core().Create(stream->wire, Encode(wire::StreamCreate{stream->wire, flags, priority})));
  TheStreams().Insert(stream);
  *out = reinterpret_cast<cudaStream_t>(stream->wire);
  return cudaSuccess;
}

cudaError_t Destroy(const ClientStream& stream) {
  UseCore(*stream.core);
  TheStreams().Erase(stream.wire);
  Core().FreeSlot(stream.slot);
  return Core().Destroy(stream.wire, Encode(wire::StreamDestroy{stream.wire}));
}

// Waits for the stream's host functions. Default streams cannot be destroyed.
cudaError_t DestroyStream(cudaStream_t handle) {
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  if (stream->is_default) return cudaErrorInvalidResourceHandle;
  TORPOR_TRY(LeaveCapture(stream));
  TORPOR_TRY(AwaitHostFunctions(*stream));
  return Destroy(*stream);
}

// The core's count of commands when the device was last known to be idle.
PerDevice<std::atomic<std::uint64_t>> device_idle_commands;

// Whether the program has waited for the stream or the device, and no library has enqueued anything
// since.
bool IsKnownIdle(const ClientStream& stream) {
  const std::uint64_t commands = Core().CommandCount();
  return stream.idle_commands == commands || device_idle_commands.here() == commands;
}

// Whether only later commands of this session, which stay in order, can see bytes of uploads.
bool NobodySeesUploads() { return Core().HasMemoryAlone() && !UsesManagedVariables(); }

// Does not wait for uploads alone, since PyTorch synchronises after each input: a fence keeps later
// work of all streams behind the uploads.
cudaError_t Synchronize(cudaStream_t handle) {
  ClientStreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  const std::uint64_t commands = Core().CommandCount();
  if (IsKnownIdle(*stream)) {
    TORPOR_TRY(Core().TakeAsyncError());
  } else if (IsIdleButForUploads(*stream) && NobodySeesUploads()) {
    TORPOR_TRY(Send(wire::StreamFence{stream->wire}));
    stream->idle_commands = commands + 1;
    TORPOR_TRY(Core().TakeAsyncError());
  } else {
    TORPOR_TRY(Ask(wire::StreamSynchronize{stream->wire}));
    stream->idle_commands = commands + 1;
  }
  return FetchManagedVariables();
}

bool MarkIsReached(const ClientStream& stream) {
  return Core().SlotValue(stream.slot) >= stream.marked_value;
}

// Puts a mark behind all work so far, and gives an idle stream the time to reach the mark.
cudaError_t PlaceMark(ClientStream& stream) {
  const std::uint64_t commands = Core().CommandCount();
  const std::uint64_t value = Core().NextSlotValue(stream.slot);
  TORPOR_TRY(Send(wire::StreamMark{stream.wire, stream.slot, value}));
  stream.marked_value = value;  // only after sending: an unsent mark is never reached
  TORPOR_TRY(Core().Flush());
  stream.marked_commands = commands + 1;
  const auto patience = std::chrono::steady_clock::now() + kMarkPatience;
  while (!MarkIsReached(stream) && std::chrono::steady_clock::now() < patience)
    std::this_thread::sleep_for(kMarkPoll);
  return cudaSuccess;
}

// Learns a stream's state from a mark behind the stream's work, read from the completion page. A
// pending mark answers "not ready" at once. A reached mark answers "done" until any library
// enqueues more; then a new mark is needed.
cudaError_t Query(cudaStream_t handle) {
  ClientStreamPtr stream;
  TORPOR_TRY(FindStream(handle, stream));
  TORPOR_TRY(RefuseCaptured(stream));
  if (stream->host_functions.load() != 0) return cudaErrorNotReady;
  if (Core().IsDrained() || IsKnownIdle(*stream)) return Core().TakeAsyncError();
  std::lock_guard lock(stream->mutex);
  if (stream->slot == 0) stream->slot = Core().AllotSlot();
  if (stream->slot == 0) return Ask(wire::StreamSynchronize{stream->wire});
  const bool is_stale = MarkIsReached(*stream) && stream->marked_commands != Core().CommandCount();
  if (stream->marked_value == 0 || is_stale) TORPOR_TRY(PlaceMark(*stream));
  return MarkIsReached(*stream) ? Core().TakeAsyncError() : cudaErrorNotReady;
}

// cudaStreamAddCallback, which CUDA does not allow in captures.
cudaError_t AddCallback(cudaStream_t handle, cudaStreamCallback_t callback, void* data) {
  if (!callback) return cudaErrorInvalidValue;
  ClientStreamPtr stream;
  TORPOR_TRY(UseStream(handle, stream));
  return QueueHostFunction(
      stream, [handle, callback, data](cudaError_t state) { callback(handle, state, data); });
}

struct HostFunctionWork {
  cudaHostFn_t function = nullptr;
  void* data = nullptr;

  cudaError_t MakeNode(NodeWork& node) const {
    node = HostWork{{function, data}};
    return cudaSuccess;
  }
  cudaError_t Send(cudaStream_t handle) const {
    ClientStreamPtr stream;
    TORPOR_TRY(UseStream(handle, stream));
    return QueueHostFunction(stream, [run = function, argument = data](cudaError_t state) {
      if (state == cudaSuccess) run(argument);
    });
  }
};

}  // namespace

cudaError_t FindStream(cudaStream_t stream, ClientStreamPtr& found) {
  TORPOR_TRY(Begin());
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
    UseCurrentCore();
    found = stream == cudaStreamPerThread ? PerThread() : TheStreams().legacy(DeviceInUse());
    return cudaSuccess;
  }
  found = TheStreams().Find(Address(stream));
  if (!found) return cudaErrorInvalidResourceHandle;
  UseCore(*found->core);
  return cudaSuccess;
}

cudaError_t UseStream(cudaStream_t stream, ClientStreamPtr& use) {
  TORPOR_TRY(FindStream(stream, use));
  TORPOR_TRY(RefuseCaptured(use));
  return AwaitHostFunctions(*use);
}

cudaError_t ComeBehind(std::uint64_t stream, std::uint64_t earlier) {
  const bool is_live = earlier == 0 || Core().IsLive(earlier);
  if (!is_live) return Ask(wire::DeviceSynchronize{});
  const std::uint64_t event = Core().MintHandle(HandleKind::kEvent);
  TORPOR_TRY(Core().Create(event, Encode(wire::EventCreate{event, cudaEventDisableTiming})));
  cudaError_t error = Send(wire::EventRecord{event, earlier, cudaEventRecordDefault, 0, 0});
  if (error == cudaSuccess)
    error = Send(wire::StreamWaitEvent{stream, event, cudaEventWaitDefault});
  const cudaError_t destroyed = Core().Destroy(event, Encode(wire::EventDestroy{event}));
  return error != cudaSuccess ? error : destroyed;
}

bool IsIdleButForUploads(const ClientStream& stream) {
  return IsKnownIdle(stream) || stream.upload_commands == Core().CommandCount();
}

void NoteIdleDevice(std::uint64_t commands) { device_idle_commands.here() = commands; }

cudaError_t DestroyAllStreams() {
  for (const ClientStreamPtr& stream : TheStreams().All())
    if (!stream->is_default && stream->core == &Core()) TORPOR_TRY(Destroy(*stream));
  return cudaSuccess;
}

}  // namespace torpor::shim

using namespace torpor::shim;  // NOLINT(google-build-using-namespace): the entries' own library

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return Entry([&] { return CreateStream(stream, cudaStreamDefault, kLowestPriority); });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
  return Entry([&] { return CreateStream(stream, flags, kLowestPriority); });
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
  return Entry([&] { return CreateStream(stream, flags, priority); });
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return Entry([&] { return DestroyStream(stream); });
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Entry([&] { return Synchronize(stream); });
}

cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return Entry([&]() -> cudaError_t {
    TORPOR_TRY(Query(stream));
    return FetchManagedVariables();
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned int* flags) {
  return Entry([&]() -> cudaError_t {
    if (!flags) return cudaErrorInvalidValue;
    ClientStreamPtr stream;
    TORPOR_TRY(FindStream(handle, stream));
    *flags = stream->flags;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return Entry([&]() -> cudaError_t {
    if (!priority) return cudaErrorInvalidValue;
    ClientStreamPtr stream;
    TORPOR_TRY(FindStream(handle, stream));
    *priority = stream->priority;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return Entry([&]() -> cudaError_t {
    if (!device) return cudaErrorInvalidValue;
    ClientStreamPtr stream;
    TORPOR_TRY(FindStream(handle, stream));
    *device = DeviceInUse();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return Entry([&]() -> cudaError_t {
    if (!id) return cudaErrorInvalidValue;
    ClientStreamPtr stream;
    TORPOR_TRY(FindStream(handle, stream));
    *id = stream->wire;
    return cudaSuccess;
  });
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int flags) {
  return Entry(
      [&] { return flags != 0 ? cudaErrorInvalidValue : AddCallback(stream, callback, data); });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return Entry([&] {
    return function ? Submit(stream, HostFunctionWork{function, data}) : cudaErrorInvalidValue;
  });
}
