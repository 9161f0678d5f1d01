#include "client_shim/core/session/thread_streams.h"

#include <utility>

#include "client_shim/core/thread_end.h"
#include "proto/cuda_api/cudart_commands.h"

namespace torpor::shim {
namespace {

// The thread's default stream on each device. Trivial, so that calls from exit handlers may still
// use the array.
struct ThreadStream {
  ClientCore* owner;
  std::uint64_t handle;
};
thread_local ThreadStream my_streams[wire::kMaxDevices];

// Work that the thread has put on its streams still runs: executors let a destroyed stream finish.
void DestroyThreadStreams(void* streams) {
  auto* const stream = static_cast<ThreadStream*>(streams);
  for (int device = 0; device < wire::kMaxDevices; ++device) {
    // A destructor of the program that runs later may want a new stream.
    const ThreadStream old = std::exchange(stream[device], {});
    if (!old.owner) continue;
    const auto fields = wire::Encoded(wire::StreamDestroy{old.handle});
    old.owner->Destroy(old.handle, {wire::StreamDestroy::kCallId, fields});
  }
}

}  // namespace

std::uint64_t ThreadStreamOf(ClientCore& core) {
  ThreadStream& mine = my_streams[core.device()];
  if (mine.owner == &core) return mine.handle;
  wire::StreamCreate create;
  create.stream = core.MintHandle(HandleKind::kStream);
  const auto fields = wire::Encoded(create);
  core.Create(create.stream, {wire::StreamCreate::kCallId, fields});
  mine = {&core, create.stream};
  static const ThreadEnd thread_end(&DestroyThreadStreams);
  thread_end.Arm(my_streams);
  return create.stream;
}

}  // namespace torpor::shim
