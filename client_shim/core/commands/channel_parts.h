#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "client_shim/core/commands/batch_writer.h"
#include "client_shim/core/commands/replay_record.h"
#include "client_shim/core/log.h"
#include "client_shim/core/memory/completion_slots.h"
#include "client_shim/core/memory/kept_uploads.h"
#include "client_shim/core/memory/payload_ring.h"
#include "client_shim/core/session_health.h"
#include "client_shim/core/settings.h"
#include "client_shim/core/transport/daemon_port.h"
#include "client_shim/core/transport/nghttp2_library.h"
#include "proto/wire/batch.h"

namespace torpor::shim {

struct ChannelOptions {
  BatchLimits batch;
  std::chrono::milliseconds lease_idle{};  // see ClientLease
  bool holds_batches = false;              // the caller flushes after each Enqueue
  bool traces_requests = false;            // an explicit lease is a section of the trace
  Transport transport = Transport::kAuto;  // to executors
  std::string daemon_socket{};  // executors' sockets lie beside; empty: where torpord says
  wire::Attach attach;          // introduces the session to an executor
  bool replays = false;         // a lost executor's calls wait (HelloReply::replays)
  // What the session does is recorded up to so many bytes, and for so long, before the memory is
  // saved (docs/decisions/0038); 0 bytes: nothing is recorded.
  std::size_t replay_bytes = 0;
  std::chrono::milliseconds replay_age{30'000};
  HostArena arena;
};

// The parts of a session that the channel uses; all must outlive the channel.
struct ChannelParts {
  const Nghttp2& http2;
  DaemonPort& daemon;
  SessionHealth& health;
  CompletionSlots& slots;
  PayloadRing& ring;
  KeptUploads& uploads;
  const Log& log;
  std::function<void()> wake;  // makes the service thread call Watch soon; never waits
  // The host image is as of this command, so that no replay needs earlier commands. Called with the
  // mutex held; may be empty.
  std::function<void(std::uint64_t saved)> on_saved;
};

}  // namespace torpor::shim
