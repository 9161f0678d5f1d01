#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "client_shim/cudart/call/entry.h"
#include "client_shim/cudart/graph/node_work.h"
#include "client_shim/cudart/stream/capture.h"

// The seam between the work of a call and the call's stream. A call checks its arguments, builds
// its work once, as an object on the stack, and submits the work. Work has two functions:
//   cudaError_t Send(cudaStream_t stream) const;    queues the commands in the stream's order
//   cudaError_t MakeNode(NodeWork& node) const;     describes the same work for a graph's node
// Work with a place in a capture but no node (an event's record) has, in place of MakeNode,
//   cudaError_t CaptureOn(cudaStream_t stream) const;
namespace torpor::shim {

// Adds the work of a node to the graph that a capturing stream builds.
template <typename Work>
cudaError_t CaptureWork(cudaStream_t stream, const Work& work) {
  if constexpr (requires { work.CaptureOn(stream); }) {
    return work.CaptureOn(stream);
  } else {
    NodeWork node;
    TORPOR_TRY(work.MakeNode(node));
    return Capture(stream, std::move(node));
  }
}

// Captures the work if `stream` captures, else sends the work. Without any capture in the process
// the choice costs one atomic load.
template <typename Work>
cudaError_t Submit(cudaStream_t stream, const Work& work) {
  return IsCapturing(stream) ? CaptureWork(stream, work) : work.Send(stream);
}

}  // namespace torpor::shim
