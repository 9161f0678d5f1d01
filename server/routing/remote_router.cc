#include "server/routing/remote_router.h"

#include <fmt/format.h>

#include <utility>

#include "base/mutex.h"
#include "base/status_macros.h"
#include "server/config/router_settings.h"
#include "server/config/setting_values.h"
#include "server/log/structured_log.h"
#include "server/routing/router_keeper.h"
#include "server/routing/routing_server.h"

namespace torpor::server {
namespace {

constexpr Duration kStartPatience = std::chrono::seconds(20);
// Beyond its drain timeout.
constexpr Duration kEndGrace = std::chrono::seconds(5);

bool IsAnyPort(const std::string& address) {
  const absl::StatusOr<HostAndPort> parsed = ParseHostAndPort(address);
  return parsed.ok() && parsed->port == 0;
}

class ProcessRouter final : public RemoteRouter {
 public:
  ProcessRouter(const Config& config, Parts parts) : config_(config), parts_(std::move(parts)) {}

  absl::Status Start() {
    // Before the first stream: its process must be known.
    auto keeper = std::make_shared<RouterKeeper>(RouterKeeper::Options{
        .record_path = config_.run_dir + "/router.pid", .command = [this] { return Command(); }});
    {
      MutexLock lock(&mutex_);
      keeper_ = keeper;
    }
    absl::Status status = Serve(*keeper);
    if (!status.ok()) keeper->Stop({});
    return status;
  }

  std::string http_address() const override {
    MutexLock lock(&mutex_);
    return bound_.http_address;
  }
  std::string metrics_address() const override {
    MutexLock lock(&mutex_);
    return bound_.metrics_address;
  }

  void SetFunctions(std::map<std::string, FunctionConfig> functions) override {
    server_->SetFunctions(std::move(functions));
  }

  void Stop() override { keeper()->Stop(config_.drain_timeout + kEndGrace); }
  void Pause() override { server_->Pause(); }

 private:
  absl::Status Serve(RouterKeeper& keeper) {
    TORPOR_ASSIGN_OR_RETURN(
        server_, RoutingServer::Start(
                     SocketPath(),
                     {.broker = parts_.broker,
                      .settings = FormatRouterSettings(SettingsOf(config_.router)),
                      .functions = config_.functions,
                      .find_refusal = [this](const auto& hello) { return Refusal(hello); },
                      .on_attached = [this](const auto& hello) { OnAttached(hello); },
                      .on_alive = [&keeper](auto pid) { keeper.OnAlive(static_cast<pid_t>(pid)); },
                      .readiness = parts_.readiness,
                      .metrics = parts_.metrics}));
    return keeper.WaitUntilAttached(kStartPatience);
  }

  std::string SocketPath() const { return config_.run_dir + "/router.sock"; }

  RouterProcessSettings SettingsOf(RouterConfig router) const {
    if (router.spool_dir.empty()) router.spool_dir = config_.state_dir + "/spool";
    return {.torpord_socket = SocketPath(),
            .router = std::move(router),
            .drain_timeout = config_.drain_timeout,
            .log = config_.log};
  }

  ProcessCommand Command() {
    RouterConfig router = config_.router;
    {
      // A successor is where clients know its predecessor to be.
      MutexLock lock(&mutex_);
      if (!bound_.http_address.empty() && IsAnyPort(router.http_address)) {
        router.http_address = bound_.http_address;
      }
      if (!bound_.metrics_address.empty() && IsAnyPort(router.metrics_address)) {
        router.metrics_address = bound_.metrics_address;
      }
    }
    ProcessCommand command;
    command.program = parts_.program;
    command.arguments = {"--settings", FormatRouterSettings(SettingsOf(router))};
    command.outlives_parent = true;
    return command;
  }

  std::string Refusal(const v1::RouterMessage::Hello& hello) {
    const std::shared_ptr<RouterKeeper> kept = keeper();
    if (kept == nullptr || !kept->IsKept(static_cast<pid_t>(hello.pid()))) {
      return fmt::format("process {} is not this torpord's router", hello.pid());
    }
    const auto serves = [](const std::string& wanted, const std::string& asked) {
      return wanted == asked || (IsAnyPort(wanted) && !asked.empty());
    };
    if (serves(config_.router.http_address, hello.http_setting()) &&
        serves(config_.router.metrics_address, hello.metrics_setting())) {
      return "";
    }
    return "the configured addresses are others than the router's";
  }

  void OnAttached(const v1::RouterMessage::Hello& hello) {
    LogEvent(spdlog::level::info, "the router serves",
             {{"pid", hello.pid()},
              {"http", hello.http_address()},
              {"metrics", hello.metrics_address()},
              {"version", hello.version()}});
    {
      MutexLock lock(&mutex_);
      bound_.http_address = hello.http_address();
      bound_.metrics_address = hello.metrics_address();
    }
    keeper()->OnAttached(static_cast<pid_t>(hello.pid()));
  }

  std::shared_ptr<RouterKeeper> keeper() const {
    MutexLock lock(&mutex_);
    return keeper_;
  }

  const Config config_;
  const Parts parts_;
  mutable Mutex mutex_;
  RouterConfig bound_ ABSL_GUARDED_BY(mutex_) = {.http_address = "", .metrics_address = ""};
  std::shared_ptr<RouterKeeper> keeper_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<RoutingServer> server_;  // goes first: uses the keeper
};

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteRouter>> RemoteRouter::Start(const Config& config,
                                                                  Parts parts) {
  auto router = std::make_unique<ProcessRouter>(config, std::move(parts));
  TORPOR_RETURN_IF_ERROR(router->Start());
  return router;
}

}  // namespace torpor::server
