#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/wire/codec.h"

// The frames of an Execution stream.
//
// Client to executor: a BatchHeader and then commands, each a CommandHeader and the fields of
// the call (generated from the call table), all 8-byte aligned. The first frame of a stream holds
// one kAttach command. A command of order class SYNC ends the batch and gets one Reply, maybe with
// kOutput frames before; STREAM commands get no answer. The executor executes the commands of a
// stream in order.
//
// Ids of streams, events, modules, kernels and library handles are minted by the client, are
// unique within the session, never reused, and are the same on every executor: on a new executor
// the client first sends the creating commands of the objects that are live (its journal).
namespace torpor::wire {

inline constexpr std::uint32_t kMaxFrameBytes = 4u << 20;

// Commands of the call table are numbered from 1 on, through all leases of the session; commands of
// the protocol have no numbers. In a lease numbers grow from batch to batch, with gaps in a replay.
struct BatchHeader {
  std::uint64_t lease_id = 0;  // the batch is refused unless this is the session's current lease
  std::uint32_t command_count = 0;
  std::uint32_t reserved = 0;
  // The number of the first command; 0: the commands have no numbers, since they only tell the
  // executor of objects that the session has.
  std::uint64_t first_command = 0;
};
static_assert(sizeof(BatchHeader) == 24);

struct CommandHeader {
  std::uint32_t call_id = 0;     // of the call table, or a ProtocolCall
  std::uint32_t size_bytes = 0;  // header included, a multiple of 8
};
static_assert(sizeof(CommandHeader) == 8);

// Calls of the CUDA libraries, in the call table, start here.
inline constexpr std::uint32_t kFirstTableCall = 64;

// Commands of the protocol itself.
enum class ProtocolCall : std::uint32_t {
  kAttach = 1,  // SYNC, first on a stream: Attach -> Reply
  kDrain = 2,   // SYNC: waits for all the session's work; the reply's result is a DrainReply
  // Executor to client, before the Reply of a call that waited for kernels: the kernels' output as
  // the result, the driver's remarks as the message. Not an answer.
  kOutput = 3,
  // SYNC: waits for all the session's work and makes the host image equal to the GPU's memory, as
  // of the commands before; the reply's result is a CheckpointReply.
  kCheckpoint = 4,
};

struct Attach {
  std::uint64_t session_id = 0;
  std::array<std::uint8_t, 16> session_key{};

  template <typename V>
  void Visit(V& v) {
    v(session_id), v(session_key);
  }
};

// When each event recorded in the ending lease completed, so that events keep their times when
// the session moves to another GPU.
struct EventTime {
  std::uint64_t event = 0;
  std::int64_t completed_ns = 0;  // CLOCK_MONOTONIC of the node

  template <typename V>
  void Visit(V& v) {
    v(event), v(completed_ns);
  }
};

struct DrainReply {
  std::vector<EventTime> events;

  template <typename V>
  void Visit(V& v) {
    v(events);
  }
};

struct CheckpointReply {
  std::uint64_t saved_command = 0;  // the number of the last command before
  std::vector<EventTime> events;    // as in a DrainReply

  template <typename V>
  void Visit(V& v) {
    v(saved_command), v(events);
  }
};

// Executor to client: one frame per answered command, in the order of the commands, with kOutput
// frames in between.
struct Reply {
  std::uint32_t call_id = 0;  // of the answered command
  std::int32_t status = 0;    // the call's own result: cudaError_t, cublasStatus_t, ...
  // The first unreported error of an earlier asynchronous call (cudaError_t), and whether the error
  // is sticky: the session's context is lost.
  std::int32_t async_error = 0;
  std::uint32_t async_error_is_sticky = 0;
  std::string message;               // of the error, for the client's log
  std::vector<std::uint8_t> result;  // the call's Out parameters, packed

  template <typename V>
  void Visit(V& v) {
    v(call_id), v(status), v(async_error), v(async_error_is_sticky), v(message), v(result);
  }
};

}  // namespace torpor::wire
