#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <utility>
#include <variant>

#include "server/daemon/service_manager.h"
#include "server/init/init.h"
#include "server/log/crash_log.h"
#include "server/log/structured_log.h"
#include "server/settings/log_settings.h"
#include "server/version/version.h"

namespace torpor::init {
namespace {

constexpr const char* kDescription =
    "torpor-init runs torpord where there is no systemd, in a container for example, and starts it "
    "again when it dies.\n\n"
    "Meanwhile it keeps open what its program has given it to keep, memory files as a rule, and "
    "gives them to the next one. It is the parent of all processes that outlive their own: of the "
    "router, and of orphans, which it reaps. It can be process 1 and need not be.\n\n"
    "  torpor-init [OPTIONS] -- torpord --config-file /etc/torpor/config.yaml\n";

constexpr const char* kFooter =
    "The program is started again at once when it ends; when it then ends before it has served, or "
    "within half a second of its start, after pauses of 0.1 s, doubling up to 5 s. It is not "
    "started again\n"
    "  - after SIGTERM or SIGINT was passed on;\n"
    "  - before it has ever said READY=1, after exit status 0, 2 (wrong flags or configuration), "
    "126 or 127.\n\n"
    "Messages of the program, and of none of its children, on NOTIFY_SOCKET (sd_notify(3)):\n"
    "  READY=1                        passed on to torpor-init's own NOTIFY_SOCKET, if it has one\n"
    "  STOPPING=1                     passed on likewise, once torpor-init is stopping\n"
    "  WATCHDOG=1                     feeds the watchdog, which begins with READY=1\n"
    "  FDSTORE=1, FDNAME=NAME         keeps the descriptor that comes along, one a message; of "
    "two\n"
    "                                 with one name the later stays\n"
    "  FDSTOREREMOVE=1, FDNAME=NAME   closes it\n"
    "The next program gets all that are kept from descriptor 3 on, by LISTEN_FDS and "
    "LISTEN_FDNAMES (sd_listen_fds_with_names(3)); FDSTORE says how many are kept at most.\n\n"
    "Signals:\n"
    "  SIGTERM, SIGINT  passed on; torpor-init ends when the program has ended\n"
    "  SIGUSR1          passed on: torpord stops for a restart, and is started again\n"
    "  SIGHUP           passed on: torpord reads its configuration again\n"
    "If torpor-init itself dies, the program gets SIGTERM, and what was kept is lost.\n\n"
    "Before torpor-init ends, it sends SIGTERM to the processes that the program has left behind, "
    "and SIGKILL after --grace.\n\n"
    "Exit status: the program's last, 128 and the signal's number after its death by a signal, 126 "
    "if it cannot be executed, 127 if it is not found; 2 for wrong flags of torpor-init, 1 if it "
    "cannot begin.\n\n"
    "Environment:\n"
    "  TORPOR_LOG_FORMAT             as torpord's: text or json lines on standard error\n"
    "  NOTIFY_SOCKET, WATCHDOG_USEC  a service manager of torpor-init's own; it is told READY=1 "
    "and\n"
    "                                STOPPING=1, and WATCHDOG=1 by torpor-init itself";

enum ExitStatus { kFailure = 1, kUsage = 2 };

struct CommandLine {
  Init::Options init;
  server::LogFormat log_format = server::LogFormat::kText;
};

double ManagersWatchdogSeconds() {
  const auto half = server::WatchdogInterval();
  return half ? ToSeconds(*half * 2) : 0;
}

Duration FromSeconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Returns the command line, or the exit status for an immediate end.
std::variant<CommandLine, int> ParseCommandLine(int argc, char** argv) {
  CommandLine line;
  double watchdog = ManagersWatchdogSeconds();
  double grace = ToSeconds(line.init.grace);
  std::string format(server::WordOf(line.log_format));
  CLI::App app(kDescription, "torpor-init");
  app.footer(kFooter);
  app.set_version_flag("--version", fmt::format("torpor-init {}", server::Version()));
  app.add_option("program", line.init.program, "The program, found by PATH, and its arguments")
      ->type_name("PROGRAM [ARGUMENTS]")
      ->required();
  app.add_option(
         "--store-max", line.init.store_max,
         "Descriptors kept at most; a session has four memory files. The limit of open files "
         "must be twice as high")
      ->type_name("COUNT")
      ->capture_default_str();
  app.add_option("--watchdog", watchdog,
                 "Kill the program when it has not said WATCHDOG=1 for so long; 0: never. By "
                 "default as WATCHDOG_USEC")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e6, "0 to 1e6"));
  app.add_option("--grace", grace, "How long processes left behind get to end after SIGTERM")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 1e6, "0 to 1e6"))
      ->capture_default_str();
  app.add_option("--log-format", format, "Form of a line of the log (TORPOR_LOG_FORMAT)")
      ->envname("TORPOR_LOG_FORMAT")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  // What follows the program's name is the program's.
  app.positionals_at_end();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsage;
  }
  line.init.watchdog = FromSeconds(watchdog);
  line.init.grace = FromSeconds(grace);
  line.log_format = server::FindWord<server::LogFormat>(format).value();
  return line;
}

int Run(int argc, char** argv) {
  auto parsed = ParseCommandLine(argc, argv);
  if (const int* const exit_status = std::get_if<int>(&parsed)) return *exit_status;
  auto& line = std::get<CommandLine>(parsed);
  server::SetUpLog(server::LogLevel::kInfo, line.log_format);
  server::LogUncaughtExceptions();
  const auto init = Init::Create(std::move(line.init));
  if (init.ok()) return (*init)->Run();
  std::fputs(fmt::format("torpor-init: {}\n", std::string(init.status().message())).c_str(),
             stderr);
  return kFailure;
}

}  // namespace
}  // namespace torpor::init

int main(int argc, char** argv) {
  try {
    return torpor::init::Run(argc, argv);
  } catch (const std::exception& error) {
    std::fputs("torpor-init: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return 1;
  }
}
