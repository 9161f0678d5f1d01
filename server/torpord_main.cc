#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <optional>
#include <variant>

#include "base/descriptor_limit.h"
#include "base/loop_watch.h"
#include "base/status_macros.h"
#include "server/admin/admin_server.h"
#include "server/config/config_loader.h"
#include "server/config/settings.h"
#include "server/daemon/cuda_libraries.h"
#include "server/daemon/descriptor_store.h"
#include "server/daemon/live_config.h"
#include "server/daemon/planned_disk.h"
#include "server/daemon/run_folder.h"
#include "server/daemon/service_manager.h"
#include "server/daemon/topology_preset.h"
#include "server/log/crash_log.h"
#include "server/log/structured_log.h"
#include "server/metrics/metrics.h"
#include "server/node/node.h"
#include "server/routing/remote_router.h"
#include "server/version/version.h"

namespace torpor::server {
namespace {

constexpr const char* kDescription =
    "torpord shares the GPUs of this machine among inference functions.\n\n"
    "It proxies HTTP requests to the functions, lends each request a GPU while it runs, and keeps "
    "the functions' GPU memory in host memory otherwise.";

constexpr const char* kFooter =
    "Every setting can also stand in the configuration file (key http_address for --http-address) "
    "or in the environment (TORPOR_HTTP_ADDRESS). Flags override the environment, which "
    "overrides the file.\n\n"
    "Signals:\n"
    "  SIGTERM, SIGINT  refuse new requests, wait for running requests, stop\n"
    "  SIGUSR1          stop for a restart: the router stays, new requests wait there for the "
    "next\n"
    "                   torpord, and sessions go on with it if torpord's service manager keeps\n"
    "                   their memory\n"
    "  SIGHUP           read the configuration file and the tokens again, and apply functions and\n"
    "                   tenants; nothing if the file is not valid\n\n"
    "Exit status: 0 after an orderly stop, 1 for a failure, 2 for a wrong flag or "
    "configuration.\n\n"
    "Files:\n"
    "  /etc/torpor/config.yaml   configuration (docs/configuration.md)\n"
    "  /run/torpor/functions     sockets of functions, torpor.sock first\n"
    "  /run/torpor/admin/admin.sock   where torporctl connects\n"
    "  /var/lib/torpor           modules, measurements of links and changes of functions, kept "
    "over\n"
    "                            restarts";

constexpr int kExitFailure = 1;
constexpr int kExitUsage = 2;

struct CommandLine {
  ConfigSources sources;
  bool check_config = false;
};

void PrintFailure(const absl::Status& status) {
  std::fputs(fmt::format("torpord: {}\n", std::string(status.message())).c_str(), stderr);
}

// Returns the command line, or the exit status for an immediate end.
std::variant<CommandLine, int> ParseCommandLine(int argc, char** argv) {
  CLI::App app(kDescription, "torpord");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("torpord {}", Version()));
  CommandLine line;
  std::string file = ProcessEnvironment("TORPOR_CONFIG_FILE").value_or(kDefaultConfigFile);
  app.add_option("-c,--config-file", file, "Configuration (TORPOR_CONFIG_FILE)")
      ->type_name("FILE")
      ->capture_default_str();
  app.add_flag("--check-config", line.check_config,
               "Check the configuration and the files named there, then exit");
  std::vector<std::string> texts(NodeSettings().size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const Setting<Config>& setting = NodeSettings()[i];
    app.add_option(FlagName(setting.key), texts[i], std::string(setting.help))
        ->type_name(setting.value_name)
        ->default_str(setting.DefaultText())
        ->group("Settings");
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  line.sources.file = file;
  line.sources.environment = ProcessEnvironment;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string_view key = NodeSettings()[i].key;
    if (app.count(FlagName(key)) > 0) line.sources.flags.emplace_back(key, texts[i]);
  }
  return line;
}

// Blocks signals before the first thread starts, so that only Serve receives signals.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGHUP}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

enum class StopKind {
  kFinal,     // nobody serves afterwards
  kHandover,  // another torpord follows, and finds the router with requests that wait
};

// The parts of torpord in the order of their start; destroyed in reverse order.
class Daemon {
 public:
  // `configure`: changes the configuration, as LiveConfig::Change.
  using Configure = decltype(AdminServer::Sources::configure);
  // `disk` and `kept`: as Node::Start.
  static absl::StatusOr<std::unique_ptr<Daemon>> Start(Config config, Files& disk,
                                                       std::map<std::string, UniqueFd> kept,
                                                       Configure configure) {
    TORPOR_ASSIGN_OR_RETURN(RunFolder folder, RunFolder::Claim(config));
    std::unique_ptr<Daemon> daemon(new Daemon(std::move(config), std::move(folder), disk));
    TORPOR_RETURN_IF_ERROR(daemon->StartParts(std::move(kept), std::move(configure)));
    return daemon;
  }

  // As LiveConfig::Parts::apply.
  absl::Status Apply(const Config& config, bool is_trial) {
    TORPOR_RETURN_IF_ERROR(node_->Reconfigure(config, is_trial));
    if (is_trial) return absl::OkStatus();
    metrics_.SetFunctions(config.functions);
    if (router_ != nullptr) router_->SetFunctions(config.functions);
    return absl::OkStatus();
  }

  bool Ready() { return node_->Ready(); }
  // On the controller's thread.
  void Post(std::function<void()> task) { node_->Post(std::move(task)); }

  // Waits for requests in progress, up to the drain timeout, and stops.
  void Stop(StopKind kind) {
    is_draining_ = true;
    if (router_ != nullptr && kind == StopKind::kFinal) {
      router_->Stop();
    } else if (router_ != nullptr) {
      router_->Pause();
    }
    node_->Drain();
    // Before the node answers requests that still wait: after a handover they go on waiting.
    router_.reset();
    if (kind == StopKind::kHandover) node_->LeaveSessions();
    node_->Stop();
  }

 private:
  Daemon(Config config, RunFolder folder, Files& disk)
      : config_(std::move(config)), folder_(std::move(folder)), disk_(disk), metrics_(config_) {}

  absl::Status StartParts(std::map<std::string, UniqueFd> kept, Configure configure) {
    TORPOR_ASSIGN_OR_RETURN(const CudaLibraries cuda,
                            FindCudaLibraries(config_, ProgramDirectory()));
    config_.cuda_library_dir = cuda.folder;
    config_.is_emulated = cuda.is_emulated;
    TORPOR_ASSIGN_OR_RETURN(
        node_, Node::Start(config_, metrics_, Node::Programs{}, std::move(kept), disk_));
    TORPOR_RETURN_IF_ERROR(StartRouter());
    TORPOR_ASSIGN_OR_RETURN(
        admin_,
        AdminServer::Start(
            config_,
            {.snapshot = [this] { return Snapshot(); },
             .administer =
                 [this](const AdminRequest& request) { return node_->Administer(request); },
             .configure = std::move(configure),
             .explain =
                 [this](const std::string& request_id) { return node_->Explain(request_id); },
             .http_address = http_address(),
             .metrics_address = metrics_address()}));
    LogEvent(spdlog::level::info, "started",
             {{"version", Version()},
              {"http", http_address()},
              {"metrics", metrics_address()},
              {"socket", config_.client_socket},
              {"functions", config_.functions.size()},
              {"gpus", cuda.is_emulated ? "emulated" : "real"}});
    return absl::OkStatus();
  }

  absl::Status StartRouter() {
    const bool has_addresses =
        !config_.router.http_address.empty() || !config_.router.metrics_address.empty();
    if (!has_addresses) return absl::OkStatus();
    TORPOR_ASSIGN_OR_RETURN(
        router_,
        RemoteRouter::Start(
            config_,
            {.broker = &node_->broker(),
             .readiness = [this](const std::string& function) { return FindReadiness(function); },
             .metrics = [this] { return metrics_.Render(node_->Snapshot()); },
             .program = ProgramDirectory() + "/torpor-router"}));
    return absl::OkStatus();
  }

  std::string http_address() const { return router_ == nullptr ? "" : router_->http_address(); }
  std::string metrics_address() const {
    return router_ == nullptr ? "" : router_->metrics_address();
  }

  // As NodeInquiry::AskReadiness.
  Readiness FindReadiness(const std::string& function) {
    if (is_draining_) return {.reason = "torpord is shutting down"};
    if (!node_->Ready()) return {.reason = "no GPU serves"};
    if (function.empty()) return {.is_ready = true};
    std::vector<std::string> upstreams = node_->ServingUpstreams(function);
    if (upstreams.empty())
      return {.reason = "no instance of the function has both a session and a server that answers"};
    return {.is_ready = true, .upstreams = std::move(upstreams)};
  }

  NodeSnapshot Snapshot() {
    NodeSnapshot node = node_->Snapshot();
    if (is_draining_) node.state = "draining";
    return node;
  }

  Config config_;
  RunFolder folder_;
  Files& disk_;
  Metrics metrics_;
  std::atomic<bool> is_draining_ = false;
  std::unique_ptr<Node> node_;
  std::unique_ptr<RemoteRouter> router_;  // nullptr without addresses
  std::unique_ptr<AdminServer> admin_;
};

absl::StatusOr<Config> LoadWithTopology(const ConfigSources& sources) {
  TORPOR_ASSIGN_OR_RETURN(Config config, LoadConfig(sources));
  config.emulator_topology = FindTopology(config.emulator_topology, ProgramDirectory());
  return config;
}

// Applies the configuration file. A file with mistakes changes nothing.
void Reload(LiveConfig& live) {
  const absl::StatusOr<LiveConfig::Lines> lines = live.Reload();
  if (!lines.ok()) {
    LogEvent(spdlog::level::err,
             "the configuration is not applied; torpord goes on with what it has",
             {{"error", std::string(lines.status().message())}});
    return;
  }
  for (const std::string& line : *lines) {
    LogEvent(spdlog::level::info, "configuration", {{"change", line}});
  }
  LogEvent(spdlog::level::info, "the configuration is applied", {{"changes", lines->size()}});
}

// A controller that hangs is not fed for: the service manager ends torpord, and the next goes on
// with sessions and executors.
void FeedWatchdog(LoopWatch& controller) {
  if (controller.Turns()) return NotifyServiceManager("WATCHDOG=1");
  LogEvent(spdlog::level::err, "the controller hangs; the service manager is told nothing", {});
}

// Serves until a signal says how to stop.
StopKind Serve(Daemon& daemon, LiveConfig& live, const sigset_t& signals) {
  constexpr std::chrono::milliseconds kUntilReady(5);
  constexpr std::chrono::hours kIdle(1);
  const auto watchdog = WatchdogInterval();
  LoopWatch controller([&daemon](LoopWatch::Task task) { daemon.Post(std::move(task)); });
  const SteadyClock clock;
  TimePoint feed_at = clock.Now();
  bool is_ready = false;
  for (;;) {
    std::chrono::nanoseconds wait = watchdog ? std::max(feed_at - clock.Now(), Duration::zero())
                                             : std::chrono::nanoseconds(kIdle);
    if (!is_ready) wait = std::min<std::chrono::nanoseconds>(wait, kUntilReady);
    const timespec timeout = {wait / std::chrono::seconds(1),
                              (wait % std::chrono::seconds(1)).count()};
    const int number = sigtimedwait(&signals, nullptr, &timeout);
    if (number == SIGTERM || number == SIGINT || number == SIGUSR1) {
      LogEvent(spdlog::level::info, "stopping", {{"signal", number}});
      return number == SIGUSR1 ? StopKind::kHandover : StopKind::kFinal;
    }
    if (number == SIGHUP) Reload(live);
    if (!is_ready && daemon.Ready()) {
      is_ready = true;
      LogEvent(spdlog::level::info, "ready", {});
      NotifyServiceManager("READY=1");
    }
    if (!watchdog || clock.Now() < feed_at) continue;
    feed_at = clock.Now() + *watchdog;
    if (is_ready) FeedWatchdog(controller);
  }
}

int Run(int argc, char** argv) {
  // Before any other thread starts.
  std::map<std::string, UniqueFd> kept = DescriptorStore::TakeKept();
  auto parsed = ParseCommandLine(argc, argv);
  if (const int* const exit_status = std::get_if<int>(&parsed)) return *exit_status;
  const CommandLine& line = std::get<CommandLine>(parsed);

  std::atomic<Daemon*> running = nullptr;  // once started
  std::unique_ptr<Files> planned;          // if the disk is to fail
  absl::StatusOr<std::unique_ptr<LiveConfig>> live = LiveConfig::Load(
      {.load = [&line] { return LoadWithTopology(line.sources); },
       .check = CheckFiles,
       .apply = [&running](const Config& config,
                           bool is_trial) { return running.load()->Apply(config, is_trial); },
       .disk = [&planned](const Config& config) -> absl::StatusOr<Files*> {
         TORPOR_ASSIGN_OR_RETURN(planned, PlannedDisk(config, ProgramDirectory()));
         return planned ? planned.get() : &SystemFiles();
       }});
  if (!live.ok()) {
    PrintFailure(live.status());
    return kExitUsage;
  }
  if (line.check_config) {
    std::puts(fmt::format("{}: valid", line.sources.file.string()).c_str());
    return 0;
  }

  const Config& config = (*live)->at_start();
  SetUpLog(config.log.level, config.log.format);
  LogUncaughtExceptions();
  for (const std::string& what : (*live)->superseded()) {
    LogEvent(spdlog::level::warn, "configuration", {{"change", what}});
  }
  const sigset_t signals = BlockSignals();
  RaiseDescriptorLimit();
  umask(0027);  // what a group may write to gets its mode by name
  const absl::StatusOr<std::unique_ptr<Daemon>> daemon = Daemon::Start(
      config, (*live)->disk(), std::move(kept), [&live, &running](const ConfigRequest& request) {
        return running.load() != nullptr ? (*live)->Change(request)
                                         : absl::UnavailableError("torpord is starting; ask again");
      });
  if (!daemon.ok()) {
    LogEvent(spdlog::level::critical, "cannot start",
             {{"error", std::string(daemon.status().message())}});
    return kExitFailure;
  }
  running = daemon->get();
  if (const absl::Status status = (*live)->ForgetSuperseded(); !status.ok()) {
    LogEvent(spdlog::level::err, "superseded changes are kept",
             {{"error", std::string(status.message())}});
  }
  const StopKind kind = Serve(**daemon, **live, signals);
  NotifyServiceManager("STOPPING=1");
  (*daemon)->Stop(kind);
  LogEvent(spdlog::level::info, "stopped", {});
  return 0;
}

}  // namespace
}  // namespace torpor::server

int main(int argc, char** argv) {
  try {
    return torpor::server::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("torpord: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
