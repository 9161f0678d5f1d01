#include "server/controller/function_strikes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/broker/retry_after.h"
#include "server/log/structured_log.h"

namespace torpor::server {
namespace {

// cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorAssert, cudaErrorHardwareStackError,
// cudaErrorIllegalInstruction, cudaErrorMisalignedAddress, cudaErrorInvalidAddressSpace,
// cudaErrorInvalidPc, cudaErrorLaunchFailure.
constexpr std::array<std::int32_t, 9> kFaults = {700, 702, 710, 714, 715, 716, 717, 718, 719};

// By which a process ends for what it does itself. SIGKILL and SIGTERM come from outside.
constexpr std::array<int, 6> kCrashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};

const char* WordOf(StrikeCause cause) {
  switch (cause) {
    case StrikeCause::kFault:
      return "fault";
    case StrikeCause::kCrash:
      return "crash";
    case StrikeCause::kEndless:
      return "endless";
  }
  return "";
}

}  // namespace

bool IsFunctionsFault(std::int32_t cuda_error) {
  return std::ranges::find(kFaults, cuda_error) != kFaults.end();
}

std::optional<absl::Status> WhyRefused(const RegisteredFunction& function, TimePoint now) {
  const TimePoint until = function.strikes.refused_until();
  if (now >= until) return std::nullopt;
  return WithRetryAfter(
      absl::PermissionDeniedError(fmt::format(
          "it has ended executors of this node by {} faults of its own, the last of them "
          "not long ago; mend the function, or ask again in {:.1f} s",
          function.strikes.strikes(now), ToSeconds(until - now))),
      until - now);
}

void FunctionStrikes::Restore(const LoggedSessions& logged) {
  for (const auto& [name, struck] : logged.strikes()) {
    RegisteredFunction* const function = instances_.FindFunction(name);
    if (!function) continue;
    const TimePoint last{Duration(struck.at_ns)};
    function->strikes = StrikeRecord::Of(static_cast<unsigned>(struck.strikes), last);
  }
}

void FunctionStrikes::OnContextLost(const ClientSession& session, std::int32_t cuda_error,
                                    const std::string& what) {
  FunctionInstance* const instance = instances_.FindById(session.instance);
  if (!instance || !IsFunctionsFault(cuda_error)) return;
  Strike(*instance->function, StrikeCause::kFault, what);
}

void FunctionStrikes::OnEndless(const ClientSession& session) {
  FunctionInstance* const instance = instances_.FindById(session.instance);
  if (instance) Strike(*instance->function, StrikeCause::kEndless, "its work does not end");
}

void FunctionStrikes::OnExecutorLost(std::uint64_t epoch, std::vector<InstanceId> holders) {
  holders_[epoch] = std::move(holders);
}

void FunctionStrikes::OnExecutorExited(GpuIndex gpu, std::uint64_t epoch, int signal) {
  const auto found = holders_.find(epoch);
  if (found == holders_.end()) return;
  const std::vector<InstanceId> holders = std::move(found->second);
  holders_.erase(found);
  if (std::ranges::find(kCrashes, signal) == kCrashes.end()) return;
  for (const InstanceId id : holders) {
    FunctionInstance* const instance = instances_.FindById(id);
    if (!instance) continue;
    RegisteredFunction& function = *instance->function;
    const std::string why =
        absl::StrCat("the executor of GPU ", gpu.value, " crashed by signal ", signal);
    if (function.strikes.OnCrash(loop_.Now())) Tell(function, StrikeCause::kCrash, why);
  }
}

void FunctionStrikes::Strike(RegisteredFunction& function, StrikeCause cause,
                             const std::string& why) {
  function.strikes.OnFault(loop_.Now());
  Tell(function, cause, why);
}

void FunctionStrikes::Tell(const RegisteredFunction& function, StrikeCause cause,
                           const std::string& why) {
  const TimePoint now = loop_.Now();
  const std::optional<absl::Status> refusal = WhyRefused(function, now);
  const Duration pause = std::max(function.strikes.refused_until() - now, Duration{});
  LogEvent(spdlog::level::warn, "strike",
           {{"function", function.config.name},
            {"cause", WordOf(cause)},
            {"why", why},
            {"strikes", static_cast<std::uint64_t>(function.strikes.strikes(now))},
            {"refused_s", ToSeconds(pause)}});
  journal_.NoteStrike(function.config.name, function.strikes.strikes(now), now);
  telemetry_.OnStrike(function.config.name, cause);
  if (refusal) on_struck_(function, *refusal);
}

}  // namespace torpor::server
