#pragma once

#include "scheduler/gpu_images.h"
#include "scheduler/node_state.h"
#include "scheduler/outbox.h"
#include "scheduler/request_queue.h"

namespace torpor::scheduler {

// Writes images back on GPUs that have had nothing to do for a while, one part at a time on each,
// so that a later eviction finds nothing to copy. Not thread-safe.
class IdleWriteBack {
 public:
  // `pause`: how long a GPU must have been idle; 0: never write back.
  IdleWriteBack(NodeState& node, RequestQueue& queue, GpuImages& images, Duration pause,
                Outbox& outbox);

  // To be called at the end of every event.
  void Serve();

 private:
  // Whether a waiting instance fits the GPU.
  bool IsWanted(const Gpu& gpu);
  void NoteIdle(Gpu& gpu);
  void WriteBackOn(Gpu& gpu);

  NodeState& node_;
  RequestQueue& queue_;
  GpuImages& images_;
  const Duration pause_;
  Outbox& outbox_;
};

}  // namespace torpor::scheduler
