#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <exception>
#include <random>
#include <string>

#include "base/descriptor_limit.h"
#include "base/loop_watch.h"
#include "server/broker/function_messages.h"
#include "server/config/router_settings.h"
#include "server/log/crash_log.h"
#include "server/log/structured_log.h"
#include "server/router/router.h"
#include "server/routing/protocol.h"
#include "server/routing/routing_client.h"
#include "server/routing/stream_broker.h"
#include "server/routing/stream_inquiry.h"
#include "server/version/version.h"

namespace torpor::server {
namespace {

constexpr const char* kDescription =
    "torpor-router is the HTTP front of the node: it holds the clients' connections, and asks "
    "torpord for a GPU for each request.\n\n"
    "torpord starts one router, and another when it ends. A router whose torpord has died keeps "
    "its requests and waits for the next one.";

constexpr const char* kExitStatus =
    "Signals:\n"
    "  SIGTERM, SIGINT  refuse new requests, wait for those in progress, stop\n\n"
    "Exit status:\n"
    "  0  an orderly stop\n"
    "  1  it could not start, for example for an address in use\n"
    "  2  wrong flags or settings\n"
    "  4  torpord does not want it, or no torpord can come any more";

enum ExitStatus { kOrderly = 0, kFailure = 1, kUsage = 2, kUnwanted = 4 };

// Ends the router's process for torpord's sake. People send other signals.
constexpr int kUnwantedSignal = SIGUSR1;

// Lists the settings with values, default and meaning.
std::string SettingsHelp() {
  std::string help = "Settings are one JSON object with a text for every key:\n";
  for (const Setting<RouterProcessSettings>& setting : RouterProcessSettingTable()) {
    const std::string by_default =
        setting.is_required ? "required" : fmt::format("default \"{}\"", setting.DefaultText());
    help += fmt::format("  {} ({}, {})\n      {}\n", setting.key, setting.value_name, by_default,
                        setting.help);
  }
  return help;
}

int Fail(const absl::Status& status, ExitStatus exit_status) {
  std::fputs(fmt::format("torpor-router: {}\n", std::string(status.message())).c_str(), stderr);
  return exit_status;
}

// Blocks signals before the first thread starts, so that only Serve receives signals.
sigset_t BlockSignals() {
  signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, kUnwantedSignal}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

std::uint64_t NewIncarnation() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

v1::RouterMessage::Hello MakeHello(const RouterConfig& config, const Router& router) {
  v1::RouterMessage::Hello hello;
  hello.set_protocol(kRoutingProtocol);
  hello.set_version(Version());
  hello.set_incarnation(NewIncarnation());
  hello.set_pid(getpid());
  hello.set_http_setting(config.http_address);
  hello.set_metrics_setting(config.metrics_address);
  hello.set_http_address(router.http_address());
  hello.set_metrics_address(router.metrics_address());
  return hello;
}

void ApplySettings(const std::string& document, Router& router) {
  const auto settings = ParseRouterSettings(document);
  if (!settings.ok()) {
    spdlog::error("torpord's settings are not understood; the router goes on with what it has: {}",
                  std::string(settings.status().message()));
    return;
  }
  router.SetOptions({settings->router, settings->drain_timeout});
}

int Serve(const RouterProcessSettings& settings, const sigset_t& signals) {
  const SteadyClock clock;
  StreamBroker broker(clock);
  StreamInquiry inquiry(clock);
  RequestMetrics metrics;
  absl::StatusOr<std::unique_ptr<Router>> router =
      Router::Start({settings.router, settings.drain_timeout}, {&broker, &inquiry, &metrics});
  if (!router.ok()) return Fail(router.status(), kFailure);
  LoopWatch loop([&router](LoopWatch::Task task) { (*router)->Post(std::move(task)); });
  std::unique_ptr<RoutingClient> client = RoutingClient::Start(
      settings.torpord_socket,
      {.broker = &broker,
       .inquiry = &inquiry,
       .hello = MakeHello(settings.router, **router),
       .on_welcome =
           [&](const v1::TorpordMessage::Welcome& welcome) {
             ApplySettings(welcome.settings(), **router);
             (*router)->SetFunctions(FromMessage(welcome.functions()));
           },
       .on_functions =
           [&](const v1::TorpordMessage::Functions& functions) {
             (*router)->SetFunctions(FromMessage(functions));
           },
       .on_attached = [&](bool is_attached) { metrics.OnAttached(is_attached); },
       .is_turning = [&loop] { return loop.Turns(); },
       .on_unwanted =
           [](const std::string& why) {
             spdlog::warn("the router ends: {}", why);
             kill(getpid(), kUnwantedSignal);
           }});
  int number = 0;
  sigwait(&signals, &number);
  if (number != kUnwantedSignal) {
    LogEvent(spdlog::level::info, "the router stops", {{"signal", number}});
    (*router)->Drain();
  }
  // The client goes last of those that use the router, so that torpord hears of the last releases.
  (*router)->Close();
  client.reset();
  return number == kUnwantedSignal ? kUnwanted : kOrderly;
}

int Run(int argc, char** argv) {
  std::string document;
  CLI::App app(kDescription, "torpor-router");
  app.footer(SettingsHelp() + "\n" + kExitStatus);
  app.set_version_flag("--version", fmt::format("torpor-router {}", Version()));
  app.add_option("--settings", document, "Settings of the router to start")
      ->type_name("JSON")
      ->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOrderly : kUsage;
  }
  const auto settings = ParseRouterSettings(document);
  if (!settings.ok()) return Fail(settings.status(), kUsage);
  SetUpLog(settings->log.level, settings->log.format);
  LogUncaughtExceptions();
  const sigset_t signals = BlockSignals();
  RaiseDescriptorLimit();
  return Serve(*settings, signals);
}

}  // namespace
}  // namespace torpor::server

int main(int argc, char** argv) {
  try {
    return torpor::server::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("torpor-router: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
