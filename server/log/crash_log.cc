#include "server/log/crash_log.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <string>

#include "server/log/structured_log.h"

namespace torpor::server {
namespace {

std::string CurrentException() {
  try {
    if (const std::exception_ptr current = std::current_exception())
      std::rethrow_exception(current);
    return "std::terminate without an exception";
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (...) {
    return "an exception of another type than std::exception";
  }
}

[[noreturn]] void LogAndAbort() {
  std::array<char, 16> thread{};
  pthread_getname_np(pthread_self(), thread.data(), thread.size());
  LogEvent(spdlog::level::critical, "uncaught exception; the process ends",
           {{"what", CurrentException()}, {"thread", thread.data()}});
  spdlog::default_logger()->flush();
  std::abort();
}

}  // namespace

void LogUncaughtExceptions() { std::set_terminate(LogAndAbort); }

}  // namespace torpor::server
