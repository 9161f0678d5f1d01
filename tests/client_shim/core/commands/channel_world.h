#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>

#include "client_shim/core/commands/channel_parts.h"
#include "tests/client_shim/core/http2.h"
#include "tests/client_shim/fake_daemon_port.h"

namespace torpor::shim {

// An open session around a channel that a test makes, with a fake daemon, and without a log.
class ChannelWorld : public ::testing::Test {
 protected:
  ChannelWorld() {
    log_.set_level(LogLevel::kOff);
    health_.WatchPage(page_.get());
    health_.OpenOnce([] { return cudaSuccess; });
    slots_.Attach(page_.get());
  }
  ChannelParts Parts(std::function<void()> wake, std::function<void(std::uint64_t)> on_saved) {
    return {Http2(), daemon_,         health_,
            slots_,  ring_,           uploads_,
            log_,    std::move(wake), std::move(on_saved)};
  }

  Log log_;
  SessionHealth health_;
  FakeDaemonPort daemon_;
  std::unique_ptr<wire::CompletionPage> page_ = std::make_unique<wire::CompletionPage>();
  CompletionSlots slots_;
  PayloadRing ring_{slots_};
  KeptUploads uploads_{slots_};
};

}  // namespace torpor::shim
